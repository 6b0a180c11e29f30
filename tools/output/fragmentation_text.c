#include "output/fragmentation_text.h"

#include <inttypes.h>
#include <string.h>

#include "output/line.h"
#include "output/whatif_text.h"

#define N_LINES	     3u /* in the one-screen report */
#define STACK_INDENT 6u
#define MAX_LABEL    200u

const char *fragmentation_level_name(const struct fragmentation_row *row)
{
	if (row->level == FRAGMENTATION_DRIVER)
		return "driver";
	if (row->level == FRAGMENTATION_POOL)
		return row->graphs ? "graphs" : "pool";
	return row->layer == VT_LAYER_TORCH ? "torch" : "allocator";
}

void fragmentation_put_name(FILE *out, const struct fragmentation_row *row)
{
	fputs(fragmentation_level_name(row), out);
	if (row->level == FRAGMENTATION_POOL && row->pool)
		fprintf(out, " 0x%" PRIx64, row->pool);
	if (row->level == FRAGMENTATION_FRAMEWORK && row->layer != VT_LAYER_TORCH) {
		fputc(' ', out);
		format_put_text(out, row->name);
	}
}

static void put_label(FILE *out, const struct stack_source *source, uint64_t stack_id)
{
	char label[MAX_LABEL];

	stack_label(source, stack_id, label, sizeof(label));
	format_put_text(out, (struct vt_text){label, strlen(label)});
}

static void put_pages(
	FILE *out, const struct stack_source *source, const struct fragmentation_row *row)
{
	fprintf(out, "%s of %s is free in %s %s of %s", format_bytes(row->idle_bytes).text,
		format_bytes(row->reserved_bytes).text, format_count(row->n_pinned).text,
		line_plural(row->n_pinned, "page", "pages"), format_bytes(row->page_bytes).text);
	fputs(" that small allocations share", out);
	if (row->n_pinners) {
		fputs("; most is held back by ", out);
		put_label(out, source, row->pinners[0].stack_id);
	}
}

/* "2.6 GiB in 10 holes of 260.0 MiB", or of up to so much. */
static void put_holes(FILE *out, const struct fragmentation_row *row)
{
	fprintf(out, "%s in %s %s of %s%s", format_bytes(row->pinned_bytes).text,
		format_count(row->n_holes).text, line_plural(row->n_holes, "hole", "holes"),
		row->n_hole_sizes > 1 ? "up to " : "", format_bytes(row->largest_hole_bytes).text);
	if (row->requests.n_requests && !row->requests.n_fitting)
		fputs(" that no request of this program fits", out);
	else if (row->requests.median_bytes > row->largest_hole_bytes)
		fprintf(out, ", less than the typical request of %s",
			format_bytes(row->requests.median_bytes).text);
}

static void put_segments(
	FILE *out, const struct stack_source *source, const struct fragmentation_row *row)
{
	if (row->pinned_bytes)
		put_holes(out, row);
	if (row->returnable_bytes)
		fprintf(out, "%s%s in segments that nothing uses",
			row->pinned_bytes ? ", and " : "",
			format_bytes(row->returnable_bytes).text);
	if (row->captured_bytes)
		fprintf(out, "; %s of it is kept by graphs",
			format_bytes(row->captured_bytes).text);
	if (row->verdict == FRAGMENTATION_DRIFT)
		fprintf(out, "; the sizes asked for grow a little each time at %s call %s",
			format_count(row->n_drifting).text,
			line_plural(row->n_drifting, "site", "sites"));
	if (row->n_pinners) {
		fprintf(out, "; %s live in the same segments pins them, most of it from ",
			format_bytes(row->pinning_bytes).text);
		put_label(out, source, row->pinners[0].stack_id);
	}
}

static void put_pending(FILE *out, const struct fragmentation_row *row)
{
	fprintf(out, "%s was freed, but waits for work on a stream",
		format_bytes(row->pending_bytes).text);
	for (size_t i = 0; i < row->n_pending && i < N_LINES; i++)
		fprintf(out, "%s 0x%" PRIx64 " (%s)", i ? "," : ": stream", row->pending[i].stream,
			format_bytes(row->pending[i].bytes).text);
}

