/* Copies in full: tables, findings with stacks, traffic over time. */
#ifndef VRAMTRACE_OUTPUT_TRANSFERS_TEXT_H
#define VRAMTRACE_OUTPUT_TRANSFERS_TEXT_H

#include "output/report.h"

/* Of all the traces together, but for traffic over time and page-locked memory; at most `limit`
 * findings and stacks, 0: all. */
void transfers_text(
	const struct style *style, const struct report_trace *traces, size_t n, size_t limit);

/* The lines of the one-screen report: totals by direction and the worst findings. */
void transfers_text_report(const struct style *style, const struct report_trace *trace);

#endif
