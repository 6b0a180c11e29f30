/* Phases and marks, and what was sampled of the host, as text. */
#ifndef VRAMTRACE_OUTPUT_PHASES_TEXT_H
#define VRAMTRACE_OUTPUT_PHASES_TEXT_H

#include "output/report.h"

/* "phase "step 812"", or "after mark "step 812"", behind a comma; nothing where it is not known. */
void phases_put_place(const struct style *style, const struct model_place_name *place);

/* The lines of the one-screen report. */
void phases_put_section(const struct style *style, const struct model *model);

/* The table of copies by phase, of at most `limit` phases, 0: all. */
void phases_put_copies(const struct style *style, const struct model *model, size_t limit);

/* The line of the one-screen report about the process and the machine. */
void host_put_line(const struct style *style, const struct model *model);

#endif
