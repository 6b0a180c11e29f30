/* A timeline as a picture. */
#ifndef VRAMTRACE_OUTPUT_TIMELINE_SVG_H
#define VRAMTRACE_OUTPUT_TIMELINE_SVG_H

#include <stdio.h>

#include "analysis/timeline.h"

/* One SVG document with a chart for each device; light or dark as the viewer prefers. model is that
 * of the timeline's replay. */
void timeline_svg(FILE *out, const struct timeline *timeline, const struct model *model);

#endif