static void put_cached(FILE *out, const struct fragmentation_row *row)
{
	fprintf(out, "%s of %s is reserved and not in use",
		format_bytes(row->returnable_bytes).text, format_bytes(row->reserved_bytes).text);
	if (row->level == FRAGMENTATION_FRAMEWORK)
		fputs(", in whole segments or pages", out);
	else if (row->threshold_known && row->threshold_bytes >= row->reserved_bytes)
		fputs(": its release threshold keeps it", out);
}

void fragmentation_put_verdict(
	FILE *out, const struct stack_source *source, const struct fragmentation_row *row)
{
	switch (row->verdict) {
	case FRAGMENTATION_PINNED:
	case FRAGMENTATION_DRIFT:
		if (row->level == FRAGMENTATION_DRIVER)
			put_pages(out, source, row);
		else
			put_segments(out, source, row);
		break;
	case FRAGMENTATION_CACHED:
		put_cached(out, row);
		break;
	case FRAGMENTATION_PENDING:
		put_pending(out, row);
		break;
	case FRAGMENTATION_ROUNDING:
		fprintf(out, "%s of %s is taken beyond what was asked for, by rounding",
			format_bytes(row->rounding_bytes).text,
			format_bytes(row->reserved_bytes).text);
		break;
	case FRAGMENTATION_NONE:
		fprintf(out, "nothing of note: %s of %s is idle",
			format_bytes(row->idle_bytes).text, format_bytes(row->reserved_bytes).text);
		break;
	}
}

bool fragmentation_put_advice(FILE *out, const struct fragmentation_row *row)
{
	struct format_text bytes = format_bytes(row->advice_bytes);

	switch (row->advice) {
	case ADVICE_NONE:
		return false;
	case ADVICE_SHARE:
		fprintf(out,
			"take these out of one larger allocation, or from a pool: up to %s would "
			"come free",
			bytes.text);
		break;
	case ADVICE_WHOLE_PAGES:
		fprintf(out, "ask for multiples of %s, or for several at once: up to %s less",
			format_bytes(row->page_bytes).text, bytes.text);
		break;
	case ADVICE_THRESHOLD:
		fprintf(out, "cudaMemPoolTrimTo or a lower release threshold: gives back up to %s",
			bytes.text);
		break;
	case ADVICE_TRIM_GRAPHS:
		fprintf(out, "cudaDeviceGraphMemTrim: gives back up to %s", bytes.text);
		break;
	case ADVICE_SYNCHRONISE:
		fprintf(out,
			"synchronise with these streams before more is asked for: up to %s comes "
			"free",
			bytes.text);
		break;
	case ADVICE_EMPTY_CACHE:
		fprintf(out, "torch.cuda.empty_cache(): gives back %s", bytes.text);
		break;
	case ADVICE_EXPANDABLE:
		if (row->hint) {
			whatif_put_hint(out, row->hint);
			break;
		}
		fprintf(out,
			"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: %s of it is whole "
			"pages, "
			"which can then serve other sizes",
			bytes.text);
		if (row->split_bytes)
			fprintf(out,
				"; or max_split_size_mb below %" PRIu64
				", so that large segments are not cut up for small blocks",
				row->split_bytes >> 20);
		break;
	}
	return true;
}

static void put_line(const struct style *style, const struct report_trace *trace,
	const struct fragmentation_row *row)
{
	struct stack_source source = report_stacks(trace);

	line_begin(style, NULL, true);
	if (trace->overview->replay->model->n_devices > 1)
		fprintf(style->out, "%s, ", report_device_name(row->device).text);
	fragmentation_put_name(style->out, row);
	fprintf(style->out, ", at the %s: ", row->at);
	fragmentation_put_verdict(style->out, &source, row);
	fputc('\n', style->out);
	if (row->advice == ADVICE_NONE)
		return;
	line_begin(style, NULL, false);
	fputs("  ", style->out);
	fragmentation_put_advice(style->out, row);
	fputc('\n', style->out);
}

