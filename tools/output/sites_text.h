/* The full view of `peak`: every site with its whole stack. */
#ifndef VRAMTRACE_OUTPUT_SITES_TEXT_H
#define VRAMTRACE_OUTPUT_SITES_TEXT_H

#include "output/report.h"

#define SITES_INDENT 6u /* of what belongs to a site */

void sites_text_views(const struct style *style, const struct report_trace *trace);

/* One site: what it holds; and its stack with an empty line below. */
void sites_put_heading(
	const struct style *style, const struct stack_source *source, const struct site_row *row);
void sites_put_stack(
	const struct style *style, const struct stack_source *source, const struct site_row *row);

/* How much a limit left out. */
void sites_put_left_out(const struct style *style, size_t n, uint64_t bytes);

#endif
