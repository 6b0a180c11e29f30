/* Several traces as one, on one screen. */
#ifndef VRAMTRACE_OUTPUT_TOGETHER_TEXT_H
#define VRAMTRACE_OUTPUT_TOGETHER_TEXT_H

#include "output/report.h"

/* More processes than this are shown together only, not also one by one. */
#define TOGETHER_MAX_SCREENS 4u

/* The screen of n traces together, then that of each, when they are few; of one, its own alone. */
void together_text(const struct style *style, const struct report_trace *traces, size_t n,
	const struct together *together);

/* The section about the ranks of each launch of several; see ranks_text.c. */
void ranks_put_section(const struct style *style, const struct report_trace *traces,
	const struct together *together);

#endif
