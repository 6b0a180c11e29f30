/*
 * What the shape of a curve says: does it grow, has it stopped to, was it there from the start.
 *
 * All is judged by the envelope: at each column, what the curve never went below again. Memory that
 * comes and goes, however wildly, does not raise it; memory that stays does.
 *
 * A curve grows when, behind a warm-up of SHAPE_WARM_UP of its columns,
 *   - the envelope rises in at least SHAPE_MIN_RISES columns,
 *   - the envelope rises in all but one of SHAPE_N_PARTS equal parts: noise does that once in a
 *     thousand curves, one collection of garbage never,
 *   - it rises in the second half at least half as much as in the first, and in the last quarter
 *     half as much as on average: a cache that fills up does not,
 *   - and it is the same memory that stays: something that came in each quarter is still there.
 * Where the number of allocations did not grow (one that is replaced by ever larger ones), or is
 * not known, the curve must not have been above the envelope by more than half of the growth
 * instead.
 */
#ifndef VRAMTRACE_ANALYSIS_SHAPE_H
#define VRAMTRACE_ANALYSIS_SHAPE_H

#include "analysis/curve.h"

#define SHAPE_WARM_UP	  5u /* one in so many columns */
#define SHAPE_MIN_COLUMNS 8u
#define SHAPE_N_PARTS	  8u
#define SHAPE_MIN_RISES	  10u

enum shape_kind {
	SHAPE_UNDECIDED, /* too little was seen, or it is none of the others */
	SHAPE_GROWING,
	SHAPE_ONE_TIME,	  /* it came at once, and stayed for SHAPE_MIN_COLUMNS at least */
	SHAPE_SATURATING, /* it grew, and has not any more for a third of its time */
};

struct shape {
	enum shape_kind kind;
	/* From here on growth is judged: indices into the series. */
	size_t from;
	uint64_t growth_bytes;	 /* of the envelope, from there to the end */
	uint64_t bytes_per_step; /* its slope, for each column of the axis */
	uint64_t n_growth;	 /* allocations more than there were then */
	size_t last_rise;	 /* of the envelope, by a part of growth worth a name */
	size_t n_rises;		 /* columns in which it rises, since `from` */
};

/* Whether what came in each quarter of a time is still there. */
enum shape_stay {
	SHAPE_STAY_UNKNOWN,
	SHAPE_GOES,
	SHAPE_STAYS,
};

/* Of a series whose n_survivors are known, behind the warm-up. */
enum shape_stay shape_find_stay(const struct series *series);

/* What the shape of series is. */
void shape_judge(struct shape *shape, const struct series *series, enum shape_stay stay);

#endif
