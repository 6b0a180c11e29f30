#include "analysis/curve.h"

#include <stdlib.h>

#include "model/memory.h"

/* Columns become twice as wide. */
static void widen(struct curve_axis *axis)
{
	for (uint32_t i = 0; i < CURVE_N_COLUMNS / 2; i++) {
		axis->active[i] = axis->active[2 * i] || axis->active[2 * i + 1];
		axis->n_ends[i] = axis->n_ends[2 * i] + axis->n_ends[2 * i + 1];
	}
	for (uint32_t i = CURVE_N_COLUMNS / 2; i < CURVE_N_COLUMNS; i++) {
		axis->active[i] = false;
		axis->n_ends[i] = 0;
	}
	axis->last /= 2;
	axis->shift++;
	axis->near_width = 0;
}

uint32_t curve_axis_find(struct curve_axis *axis, uint64_t x)
{
	uint64_t units = x > axis->start ? (x - axis->start) / axis->unit : 0;
	uint32_t column;

	while (units >> axis->shift >= CURVE_N_COLUMNS)
		widen(axis);
	column = (uint32_t)(units >> axis->shift);
	if (column > axis->last)
		axis->last = column;
	axis->near_column = column;
	axis->near_width = axis->unit << axis->shift;
	axis->near_start = axis->start + column * axis->near_width;
	return column;
}

void curve_axis_note(struct curve_axis *axis, uint64_t x, uint64_t n_ends)
{
	uint32_t column = curve_axis_column(axis, x);

	axis->active[column] = true;
	axis->n_ends[column] += n_ends;
}

static void join(struct curve_point *point, const struct curve_point *next)
{
	if (next->least_bytes < point->least_bytes)
		point->least_bytes = next->least_bytes;
	if (next->most_bytes > point->most_bytes)
		point->most_bytes = next->most_bytes;
	point->end_bytes = next->end_bytes;
	point->n_live = next->n_live;
	point->n_survivors += next->n_survivors;
}

/* All points are in the array. */
static void settle(struct curve *curve)
{
	if (curve->n_points)
		curve->points[curve->n_points - 1] = curve->last;
}

static void fold_points(struct curve *curve, const struct curve_axis *axis)
{
	unsigned int by = axis->shift - curve->shift;
	size_t n = 0;

	settle(curve);
	for (size_t i = 0; i < curve->n_points; i++) {
		struct curve_point point = curve->points[i];

		point.column = by < 32 ? point.column >> by : 0;
		if (n && curve->points[n - 1].column == point.column)
			join(&curve->points[n - 1], &point);
		else
			curve->points[n++] = point;
	}
	if (n)
		curve->last = curve->points[n - 1];
	curve->n_points = n;
	curve->shift = axis->shift;
}

/* Brings the points to the axis's columns. */
static inline void fold(struct curve *curve, const struct curve_axis *axis)
{
	if (curve->shift != axis->shift)
		fold_points(curve, axis);
}

void curve_note(
	struct curve *curve, struct curve_axis *axis, uint64_t x, uint64_t bytes, uint64_t n_live)
{
	uint32_t column = curve_axis_column(axis, x);
	struct curve_point *last = &curve->last;

	fold(curve, axis);
	if (!curve->n_points || last->column < column) {
		settle(curve);
		curve->points = memory_grow(
			curve->points, curve->n_points, &curve->room, sizeof(*curve->points));
		curve->n_points++;
		*last = (struct curve_point){.column = column,
			.least_bytes = last->end_bytes,
			.most_bytes = last->end_bytes};
	}
	join(last, &(struct curve_point){.least_bytes = bytes,
			   .most_bytes = bytes,
			   .end_bytes = bytes,
			   .n_live = n_live < UINT32_MAX ? (uint32_t)n_live : UINT32_MAX});
}

void curve_note_birth(struct curve *curve)
{
	curve->last.n_survivors++;
}

/* The point of the column, or NULL. */
static struct curve_point *point_of(struct curve *curve, uint32_t column)
{
	size_t low = 0, high = curve->n_points;

	/* Most that end had not come long before. */
	if (!high || curve->last.column <= column)
		return high && curve->last.column == column ? &curve->last : NULL;
	high--;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (curve->points[middle].column < column)
			low = middle + 1;
		else
			high = middle;
	}
	return low + 1 < curve->n_points && curve->points[low].column == column
		       ? &curve->points[low]
		       : NULL;
}

void curve_note_death(struct curve *curve, struct curve_axis *axis, uint64_t x)
{
	uint32_t column = curve_axis_column(axis, x);
	struct curve_point *point;

	fold(curve, axis);
	point = point_of(curve, column);
	if (point && point->n_survivors)
		point->n_survivors--;
}

void curve_release(struct curve *curve)
{
	free(curve->points);
	*curve = (struct curve){0};
}

void series_make(struct series *series, struct curve *curve, struct curve_axis *axis, uint64_t x)
{
	uint32_t last = curve_axis_column(axis, x);
	size_t at = 0;

	fold(curve, axis);
	settle(curve);
	series->n = 0;
	for (uint32_t column = curve->n_points ? curve->points[0].column : last + 1; column <= last;
		column++) {
		const struct curve_point *point = &curve->points[at];
		bool is_here = at < curve->n_points && point->column == column;
		size_t i = series->n;

		if (!is_here)
			point = &curve->points[at - 1];
		else
			at++;
		if (!is_here && !axis->active[column])
			continue;
		series->columns[i] = column;
		series->least_bytes[i] = is_here ? point->least_bytes : point->end_bytes;
		series->end_bytes[i] = point->end_bytes;
		series->n_live[i] = point->n_live;
		series->n_survivors[i] = is_here ? point->n_survivors : 0;
		series->n++;
	}
}
