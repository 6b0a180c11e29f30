/* Fragmentation and post-mortems in the report's JSON. */
#ifndef VRAMTRACE_OUTPUT_JSON_FINDINGS_H
#define VRAMTRACE_OUTPUT_JSON_FINDINGS_H

#include "output/report.h"

/* The items of "fragmentation" and of "oom" of one trace, whose index is in each of them; both must
 * have been asked for in its overview. */
void json_fragmentation(struct json *json, const struct report_trace *trace, size_t index);
void json_ooms(struct json *json, const struct report_trace *trace, size_t index);

#endif
