/* What differs between two moments, as text and as JSON (schema "vramtrace.diff"). */
#ifndef VRAMTRACE_OUTPUT_DIFF_TEXT_H
#define VRAMTRACE_OUTPUT_DIFF_TEXT_H

#include "analysis/diff.h"
#include "output/report.h"

/* One of the two moments, of a trace that may be the other's, too. */
struct diff_shown {
	const struct report_trace *trace;
	const struct view *view;
};

/* For diff_side: the same call site of another trace has the same key; user is the report_trace. */
char *diff_key(void *user, const struct site_row *row);
const char *diff_owner(void *user, const struct site_row *row);

void diff_text(
	const struct style *style, const struct diff *diff, const struct diff_shown shown[2]);
void diff_json(FILE *out, const struct diff *diff, const struct diff_shown shown[2]);

#endif
