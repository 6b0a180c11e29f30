/* Several traces as one, as JSON. */
#ifndef VRAMTRACE_OUTPUT_JSON_TOGETHER_H
#define VRAMTRACE_OUTPUT_JSON_TOGETHER_H

#include "output/report.h"

/* Keys "processes", "gpus" (null of one trace, whose "devices" say the same) and "jobs" of the open
 * object. */
void json_together(struct json *json, const struct together *together);

/* The items of "idle_contexts" of one trace. */
void json_idle_contexts(struct json *json, const struct report_trace *trace, size_t index);

#endif
