/* Contexts in which nothing was allocated, as text. */
#ifndef VRAMTRACE_OUTPUT_IDLE_TEXT_H
#define VRAMTRACE_OUTPUT_IDLE_TEXT_H

#include "output/report.h"

/* The section of the traces together, nothing where there are none. */
void idle_put_section(const struct style *style, const struct report_trace *traces, size_t n);

#endif
