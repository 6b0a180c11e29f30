#include "output/transfers_text.h"

#include <stdlib.h>

#include "analysis/order.h"
#include "model/memory.h"
#include "output/line.h"
#include "output/phases_text.h"
#include "output/transfer_words.h"

#define STACK_INDENT 6u
#define N_TIMES	     12u
#define KIND_COLUMNS 30 /* of one sort of host memory in the table of sizes */

/* One finding or row, and the trace that it is of. */
struct item {
	const struct report_trace *trace;
	const struct transfer_finding *finding;
	const struct transfer_row *row;
};

/* Of all traces together. */
struct merged {
	const struct report_trace *traces;
	size_t n_traces;
	struct transfer_sum totals[VT_N_DIRECTIONS][MODEL_N_HOST_KINDS];
	struct transfer_sum *sizes;
	struct item *findings;
	size_t n_findings;
	struct item *rows;
	size_t n_rows;
};

static const struct transfers *transfers_of(const struct report_trace *trace)
{
	return &trace->overview->transfers;
}

static int compare_findings(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return transfer_finding_order(x->finding, y->finding);
}

static uint64_t host_ns(const struct item *item)
{
	return item->row->sum.host_time_ns + item->row->sum.waited.ns;
}

static int compare_rows(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int order = order_of(host_ns(y), host_ns(x));

	if (!order)
		order = order_of(y->row->sum.bytes, x->row->sum.bytes);
	return order ? order : order_of(x->row->key.stack_id, y->row->key.stack_id);
}

static void merge_trace(struct merged *merged, const struct report_trace *trace)
{
	const struct transfers *transfers = transfers_of(trace);

	for (uint32_t d = 0; d < VT_N_DIRECTIONS; d++)
		for (uint32_t k = 0; k < MODEL_N_HOST_KINDS; k++)
			transfer_sum_add(&merged->totals[d][k], &transfers->totals[d][k]);
	for (size_t i = 0; i < TRANSFER_N_SIZES; i++)
		transfer_sum_add(&merged->sizes[i], &transfers->sizes[i]);
	for (size_t i = 0; i < transfers->n_findings; i++)
		merged->findings[merged->n_findings++] =
			(struct item){trace, &transfers->findings[i], NULL};
	for (size_t i = 0; i < transfers->n_rows; i++)
		merged->rows[merged->n_rows++] = (struct item){trace, NULL, &transfers->rows[i]};
}

static void merge(struct merged *merged, const struct report_trace *traces, size_t n)
{
	size_t n_findings = 0, n_rows = 0;

	*merged = (struct merged){.traces = traces,
		.n_traces = n,
		.sizes = memory_new(TRANSFER_N_SIZES, sizeof(*merged->sizes))};
	for (size_t i = 0; i < n; i++) {
		n_findings += transfers_of(&traces[i])->n_findings;
		n_rows += transfers_of(&traces[i])->n_rows;
	}
	merged->findings = memory_new(n_findings + 1, sizeof(*merged->findings));
	merged->rows = memory_new(n_rows + 1, sizeof(*merged->rows));
	for (size_t i = 0; i < n; i++)
		merge_trace(merged, &traces[i]);
	if (merged->n_findings)
		qsort(merged->findings, merged->n_findings, sizeof(*merged->findings),
			compare_findings);
	if (merged->n_rows)
		qsort(merged->rows, merged->n_rows, sizeof(*merged->rows), compare_rows);
}

static void merged_release(struct merged *merged)
{
	free(merged->sizes);
	free(merged->findings);
	free(merged->rows);
}

static const char *kind_words(uint32_t host_kind)
{
	const char *name = model_host_kind_name(host_kind);

	return name ? name : "no host memory";
}

static void put_rate(const struct style *style, uint64_t rate, int columns)
{
	fprintf(style->out, "%*s", columns, rate ? format_rate(rate).text : "-");
}

static void put_total(const struct style *style, const struct transfer_sum *sum, uint32_t direction,
	uint32_t host_kind)
{
	fprintf(style->out, "%-20s %-14s%11s", transfer_where(direction), kind_words(host_kind),
		format_count(sum->n_calls).text);
	fprintf(style->out, "%11s%11s", format_bytes(sum->bytes).text,
		format_duration(sum->host_time_ns).text);
	put_rate(style, transfer_sum_rate(sum), 12);
	fprintf(style->out, "%9s%9s", format_count(sum->blocked.n).text,
		format_count(sum->n_small).text);
	if (sum->n_copies > sum->n_calls)
		fprintf(style->out, "  (%s copies)", format_count(sum->n_copies).text);
	fputc('\n', style->out);
}

