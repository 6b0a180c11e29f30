/* The full view of `leaks`, its lines in the one-screen report, and the same in the shape in which
 * compute-sanitizer prints leaks. */
#ifndef VRAMTRACE_OUTPUT_LEAKS_TEXT_H
#define VRAMTRACE_OUTPUT_LEAKS_TEXT_H

#include "output/report.h"

void leaks_text(const struct style *style, const struct report_trace *trace);

/* The section of the report: what grows, and what is odd otherwise. Nothing without such. */
void leaks_put_section(const struct style *style, const struct report_trace *trace);

/* As compute-sanitizer --leak-check=full: one entry for each call stack. */
void leaks_sanitizer(FILE *out, const struct report_trace *trace);

/* "1.2 MiB/min" */
struct format_text leaks_rate(uint64_t bytes_per_s);

#endif
