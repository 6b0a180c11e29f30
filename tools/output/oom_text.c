#include "output/oom_text.h"

#include <inttypes.h>
#include <string.h>

#include "output/account_text.h"
#include "output/fragmentation_text.h"
#include "output/line.h"
#include "output/whatif_text.h"

#define N_LINES	     3u /* in the one-screen report */
#define STACK_INDENT 6u
#define MAX_LABEL    200u
#define OWNER_WIDTH  14u

static void put_asked(FILE *out, const struct oom *oom)
{
	const struct episode *episode = &oom->episode;
	uint64_t bytes = episode->reported ? episode->report_bytes : episode->bytes;
	const char *where = episode->want == EPISODE_HOST	     ? " of the host"
			    : episode->want == EPISODE_ADDRESS_SPACE ? " of address space"
								     : "";

	if (bytes)
		fprintf(out, "asked %s%s", format_bytes(bytes).text, where);
	else
		fprintf(out, "asked memory for %s, how much is not told",
			episode->want == EPISODE_CONTEXT ? "a context"
			: episode->want == EPISODE_GRAPH ? "a graph"
							 : "code");
	if (oom->free_known)
		fprintf(out, "%s, the driver had %s%s",
			oom->capped ? " under a limit of its own" : "",
			oom->free_measured ? "" : "about ", format_bytes(oom->free_bytes).text);
}

static void put_class(FILE *out, enum oom_class class)
{
	for (const char *p = oom_class_name(class); *p; p++)
		fputc(*p == '_' ? ' ' : *p, out);
}

static void put_line(
	const struct style *style, const struct report_trace *trace, const struct oom *oom)
{
	struct stack_source source = report_stacks(trace);
	char label[MAX_LABEL];

	line_begin(style, NULL, !oom->episode.recovered);
	fprintf(style->out, "%s  ", format_moment(oom->episode.last_ns).text);
	if (trace->overview->replay->model->n_devices > 1)
		fprintf(style->out, "%s: ", report_device_name(oom->episode.device).text);
	put_asked(style->out, oom);
	fputs(": ", style->out);
	put_class(style->out, oom->class);
	stack_label(&source,
		oom->episode.reported ? oom->episode.report_stack_id : oom->episode.stack_id, label,
		sizeof(label));
	fputs("  ", style->out);
	style_put_cut(style, label, style->width > 80 ? style->width / 2 : 40, false);
	fputc('\n', style->out);
	line_begin(style, NULL, false);
	fputs("  ", style->out);
	oom_put_reason(style->out, &source, oom);
	fputs(oom->episode.recovered ? "; a retry succeeded\n" : "\n", style->out);
	if (oom->hint) {
		line_begin(style, NULL, false);
		fputs("  ", style->out);
		whatif_put_hint(style->out, oom->hint);
		fputc('\n', style->out);
	}
	if (!oom->n_remedies)
		return;
	line_begin(style, NULL, false);
	fputs("  would have sufficed: ", style->out);
	oom_put_remedy(style->out, &source, oom, &oom->remedies[0]);
	fputc('\n', style->out);
}

/* Those that were not survived first. */
static size_t put_lines(
	const struct style *style, const struct report_trace *trace, bool recovered, size_t room)
{
	const struct oom_list *list = &trace->overview->ooms;
	size_t n = 0;

	for (size_t i = 0; i < list->n_items && n < room; i++) {
		if (list->items[i].episode.recovered != recovered)
			continue;
		put_line(style, trace, &list->items[i]);
		n++;
	}
	return n;
}

void oom_put_section(const struct style *style, const struct report_trace *trace)
{
	const struct oom_list *list = &trace->overview->ooms;
	uint64_t n = list->n_items + list->n_left_out, n_recovered = 0;
	size_t shown;

	if (!n)
		return;
	for (size_t i = 0; i < list->n_items; i++)
		n_recovered += list->items[i].episode.recovered;
	line_begin(style, "OUT OF MEMORY", false);
	fprintf(style->out, "%s %s", format_count(n).text, line_plural(n, "episode", "episodes"));
	if (n_recovered)
		fprintf(style->out, ", %s of them overcome by a retry",
			format_count(n_recovered).text);
	fputc('\n', style->out);
	shown = put_lines(style, trace, false, N_LINES);
	shown += put_lines(style, trace, true, N_LINES - shown);
	if (n == shown)
		return;
	line_begin(style, NULL, false);
	fprintf(style->out, "and %s more (vramtrace oom)\n", format_count(n - shown).text);
}

static void put_heading(const struct style *style, const char *text)
{
	style_put(style, STYLE_HEADING, text);
	fputc('\n', style->out);
}

static void put_request(
	const struct style *style, const struct stack_source *source, const struct oom *oom)
{
	const struct episode *episode = &oom->episode;
	const char *name = oom_call_name(source->model, oom);
	FILE *out = style->out;

	style_put(style, STYLE_HEADING, "OUT OF MEMORY");
	fprintf(out, " %zu at %s on %s, thread %u\n   ", oom->number,
		format_moment(episode->last_ns).text, report_device_name(episode->device).text,
		episode->tid);
	put_asked(out, oom);
	if (oom->total_bytes)
		fprintf(out, " of %s free", format_bytes(oom->total_bytes).text);
	fputs(", in ", out);
	format_put_text(out, (struct vt_text){name, strlen(name)});
	if (episode->n_calls > 1)
		fprintf(out, "; %s tries in %s", format_count(episode->n_calls).text,
			format_duration(episode->last_ns - episode->first_ns).text);
	fputs(episode->recovered ? "; then a retry succeeded\n" : "\n", out);
	style_put(style, STYLE_WARNING, episode->recovered ? "   " : " ! ");
	put_class(out, oom->class);
	fputs(": ", out);
	oom_put_reason(out, source, oom);
	fputc('\n', out);
	stack_put(style, source, episode->stack_id ? episode->stack_id : episode->report_stack_id,
		STACK_INDENT);
}