static void put_totals(const struct style *style, const struct merged *merged)
{
	style_put(style, STYLE_HEADING, "COPIES");
	fprintf(style->out, "%*s%11s%11s%11s%12s%9s%9s\n", 29, "", "calls", "bytes", "host time",
		"rate", "blocked", "small");
	for (uint32_t d = VT_DIR_H2D; d < VT_N_DIRECTIONS; d++)
		for (uint32_t k = 0; k < MODEL_N_HOST_KINDS; k++)
			if (merged->totals[d][k].n_copies)
				put_total(style, &merged->totals[d][k], d, k);
	fputc('\n', style->out);
}

/* Rates of pinned memory that findings were estimated with. */
static void put_rates(const struct style *style, const struct merged *merged)
{
	static const uint32_t directions[] = {VT_DIR_H2D, VT_DIR_D2H, VT_DIR_P2P};

	for (size_t i = 0; i < merged->n_traces; i++) {
		const struct transfers *transfers = transfers_of(&merged->traces[i]);

		for (size_t k = 0; k < sizeof(directions) / sizeof(*directions); k++) {
			const struct transfer_rate *rate = &transfers->rates[directions[k]];
			uint64_t n_copies = 0;

			for (uint32_t kind = 0; kind < MODEL_N_HOST_KINDS; kind++)
				n_copies += transfers->totals[directions[k]][kind].n_copies;
			if (n_copies)
				fprintf(style->out, "%s %s: %s (%s)\n",
					directions[k] == VT_DIR_P2P ? "device memory"
								    : "pinned memory",
					transfer_where(directions[k]),
					format_rate(rate->bytes_per_s).text,
					transfer_source_words(rate->source));
		}
	}
	fputc('\n', style->out);
}

static void put_other(const struct style *style, const struct item *item)
{
	struct stack_source source = report_stacks(item->trace);
	const char *words = transfer_other_words(item->finding);
	char label[200];

	if (!words)
		return;
	stack_label(&source, item->finding->other_stack_id, label, sizeof(label));
	fprintf(style->out, "      %s ", words);
	style_put_cut(style, label, style->width > 80 ? style->width - 30 : 50, false);
	fputc('\n', style->out);
}

static void put_finding(
	const struct style *style, const struct merged *merged, const struct item *item)
{
	struct stack_source source = report_stacks(item->trace);

	style_put(style, STYLE_WARNING, item->finding->is_lost ? "  ! " : "  ? ");
	transfer_put_finding(style, transfers_of(item->trace), item->finding);
	fputc('\n', style->out);
	if (merged->n_traces > 1) {
		fputs("      in ", style->out);
		format_put_file(style->out, item->trace->overview->facts.file);
		fputc('\n', style->out);
	}
	fprintf(style->out, "      -> %s\n", transfer_finding_fix(item->finding));
	put_other(style, item);
	stack_put(style, &source, item->finding->stack_id, STACK_INDENT);
	fputc('\n', style->out);
}

static void put_left_out(const struct style *style, size_t n, const char *one, const char *many)
{
	if (n)
		fprintf(style->out, "  and %s more %s (--limit)\n\n", format_count(n).text,
			line_plural(n, one, many));
}

static size_t at_most(size_t n, size_t limit)
{
	return limit && limit < n ? limit : n;
}

static void put_findings(const struct style *style, const struct merged *merged, size_t limit)
{
	size_t shown = at_most(merged->n_findings, limit);

	style_put(style, STYLE_HEADING, "FINDINGS");
	fputs(merged->n_findings ? "\n\n" : "  none\n\n", style->out);
	for (size_t i = 0; i < shown; i++)
		put_finding(style, merged, &merged->findings[i]);
	put_left_out(style, merged->n_findings - shown, "finding", "findings");
}

