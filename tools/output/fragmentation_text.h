/* Fragmentation in words: what is the matter, what would help, and the full view of it. */
#ifndef VRAMTRACE_OUTPUT_FRAGMENTATION_TEXT_H
#define VRAMTRACE_OUTPUT_FRAGMENTATION_TEXT_H

#include "output/report.h"

/* What is the matter, in a line without its end; something is said also where nothing is. */
void fragmentation_put_verdict(
	FILE *out, const struct stack_source *source, const struct fragmentation_row *row);

/* What would help, in a line without its end. Nothing, and false, where nothing is known to. */
bool fragmentation_put_advice(FILE *out, const struct fragmentation_row *row);

/* "driver", "pool", "graphs", "torch", or "allocator" for one that the program tells of. */
const char *fragmentation_level_name(const struct fragmentation_row *row);

/* The same with the pool's handle or the allocator's name. */
void fragmentation_put_name(FILE *out, const struct fragmentation_row *row);

/* The section of the one-screen report; nothing when there is nothing to say. */
void fragmentation_put_section(const struct style *style, const struct report_trace *trace);

/* The full view of a trace. */
void fragmentation_text(const struct style *style, const struct report_trace *trace);

#endif
