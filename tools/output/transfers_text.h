/* Copies in full: tables, findings with stacks, traffic over time. */
#ifndef VRAMTRACE_OUTPUT_TRANSFERS_TEXT_H
#define VRAMTRACE_OUTPUT_TRANSFERS_TEXT_H

#include "analysis/sites.h"
#include "output/report.h"

/* Of all the traces together, but for traffic over time; of findings and stacks what filter says.
 */
void transfers_text(const struct style *style, const struct report_trace *traces, size_t n,
	const struct site_filter *filter);

/* The lines of the one-screen report: totals by direction and the worst findings. */
void transfers_text_report(const struct style *style, const struct report_trace *trace);

#endif
