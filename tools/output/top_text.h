/* The live view: what is above the list of call sites, and one line for each of those. */
#ifndef VRAMTRACE_OUTPUT_TOP_TEXT_H
#define VRAMTRACE_OUTPUT_TOP_TEXT_H

#include "analysis/facts.h"
#include "analysis/top.h"
#include "output/stack.h"
#include "output/style.h"

/* What is shown, all borrowed. */
struct top_view {
	const struct top *top;
	const struct trace_facts *facts;
	struct stack_source source;
	enum top_order order;
	const char *filter; /* rows whose line holds it; NULL: all */
};

/* What ran, devices, owners, rates, and the heading of the list. */
void top_put_head(const struct style *style, const struct top_view *view);

/* One row. False, with nothing printed, when the filter leaves it out. */
bool top_put_row(const struct style *style, const struct top_view *view, const struct top_row *row);

/* Where row's memory was obtained, in whole. */
void top_put_stack(
	const struct style *style, const struct top_view *view, const struct top_row *row);

/* All of it, with at most `limit` rows, 0: all. */
void top_text(const struct style *style, const struct top_view *view, size_t limit);

#endif
