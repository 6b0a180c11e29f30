/* The JSON's `leaks`, `leak_owners`, `suppressions` and `untracked_growth`. */
#ifndef VRAMTRACE_OUTPUT_JSON_LEAKS_H
#define VRAMTRACE_OUTPUT_JSON_LEAKS_H

#include "output/report.h"

/* The items of each, of one trace with this index. */
void json_leaks(struct json *json, const struct report_trace *trace, size_t index);
void json_leak_owners(struct json *json, const struct report_trace *trace, size_t index);
void json_suppressions(struct json *json, const struct report_trace *trace, size_t index);
void json_untracked(struct json *json, const struct report_trace *trace, size_t index);

#endif