static void put_remedies(
	const struct style *style, const struct stack_source *source, const struct oom *oom)
{
	if (!oom->n_remedies)
		return;
	put_heading(style, "Each of these would have sufficed");
	for (size_t i = 0; i < oom->n_remedies; i++) {
		fputs("   ", style->out);
		oom_put_remedy(style->out, source, oom, &oom->remedies[i]);
		fputc('\n', style->out);
	}
}

static void put_kinds(const struct style *style, const struct oom *oom)
{
	for (uint32_t kind = 0; kind < VT_N_KINDS; kind++) {
		const struct model_totals *totals =
			kind == VT_KIND_PINNED || kind == VT_KIND_REGISTERED
				? &oom->host_kinds[kind]
				: &oom->kinds[kind];

		if (totals->n_live)
			fprintf(style->out, "%12s  %s in %s %s\n",
				format_bytes(totals->live_bytes).text, model_kind_name(kind),
				format_count(totals->n_live).text,
				line_plural(totals->n_live, "block", "blocks"));
	}
	if (oom->reserved_address_bytes)
		fprintf(style->out, "%12s  of address space reserved, %s of it mapped\n",
			format_bytes(oom->reserved_address_bytes).text,
			format_bytes(oom->mapped_bytes).text);
}

static void put_levels(const struct style *style, const struct oom *oom)
{
	for (size_t i = 0; i < oom->levels.n_rows; i++) {
		const struct fragmentation_row *row = &oom->levels.rows[i];

		fprintf(style->out, "%12s  idle of %s reserved, ",
			format_bytes(row->idle_bytes).text, format_bytes(row->reserved_bytes).text);
		fragmentation_put_name(style->out, row);
		if (row->pending_bytes)
			fprintf(style->out, "; %s more waits for streams",
				format_bytes(row->pending_bytes).text);
		fputc('\n', style->out);
	}
}

static void put_hint(const struct style *style, const struct oom *oom)
{
	if (!oom->hint)
		return;
	put_heading(style, "Under another setting (vramtrace whatif)");
	fputs("   ", style->out);
	whatif_put_hint(style->out, oom->hint);
	fputc('\n', style->out);
}

static void put_device(const struct style *style, const struct oom *oom)
{
	put_heading(style, "The device then");
	if (oom->account.seen) {
		fputs("   ", style->out);
		account_put_line(style, &oom->account);
		fputc('\n', style->out);
	}
	if (oom->listed.seen && oom->listed.n_processes)
		fprintf(style->out, "%12s  in %s other %s, the largest %" PRIu64 " with %s\n",
			format_bytes(oom->listed.used_bytes).text,
			format_count(oom->listed.n_processes).text,
			line_plural(oom->listed.n_processes, "process", "processes"),
			oom->listed.largest_pid, format_bytes(oom->listed.largest_bytes).text);
	put_kinds(style, oom);
	put_levels(style, oom);
}

/* One line each: the stacks are in `vramtrace peak --at oom`. */
static void put_holders(
	const struct style *style, const struct stack_source *source, const struct oom *oom)
{
	struct site_groups groups;

	if (!oom->holders.n_rows)
		return;
	put_heading(style, oom->class == OOM_ADDRESS_SPACE ? "Who reserved it" : "Who held it");
	oom_groups_make(&groups, source, oom);
	for (size_t i = 0; i < groups.n_items; i++) {
		const struct site_group *group = &groups.items[i];

		fprintf(style->out, "%12s  ", format_bytes(group->bytes).text);
		style_put_cut(style, group->owner, OWNER_WIDTH, true);
		fprintf(style->out, "  %s %s  ", format_count(group->count).text,
			group->level == SITE_IDLE ? line_plural(group->count, "segment", "segments")
						  : line_plural(group->count, "block", "blocks"));
		format_put_text(style->out, (struct vt_text){group->label, strlen(group->label)});
		fputs(group->grows ? ", a little more each time\n" : "\n", style->out);
	}
	site_groups_release(&groups);
	if (oom->holders.n_left_out)
		fprintf(style->out, "%12s  at %s more sites (--limit)\n",
			format_bytes(oom->holders.left_out_bytes).text,
			format_count(oom->holders.n_left_out).text);
}

void oom_text(const struct style *style, const struct report_trace *trace)
{
	const struct overview *overview = trace->overview;
	struct stack_source source = report_stacks(trace);

	if (!overview->replay->model->hooks_active)
		report_put_inactive(style);
	report_put_header(style, trace);
	fputc('\n', style->out);
	for (size_t i = 0; i < overview->ooms.n_items; i++) {
		const struct oom *oom = &overview->ooms.items[i];

		put_request(style, &source, oom);
		put_remedies(style, &source, oom);
		put_hint(style, oom);
		put_device(style, oom);
		put_holders(style, &source, oom);
		oom_put_events(style, &source, oom);
		fputc('\n', style->out);
	}
	if (overview->ooms.n_left_out)
		fprintf(style->out, "and %s more (--limit)\n",
			format_count(overview->ooms.n_left_out).text);
	if (!overview->ooms.n_items)
		fputs("Nothing was refused for lack of memory.\n", style->out);
}
