/*
 * A number of bytes over time in bounded memory. Time, or the count of a program's own marks, runs
 * along an axis of a fixed number of columns, which become twice as wide when the axis has run out
 * of them. All curves of one analysis share their axis; a curve keeps a point only for columns in
 * which it changed.
 */
#ifndef VRAMTRACE_ANALYSIS_CURVE_H
#define VRAMTRACE_ANALYSIS_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CURVE_N_COLUMNS 128u

/* All zero but unit, the width of a column at first, is an axis that begins at 0. */
struct curve_axis {
	uint64_t start;
	uint64_t unit;
	unsigned int shift; /* a column is unit << shift wide */
	uint32_t last;	    /* the last column that was used */
	/* The column that was asked for last, and where it is: mostly it is asked for again. */
	uint32_t near_column;
	uint64_t near_start;
	uint64_t near_width; /* 0: not known */
	/* What happened in each column, of all curves together. */
	bool active[CURVE_N_COLUMNS];
	uint64_t n_ends[CURVE_N_COLUMNS]; /* allocations that ended */
};

struct curve_point {
	uint32_t column;
	uint32_t n_live;      /* at the end of the column */
	uint32_t n_survivors; /* came in this column and are still there */
	uint64_t least_bytes; /* in the column */
	uint64_t most_bytes;
	uint64_t end_bytes;
};

/* All zero is a curve that has always been 0; release it with curve_release. */
struct curve {
	/* The last point, if there is one: it changes all the time, and lies where the rest does.
	 */
	struct curve_point last;
	unsigned int shift; /* the axis's when it was last changed */
	size_t n_points;    /* with the last one */
	size_t room;
	struct curve_point *points; /* by column; of the last one only the place */
};

/* curve_axis_column where the column is not the one that was asked for last. */
uint32_t curve_axis_find(struct curve_axis *axis, uint64_t x);

/* The column that x lies in; the axis is made to reach there. x before the start is in the first
 * one. */
static inline uint32_t curve_axis_column(struct curve_axis *axis, uint64_t x)
{
	if (x - axis->near_start < axis->near_width)
		return axis->near_column;
	return curve_axis_find(axis, x);
}

/* Notes that something was going on at x, and that n allocations ended. */
void curve_axis_note(struct curve_axis *axis, uint64_t x, uint64_t n_ends);

/* The bytes from x on, not before what was noted last, in n_live allocations. */
void curve_note(
	struct curve *curve, struct curve_axis *axis, uint64_t x, uint64_t bytes, uint64_t n_live);

/* An allocation came at x, which is where curve_note was called last; one that came at x is gone.
 */
void curve_note_birth(struct curve *curve);
void curve_note_death(struct curve *curve, struct curve_axis *axis, uint64_t x);

void curve_release(struct curve *curve);

/* A curve from its first point on, column by column. */
struct series {
	size_t n;
	uint32_t columns[CURVE_N_COLUMNS]; /* of the axis, ascending */
	uint64_t least_bytes[CURVE_N_COLUMNS];
	uint64_t end_bytes[CURVE_N_COLUMNS];
	uint32_t n_live[CURVE_N_COLUMNS];
	uint32_t n_survivors[CURVE_N_COLUMNS];
};

/* The columns up to x, without those in which nothing was going on: a program that rests does not
 * get older. */
void series_make(struct series *series, struct curve *curve, struct curve_axis *axis, uint64_t x);

#endif
