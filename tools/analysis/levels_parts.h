/* What the files about levels of detail share. */
#ifndef VRAMTRACE_ANALYSIS_LEVELS_PARTS_H
#define VRAMTRACE_ANALYSIS_LEVELS_PARTS_H

#include "analysis/levels.h"

/* Two neighbouring bins become the first one of them. */
void level_span_join(struct level_span *span, const struct level_span *next);
void level_point_join(struct level_point *point, const struct level_point *next);

/* The levels above the finest one, which is there. */
void levels_build(struct levels *levels);

/* Leaves of the entries of a bin and row the last one, and none that says what was so before. */
void live_compact(struct levels *levels, size_t n_rows);

/* Halves what bins there are until at most n entries are left. */
void live_fit(struct levels *levels, size_t n_rows, size_t n);

#endif
