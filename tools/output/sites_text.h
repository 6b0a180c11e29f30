/* The full views of `leaks` and `peak`: every site with its whole stack. */
#ifndef VRAMTRACE_OUTPUT_SITES_TEXT_H
#define VRAMTRACE_OUTPUT_SITES_TEXT_H

#include "output/report.h"

/* Header, then what is live at the end by site. */
void sites_text_leaks(const struct style *style, const struct report_trace *trace);

/* Header, then each view of the overview by site. */
void sites_text_views(const struct style *style, const struct report_trace *trace);

#endif