/* Of what is the matter with the same thing at several moments, the worst is shown. */
static bool is_worst(const struct fragmentation *list, const struct fragmentation_row *row)
{
	for (size_t i = 0; i < list->n_rows; i++) {
		const struct fragmentation_row *other = &list->rows[i];

		if (other == row || other->device != row->device || other->level != row->level ||
			other->pool != row->pool || other->graphs != row->graphs ||
			other->verdict != row->verdict)
			continue;
		if (other->advice_bytes > row->advice_bytes ||
			(other->advice_bytes == row->advice_bytes && other < row))
			return false;
	}
	return true;
}

static size_t count_findings(const struct fragmentation *list)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n_rows; i++)
		n += list->rows[i].verdict != FRAGMENTATION_NONE && is_worst(list, &list->rows[i]);
	return n;
}

void fragmentation_put_section(const struct style *style, const struct report_trace *trace)
{
	const struct fragmentation *list = &trace->overview->fragmentation;
	size_t n_findings = count_findings(list), n = 0;

	if (!n_findings)
		return;
	line_begin(style, "FRAGMENTATION", false);
	fprintf(style->out, "%zu %s\n", n_findings, line_plural(n_findings, "finding", "findings"));
	for (size_t i = 0; i < list->n_rows && n < N_LINES; i++) {
		if (list->rows[i].verdict == FRAGMENTATION_NONE || !is_worst(list, &list->rows[i]))
			continue;
		put_line(style, trace, &list->rows[i]);
		n++;
	}
	if (n == n_findings)
		return;
	line_begin(style, NULL, false);
	fprintf(style->out, "and %zu more (vramtrace fragmentation)\n", n_findings - n);
}

/* "240.0 MiB reserved = 120.0 MiB live + ... " */
static void put_sum(const struct style *style, const struct fragmentation_row *row)
{
	fprintf(style->out, "   %s reserved = %s live in %s %s",
		format_bytes(row->reserved_bytes).text, format_bytes(row->live_bytes).text,
		format_count(row->n_live).text, line_plural(row->n_live, "block", "blocks"));
	if (row->rounding_known)
		fprintf(style->out, " + %s rounding", format_bytes(row->rounding_bytes).text);
	if (row->level != FRAGMENTATION_DRIVER)
		fprintf(style->out, " + %s pending", format_bytes(row->pending_bytes).text);
	fprintf(style->out, " + %s idle", format_bytes(row->idle_bytes).text);
	if (row->returnable_bytes && row->pinned_bytes)
		fprintf(style->out, " (%s could be given back, %s is pinned)",
			format_bytes(row->returnable_bytes).text,
			format_bytes(row->pinned_bytes).text);
	else if (row->idle_bytes)
		fputs(row->pinned_bytes ? ", pinned" : ", could be given back", style->out);
	fputc('\n', style->out);
}

static void put_hole_sizes(const struct style *style, const struct fragmentation_row *row)
{
	if (!row->n_holes)
		return;
	fprintf(style->out, "   %s %s, the largest %s:", format_count(row->n_holes).text,
		line_plural(row->n_holes, "hole", "holes"),
		format_bytes(row->largest_hole_bytes).text);
	for (size_t i = 0; i < row->n_hole_sizes && i < 6; i++)
		fprintf(style->out, "%s %s of %s", i ? "," : "",
			format_count(row->holes[i].count).text,
			format_bytes(row->holes[i].bytes).text);
	fputs(row->n_hole_sizes > 6 ? ", ...\n" : "\n", style->out);
	if (row->requests.n_requests)
		fprintf(style->out,
			"   typical request %s; %s of %s requests would fit the largest hole\n",
			format_bytes(row->requests.median_bytes).text,
			format_count(row->requests.n_fitting).text,
			format_count(row->requests.n_requests).text);
}