static bool has_size(const struct merged *merged, uint32_t direction, unsigned int size_class)
{
	for (uint32_t k = 0; k < MODEL_N_HOST_KINDS; k++)
		if (merged->sizes[transfer_size_index(direction, k, size_class)].n_copies)
			return true;
	return false;
}

/* How many, the host time of a call, and the rate. */
static void put_size(const struct style *style, const struct transfer_sum *sum)
{
	if (!sum->n_copies) {
		fprintf(style->out, "%*s", KIND_COLUMNS, "");
		return;
	}
	fprintf(style->out, "%8s", format_count(sum->n_copies).text);
	fprintf(style->out, "%9s",
		sum->n_calls ? format_duration(sum->host_time_ns / sum->n_calls).text : "-");
	put_rate(style, transfer_sum_rate(sum), 11);
}

static void put_sizes_of(const struct style *style, const struct merged *merged, uint32_t direction)
{
	fprintf(style->out, "%-22s", transfer_where(direction));
	for (uint32_t k = 0; k < MODEL_N_HOST_KINDS; k++)
		if (merged->totals[direction][k].n_copies)
			fprintf(style->out, "%*s", KIND_COLUMNS, kind_words(k));
	fputc('\n', style->out);
	for (unsigned int c = 0; c < MODEL_N_SIZE_CLASSES; c++) {
		if (!has_size(merged, direction, c))
			continue;
		fprintf(style->out, "%12s or more", c ? format_bytes(1ull << (c - 1)).text : "0 B");
		fputc(' ', style->out);
		for (uint32_t k = 0; k < MODEL_N_HOST_KINDS; k++)
			if (merged->totals[direction][k].n_copies)
				put_size(style,
					&merged->sizes[transfer_size_index(direction, k, c)]);
		fputc('\n', style->out);
	}
	fputc('\n', style->out);
}

static void put_sizes(const struct style *style, const struct merged *merged)
{
	style_put(style, STYLE_HEADING, "SIZES");
	fputs("  number of copies, host time of a call, rate\n", style->out);
	for (uint32_t d = VT_DIR_H2D; d < VT_N_DIRECTIONS; d++) {
		bool any = false;

		for (unsigned int c = 0; c < MODEL_N_SIZE_CLASSES && !any; c++)
			any = has_size(merged, d, c);
		if (any)
			put_sizes_of(style, merged, d);
	}
}

static void put_stretch(const struct style *style, const struct model_traffic *traffic,
	const struct model_stretch *sum, size_t from, size_t n)
{
	uint64_t length_ns = traffic->stretch_ns * n;

	fprintf(style->out, "%12s",
		format_moment(traffic->start_ns + traffic->stretch_ns * from).text);
	for (uint32_t d = VT_DIR_H2D; d <= VT_DIR_P2P; d++) {
		double rate = (double)sum->bytes[d] * 1e9 / (double)length_ns;

		put_rate(style, rate < 1e18 ? (uint64_t)rate : 0, 18);
	}
	fprintf(style->out, "%14s\n", format_share(sum->host_time_ns, length_ns).text);
}

/* What was asked for in each part of the time between the first and the last copy. */
static void put_times(const struct style *style, const struct report_trace *trace)
{
	const struct model_traffic *traffic = &transfers_of(trace)->model->traffic;
	size_t used = 0, step;

	for (size_t i = 0; i < MODEL_N_STRETCHES; i++) {
		const struct model_stretch *stretch = &traffic->stretches[i];
		uint64_t any = stretch->host_time_ns;

		for (uint32_t d = 0; d < VT_N_DIRECTIONS; d++)
			any |= stretch->bytes[d];
		if (any)
			used = i + 1;
	}
	if (!used)
		return;
	step = (used + N_TIMES - 1) / N_TIMES;
	style_put(style, STYLE_HEADING, "OVER TIME");
	fprintf(style->out, "%3s%18s%18s%18s%18s%14s\n", "", transfer_where(VT_DIR_H2D),
		transfer_where(VT_DIR_D2H), transfer_where(VT_DIR_D2D), transfer_where(VT_DIR_P2P),
		"host time");
	for (size_t from = 0; from < used; from += step) {
		struct model_stretch sum = {0};
		size_t n = from + step < used ? step : used - from;

		for (size_t i = from; i < from + n; i++) {
			for (uint32_t d = 0; d < VT_N_DIRECTIONS; d++)
				sum.bytes[d] += traffic->stretches[i].bytes[d];
			sum.host_time_ns += traffic->stretches[i].host_time_ns;
		}
		put_stretch(style, traffic, &sum, from, n);
	}
	fputc('\n', style->out);
}

