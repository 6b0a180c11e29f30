/* The end of the one-screen report: what the numbers above it lack. */
#ifndef VRAMTRACE_OUTPUT_NOT_SEEN_H
#define VRAMTRACE_OUTPUT_NOT_SEEN_H

#include "output/report.h"

/* Prints nothing when nothing is lacking. */
void not_seen_put(const struct style *style, const struct report_trace *trace);

#endif
