/* Which modules' functions could not be named, and why: of what was looked up so far. */
#ifndef VRAMTRACE_OUTPUT_MODULES_H
#define VRAMTRACE_OUTPUT_MODULES_H

#include "output/report.h"

/* One line for files that have changed since they were recorded and one for those that are not
 * here, each begun by begin. */
void modules_put(const struct style *style, const struct report_trace *trace,
	void (*begin)(void *user, const struct style *style), void *user);

/* The same of n traces, as key "symbols" of the open object. */
void modules_json(struct json *json, const struct report_trace *traces, size_t n);

#endif
