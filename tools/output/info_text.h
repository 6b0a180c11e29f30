/* What a trace is: header, process, devices, environment, counts, coverage. */
#ifndef VRAMTRACE_OUTPUT_INFO_TEXT_H
#define VRAMTRACE_OUTPUT_INFO_TEXT_H

#include "output/report.h"

void info_text(const struct style *style, const struct report_trace *trace);

/* {"schema": "vramtrace.info", ...} */
void info_json(FILE *out, const struct report_trace *traces, size_t n);

#endif
