/* What of a trace was seen, and what was not, as JSON. */
#ifndef VRAMTRACE_OUTPUT_JSON_COVERAGE_H
#define VRAMTRACE_OUTPUT_JSON_COVERAGE_H

#include "output/report.h"

/* Key "coverage" of the open object. */
void json_coverage(struct json *json, const struct report_trace *traces, size_t n);

#endif