static void put_row(const struct style *style, const struct item *item)
{
	struct stack_source source = report_stacks(item->trace);
	const struct transfer_sum *sum = &item->row->sum;
	const char *kind = model_host_kind_name(item->row->key.host_kind);

	style_switch(style, STYLE_HEADING);
	fprintf(style->out, "%10s", format_duration(sum->host_time_ns).text);
	style_switch(style, STYLE_PLAIN);
	if (sum->waited.n)
		fprintf(style->out, " and %s waiting", format_duration(sum->waited.ns).text);
	fprintf(style->out, "  %s in %s %s %s", format_bytes(sum->bytes).text,
		format_count(sum->n_copies).text, line_plural(sum->n_copies, "copy", "copies"),
		transfer_where(item->row->key.direction));
	if (kind)
		fprintf(style->out, ", %s memory", kind);
	if (transfer_sum_rate(sum))
		fprintf(style->out, ", %s", format_rate(transfer_sum_rate(sum)).text);
	fputc('\n', style->out);
	stack_put(style, &source, item->row->key.stack_id, STACK_INDENT);
	fputc('\n', style->out);
}

static void put_rows(const struct style *style, const struct merged *merged, size_t limit)
{
	size_t shown = at_most(merged->n_rows, limit);

	style_put(style, STYLE_HEADING, "CALL STACKS");
	fputs("  most host time first\n\n", style->out);
	for (size_t i = 0; i < shown; i++)
		put_row(style, &merged->rows[i]);
	put_left_out(style, merged->n_rows - shown, "stack", "stacks");
}

static void put_locked(const struct style *style, const struct report_trace *trace, size_t limit)
{
	const struct transfers *transfers = transfers_of(trace);
	struct stack_source source = report_stacks(trace);
	size_t shown = at_most(transfers->n_pinnings, limit);

	if (!transfers->n_pinnings)
		return;
	style_put(style, STYLE_HEADING, "PAGE-LOCKED");
	fprintf(style->out, "%12s%10s%13s%15s%10s\n", "", "blocks", "bytes", "used by copies",
		"live");
	for (size_t i = 0; i < shown; i++) {
		const struct transfer_pinning *place = &transfers->pinnings[i];
		const struct model_pinning *pinning = place->pinning;
		char label[200];

		stack_label(&source, pinning->key.stack_id, label, sizeof(label));
		fprintf(style->out, "  %-21s%10s", model_kind_name(pinning->key.kind),
			format_count(pinning->n_locked).text);
		fprintf(style->out, "%13s%15s", format_bytes(pinning->locked_bytes).text,
			format_bytes(pinning->touched_bytes).text);
		fprintf(style->out, "%10s  ", format_count(place->n_live).text);
		style_put_cut(style, label, style->width > 110 ? style->width - 74 : 36, false);
		fputc('\n', style->out);
	}
	fputc('\n', style->out);
	put_left_out(style, transfers->n_pinnings - shown, "place", "places");
}

void transfers_text(
	const struct style *style, const struct report_trace *traces, size_t n, size_t limit)
{
	bool active = false;
	struct merged merged;

	for (size_t i = 0; i < n; i++) {
		bool hooks = traces[i].overview->replay->model->hooks_active;

		active = active || hooks;
		if (!hooks)
			report_put_inactive(style);
		report_put_header(style, &traces[i]);
	}
	fputc('\n', style->out);
	if (!active)
		return;
	merge(&merged, traces, n);
	put_totals(style, &merged);
	put_rates(style, &merged);
	put_findings(style, &merged, limit);
	if (merged.n_rows) {
		put_sizes(style, &merged);
		for (size_t i = 0; i < n; i++) {
			put_times(style, &traces[i]);
			phases_put_copies(style, traces[i].overview->replay->model, limit);
		}
	}
	for (size_t i = 0; i < n; i++)
		put_locked(style, &traces[i], limit);
	if (merged.n_rows)
		put_rows(style, &merged, limit);
	merged_release(&merged);
}
