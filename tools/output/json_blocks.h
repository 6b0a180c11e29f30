/* The JSON's `torch`, `allocators` and `coverage.torch`: allocators that hand out parts of what
 * they have from the driver. */
#ifndef VRAMTRACE_OUTPUT_JSON_BLOCKS_H
#define VRAMTRACE_OUTPUT_JSON_BLOCKS_H

#include "output/report.h"

void json_torch(struct json *json, const struct report_trace *traces, size_t n);
void json_allocators(struct json *json, const struct report_trace *traces, size_t n);
void json_torch_coverage(struct json *json, const struct report_trace *traces, size_t n);

/* Keys "level" and "allocator" of a site; "owner", "stack" and "stack_missing". */
void json_site_level(struct json *json, const struct model *model, const struct site_row *row);
void json_site_stack(
	struct json *json, const struct stack_source *source, const struct site_row *row);

#endif
