#include "analysis/shape.h"

#include <stdlib.h>

#include "analysis/order.h"

#define N_QUARTERS 4u

/* Curve and envelope. */
struct judged {
	const struct series *series;
	uint64_t envelope[CURVE_N_COLUMNS];
	size_t from;
	enum shape_stay stay;
};

static void make_envelope(struct judged *judged)
{
	const struct series *series = judged->series;
	uint64_t least = UINT64_MAX;

	for (size_t i = series->n; i--;) {
		if (series->least_bytes[i] < least)
			least = series->least_bytes[i];
		judged->envelope[i] = least;
	}
}

/* Index at part k of n of what is behind the warm-up. */
static size_t boundary(const struct judged *judged, size_t k, size_t n)
{
	return judged->from + k * (judged->series->n - 1 - judged->from) / n;
}

static size_t count_rising_parts(const struct judged *judged)
{
	size_t n = 0;

	for (size_t k = 0; k < SHAPE_N_PARTS; k++)
		n += judged->envelope[boundary(judged, k + 1, SHAPE_N_PARTS)] >
		     judged->envelope[boundary(judged, k, SHAPE_N_PARTS)];
	return n;
}

/* The first index behind the warm-up. */
static size_t warm_up(const struct series *series)
{
	size_t from = (series->n + SHAPE_WARM_UP - 1) / SHAPE_WARM_UP;

	return from < series->n || !from ? from : series->n - 1;
}

enum shape_stay shape_find_stay(const struct series *series)
{
	size_t from = warm_up(series), n = series->n - from;

	for (size_t k = 0; k < N_QUARTERS; k++) {
		uint64_t n_here = 0;

		for (size_t i = from + k * n / N_QUARTERS; i < from + (k + 1) * n / N_QUARTERS; i++)
			n_here += series->n_survivors[i];
		if (!n_here)
			return SHAPE_GOES;
	}
	return SHAPE_STAYS;
}

/* How far the curve was above its envelope at most: at the lowest point of each column. */
static uint64_t most_above(const struct judged *judged)
{
	uint64_t most = 0;

	for (size_t i = judged->from; i < judged->series->n; i++)
		if (judged->series->least_bytes[i] - judged->envelope[i] > most)
			most = judged->series->least_bytes[i] - judged->envelope[i];
	return most;
}

static bool is_kept(const struct judged *judged, const struct shape *shape)
{
	bool replaced = judged->stay == SHAPE_STAY_UNKNOWN || !shape->n_growth;

	return replaced ? most_above(judged) <= shape->growth_bytes / 2
			: judged->stay == SHAPE_STAYS;
}

static bool is_growing(const struct judged *judged, const struct shape *shape)
{
	const uint64_t *envelope = judged->envelope;
	size_t n = judged->series->n, middle = boundary(judged, 1, 2);
	uint64_t first, second, last;

	if (shape->n_rises < SHAPE_MIN_RISES)
		return false;
	first = envelope[middle] - envelope[judged->from];
	second = envelope[n - 1] - envelope[middle];
	last = envelope[n - 1] - envelope[boundary(judged, 3, 4)];
	return count_rising_parts(judged) + 1 >= SHAPE_N_PARTS && second >= first / 2 &&
	       last >= shape->growth_bytes / 8 && is_kept(judged, shape);
}

/* The first index at which the envelope has come to nine tenths of what it is at the end. */
static size_t settled_at(const struct judged *judged)
{
	uint64_t end = judged->envelope[judged->series->n - 1];
	size_t i = 0;

	while (judged->envelope[i] < end - end / 10)
		i++;
	return i;
}

static enum shape_kind kind_of(const struct judged *judged, const struct shape *shape)
{
	size_t n = judged->series->n, settled = settled_at(judged);
	uint64_t end = judged->envelope[n - 1];

	if (is_growing(judged, shape))
		return SHAPE_GROWING;
	if (!end || n < settled + SHAPE_MIN_COLUMNS)
		return SHAPE_UNDECIDED;
	if (settled <= 1 || settled <= n / 10)
		return SHAPE_ONE_TIME;
	return end - judged->envelope[n - 1 - n / 3] <= end / 20 ? SHAPE_SATURATING
								 : SHAPE_UNDECIDED;
}

static int compare_slopes(const void *a, const void *b)
{
	return order_of(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* The median of the slopes between all pairs of columns. */
static uint64_t slope_of(const struct judged *judged)
{
	uint64_t slopes[CURVE_N_COLUMNS * (CURVE_N_COLUMNS - 1) / 2];
	const struct series *series = judged->series;
	size_t n = 0;

	for (size_t i = judged->from; i < series->n; i++)
		for (size_t k = i + 1; k < series->n; k++)
			slopes[n++] = (judged->envelope[k] - judged->envelope[i]) /
				      (series->columns[k] - series->columns[i]);
	if (!n)
		return 0;
	qsort(slopes, n, sizeof(*slopes), compare_slopes);
	return slopes[n / 2];
}

static void find_rises(const struct judged *judged, struct shape *shape)
{
	for (size_t i = judged->from + 1; i < judged->series->n; i++) {
		if (judged->envelope[i] == judged->envelope[i - 1])
			continue;
		shape->n_rises++;
		shape->last_rise = i;
	}
}

void shape_judge(struct shape *shape, const struct series *series, enum shape_stay stay)
{
	struct judged judged = {.series = series, .stay = stay};
	size_t n = series->n;

	*shape = (struct shape){.kind = SHAPE_UNDECIDED};
	if (!n)
		return;
	make_envelope(&judged);
	judged.from = warm_up(series);
	shape->from = shape->last_rise = judged.from;
	shape->growth_bytes = judged.envelope[n - 1] - judged.envelope[judged.from];
	if (series->n_live[n - 1] > series->n_live[judged.from])
		shape->n_growth = series->n_live[n - 1] - series->n_live[judged.from];
	find_rises(&judged, shape);
	shape->kind = kind_of(&judged, shape);
	if (shape->kind == SHAPE_GROWING)
		shape->bytes_per_step = slope_of(&judged);
}
