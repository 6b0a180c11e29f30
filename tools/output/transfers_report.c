/* The lines about copies of the one-screen report. */
#include "output/line.h"
#include "output/transfer_words.h"
#include "output/transfers_text.h"

#define N_WORST	  3u
#define MAX_LABEL 200u

static void put_total(const struct style *style, const struct transfer_sum *kinds,
	uint32_t direction, const char *heading)
{
	struct transfer_sum sum = {0};
	bool split = false;

	for (uint32_t kind = 0; kind < MODEL_N_HOST_KINDS; kind++)
		transfer_sum_add(&sum, &kinds[kind]);
	line_begin(style, heading, false);
	fprintf(style->out, "%s %s in %s %s", format_bytes(sum.bytes).text,
		transfer_where(direction), format_count(sum.n_calls).text,
		line_plural(sum.n_calls, "call", "calls"));
	if (sum.n_copies > sum.n_calls)
		fprintf(style->out, " (%s copies)", format_count(sum.n_copies).text);
	fprintf(style->out, ", %s of host time", format_duration(sum.host_time_ns).text);
	for (uint32_t kind = MODEL_HOST_PAGEABLE; kind < MODEL_N_HOST_KINDS; kind++) {
		if (!kinds[kind].n_copies)
			continue;
		fprintf(style->out, "%s%s %s", split ? ", " : ": ",
			format_bytes(kinds[kind].bytes).text, model_host_kind_name(kind));
		split = true;
	}
	fputc('\n', style->out);
}

static void put_worst(
	const struct style *style, const struct report_trace *trace, const char *heading)
{
	const struct transfers *transfers = &trace->overview->transfers;
	struct stack_source source = report_stacks(trace);
	size_t n = 0;

	for (size_t i = 0; i < transfers->n_findings && n < N_WORST; i++) {
		const struct transfer_finding *finding = &transfers->findings[i];
		char label[MAX_LABEL];

		if (finding->is_possible)
			continue;
		n++;
		stack_label(&source, finding->stack_id, label, sizeof(label));
		line_begin(style, heading, true);
		heading = NULL;
		transfer_put_finding(style, transfers, finding);
		fputs("  ", style->out);
		style_put_cut(style, label, style->width > 80 ? style->width / 2 : 40, false);
		fputc('\n', style->out);
		line_begin(style, NULL, false);
		fprintf(style->out, "-> %s\n", transfer_finding_fix(finding));
	}
	if (transfers->n_findings == n)
		return;
	line_begin(style, heading, false);
	fprintf(style->out, "%s%s %s%s (vramtrace transfers)\n", n ? "and " : "",
		format_count(transfers->n_findings - n).text, n ? "more " : "",
		line_plural(transfers->n_findings - n, "finding", "findings"));
}

void transfers_text_report(const struct style *style, const struct report_trace *trace)
{
	const struct transfers *transfers = &trace->overview->transfers;
	const char *heading = "TRANSFERS";

	for (uint32_t direction = VT_DIR_H2D; direction < VT_N_DIRECTIONS; direction++) {
		uint64_t n_copies = 0;

		for (uint32_t kind = 0; kind < MODEL_N_HOST_KINDS; kind++)
			n_copies += transfers->totals[direction][kind].n_copies;
		if (!n_copies)
			continue;
		put_total(style, transfers->totals[direction], direction, heading);
		heading = NULL;
	}
	put_worst(style, trace, heading);
}