static void put_pinner(const struct style *style, const struct stack_source *source,
	const struct fragmentation_pinner *pinner)
{
	style_switch(style, STYLE_HEADING);
	fprintf(style->out, "%10s", format_bytes(pinner->pins_bytes).text);
	style_switch(style, STYLE_PLAIN);
	fprintf(style->out,
		"  held back by %s %s of %s, the smallest 0x%" PRIx64 " of %s, since %s",
		format_count(pinner->count).text, line_plural(pinner->count, "block", "blocks"),
		format_bytes(pinner->live_bytes).text, pinner->address,
		format_bytes(pinner->bytes).text, format_moment(pinner->first_ns).text);
	if (pinner->shared_bytes)
		fprintf(style->out, "; and %s together with others",
			format_bytes(pinner->shared_bytes).text);
	fputc('\n', style->out);
	stack_put(style, source, pinner->stack_id, STACK_INDENT);
}

static void put_segment(const struct style *style, const struct stack_source *source,
	const struct fragmentation_segment *segment)
{
	fprintf(style->out,
		"   segment 0x%" PRIx64 " of %s: %s idle, the largest hole %s, beside %s live in "
		"%s %s\n",
		segment->address, format_bytes(segment->bytes).text,
		format_bytes(segment->idle_bytes).text,
		format_bytes(segment->largest_hole_bytes).text,
		format_bytes(segment->live_bytes).text, format_count(segment->n_live).text,
		line_plural(segment->n_live, "block", "blocks"));
	for (size_t i = 0; i < segment->n_holders; i++) {
		fprintf(style->out, "      0x%" PRIx64 " of %s since %s  ",
			segment->holders[i].address, format_bytes(segment->holders[i].bytes).text,
			format_moment(segment->holders[i].time_ns).text);
		put_label(style->out, source, segment->holders[i].stack_id);
		fputc('\n', style->out);
	}
}

static void put_left_out(const struct style *style, size_t n, const char *one, const char *many)
{
	if (n)
		fprintf(style->out, "   and %zu more %s (--limit)\n", n, line_plural(n, one, many));
}

static void put_row(const struct style *style, const struct stack_source *source,
	const struct fragmentation_row *row)
{
	style_switch(style, STYLE_HEADING);
	fragmentation_put_name(style->out, row);
	style_switch(style, STYLE_PLAIN);
	fprintf(style->out, " on %s, at %s (%s)\n", report_device_name(row->device).text,
		format_moment(row->time_ns).text, row->at);
	put_sum(style, row);
	put_hole_sizes(style, row);
	style_put(style, row->verdict == FRAGMENTATION_NONE ? STYLE_PLAIN : STYLE_WARNING,
		row->verdict == FRAGMENTATION_NONE ? "   " : " ! ");
	fragmentation_put_verdict(style->out, source, row);
	fputc('\n', style->out);
	if (row->advice != ADVICE_NONE) {
		fputs("   ", style->out);
		fragmentation_put_advice(style->out, row);
		fputc('\n', style->out);
	}
	for (size_t i = 0; i < row->n_pinners; i++)
		put_pinner(style, source, &row->pinners[i]);
	put_left_out(style, row->n_pinners_left_out, "call site", "call sites");
	for (size_t i = 0; i < row->n_segments; i++)
		put_segment(style, source, &row->segments[i]);
	put_left_out(style, row->n_segments_left_out, "segment", "segments");
	fputc('\n', style->out);
}

void fragmentation_text(const struct style *style, const struct report_trace *trace)
{
	const struct overview *overview = trace->overview;
	struct stack_source source = report_stacks(trace);
	size_t n = overview->fragmentation.n_rows;

	if (!overview->replay->model->hooks_active)
		report_put_inactive(style);
	report_put_header(style, trace);
	fputc('\n', style->out);
	for (size_t i = 0; i < overview->fragmentation.n_rows; i++)
		put_row(style, &source, &overview->fragmentation.rows[i]);
	for (size_t i = 0; i < overview->ooms.n_items; i++) {
		const struct fragmentation *levels = &overview->ooms.items[i].levels;

		n += levels->n_rows;
		for (size_t k = 0; k < levels->n_rows; k++)
			put_row(style, &source, &levels->rows[k]);
	}
	if (!n)
		fputs("Nothing was held that could be fragmented.\n", style->out);
}
