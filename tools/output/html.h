/* A trace as one page for a browser: everything is inside, and nothing is fetched. */
#ifndef VRAMTRACE_OUTPUT_HTML_H
#define VRAMTRACE_OUTPUT_HTML_H

#include "analysis/levels.h"
#include "analysis/scenes.h"
#include "output/report.h"

/* One trace of a page, all of it borrowed. */
struct html_trace {
	const struct report_trace *shown;
	const struct roster *roster;
	const struct levels *levels;
	const struct scene_list *scenes;
};

/* Writes the document. What goes wrong with out is for the caller to see there. */
void html_put(
	FILE *out, const struct html_trace *traces, size_t n, const struct together *together);

#endif
