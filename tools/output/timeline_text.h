/* A timeline, drawn in the terminal or as CSV. */
#ifndef VRAMTRACE_OUTPUT_TIMELINE_TEXT_H
#define VRAMTRACE_OUTPUT_TIMELINE_TEXT_H

#include "analysis/timeline.h"
#include "output/json.h"
#include "output/style.h"

/* Columns of a timeline that fit into the style's width. */
size_t timeline_columns(const struct style *style);

/* Draws each device. model is that of the timeline's replay. */
void timeline_text(
	const struct style *style, const struct timeline *timeline, const struct model *model);

/* One row for each device and column; the first line names the fields. Unknown values are empty. */
void timeline_csv(FILE *out, const struct timeline *timeline);

/* {"schema": "vramtrace.timeline", ...}. file names the trace. */
void timeline_json(FILE *out, const struct timeline *timeline, const char *file);

#endif
