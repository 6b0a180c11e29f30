/* The report, as one screen of text and as JSON (schema "vramtrace.report"). */
#ifndef VRAMTRACE_OUTPUT_REPORT_H
#define VRAMTRACE_OUTPUT_REPORT_H

#include "analysis/overview.h"
#include "analysis/together.h"
#include "output/format.h"
#include "output/json.h"
#include "output/show.h"
#include "output/stack.h"
#include "output/style.h"

/* One trace to show, borrowed, and what to show of it. */
struct report_trace {
	const struct overview *overview;
	struct symbol_table *symbols;
	struct show show;
};

/* Its stacks. */
struct stack_source report_stacks(const struct report_trace *trace);

/* Parts of the JSON; traces[] and devices[] are always there. */
enum report_part {
	REPORT_PEAKS = 1,
	REPORT_LEAKS = 2,
	REPORT_TRANSFERS = 4,
	REPORT_FRAGMENTATION = 8,
	REPORT_OOM = 16,
	REPORT_ALL = 63, /* the whole schema */
};

void report_json(FILE *out, const struct report_trace *traces, size_t n, unsigned int parts);

/* The whole schema, with what the traces are together. */
void report_json_together(
	FILE *out, const struct report_trace *traces, size_t n, const struct together *together);

/* The same on one line, for a script element: no text in it can end that. */
void report_json_in_html(
	FILE *out, const struct report_trace *traces, size_t n, const struct together *together);

/* One trace on one screen. */
void report_text(const struct style *style, const struct report_trace *trace);

/* What ran: the command line where it is known, cut to about so many columns. */
void report_put_program(
	const struct style *style, const struct report_trace *trace, size_t columns);

/* "ended: exit 0", "still running". */
void report_put_end(const struct style *style, const struct trace_facts *facts);

/* Where no call of the driver came through the recorder: that no total can be given. */
void report_put_inactive(const struct style *style);

/* "what ran · pid · host · how long · how it ended · how much was recorded", and what is wrong with
 * the trace. */
void report_put_header(const struct style *style, const struct report_trace *trace);

/* "GPU 0  NVIDIA H200  139.8 GiB", one a device. */
void report_put_devices(const struct style *style, const struct report_trace *trace);

/* "GPU 0", "host" or "unknown GPU". */
struct format_text report_device_name(int ordinal);

#endif
