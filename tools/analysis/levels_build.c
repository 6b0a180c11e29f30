#include <stdlib.h>

#include "analysis/levels_parts.h"
#include "model/memory.h"

void level_span_join(struct level_span *span, const struct level_span *next)
{
	span->to_ns = next->to_ns;
}

static bool is_higher(const struct level_point *than, const struct level_point *point)
{
	return point->most_bytes > than->most_bytes ||
	       (point->most_bytes == than->most_bytes && point->live_bytes > than->live_bytes);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Called for every change of a trace: what stays is not copied. */
void level_point_join(struct level_point *point, const struct level_point *next)
{
	uint64_t least_bytes = smaller(point->least_bytes, next->least_bytes);
	uint64_t least_live_bytes = smaller(point->least_live_bytes, next->least_live_bytes);
	uint64_t used_bytes = next->used_bytes;
	int64_t untracked_bytes = next->untracked_bytes;
	bool used_known = point->used_known || next->used_known;

	if (point->used_known && (!next->used_known || point->used_bytes > used_bytes))
		used_bytes = point->used_bytes;
	if (point->used_known && (!next->used_known || point->untracked_bytes > untracked_bytes))
		untracked_bytes = point->untracked_bytes;
	if (is_higher(point, next))
		*point = *next;
	point->least_bytes = least_bytes;
	point->least_live_bytes = least_live_bytes;
	point->used_known = used_known;
	point->used_bytes = used_bytes;
	point->untracked_bytes = untracked_bytes;
}

static void build_level(const struct level *finer, struct level *level, size_t n_devices)
{
	level->n_bins = (finer->n_bins + LEVELS_FACTOR - 1) / LEVELS_FACTOR;
	level->spans = memory_new(level->n_bins, sizeof(*level->spans));
	level->points = memory_new(n_devices, sizeof(*level->points));
	for (size_t device = 0; device < n_devices; device++)
		level->points[device] = memory_new(level->n_bins, sizeof(**level->points));
	for (size_t i = 0; i < finer->n_bins; i++) {
		size_t to = i / LEVELS_FACTOR;

		if (i % LEVELS_FACTOR)
			level_span_join(&level->spans[to], &finer->spans[i]);
		else
			level->spans[to] = finer->spans[i];
		for (size_t device = 0; device < n_devices; device++) {
			struct level_point *point = &level->points[device][to];

			if (i % LEVELS_FACTOR)
				level_point_join(point, &finer->points[device][i]);
			else
				*point = finer->points[device][i];
		}
	}
}

void levels_build(struct levels *levels)
{
	levels->n_levels = 1;
	while (levels->n_levels < LEVELS_MAX &&
		levels->levels[levels->n_levels - 1].n_bins > LEVELS_MIN_BINS) {
		build_level(&levels->levels[levels->n_levels - 1],
			&levels->levels[levels->n_levels], levels->n_devices);
		levels->n_levels++;
	}
}

void live_compact(struct levels *levels, size_t n_rows)
{
	uint32_t *last_bins = memory_new(n_rows, sizeof(*last_bins));
	struct live_entry *before = memory_new(n_rows, sizeof(*before));
	bool *is_last = memory_new(levels->n_live, sizeof(*is_last));
	size_t kept = 0;

	for (size_t i = levels->n_live; i--;) {
		const struct live_entry *entry = &levels->live[i];

		is_last[i] = last_bins[entry->row] != entry->bin + 1;
		last_bins[entry->row] = entry->bin + 1;
	}
	for (size_t i = 0; i < levels->n_live; i++) {
		const struct live_entry *entry = &levels->live[i];
		struct live_entry *old = &before[entry->row];

		if (!is_last[i] || (old->bytes == entry->bytes && old->count == entry->count))
			continue;
		*old = *entry;
		levels->live[kept++] = *entry;
	}
	levels->n_live = kept;
	free(last_bins);
	free(before);
	free(is_last);
}

void live_fit(struct levels *levels, size_t n_rows, size_t n)
{
	live_compact(levels, n_rows);
	while (levels->n_live > n && levels->live[levels->n_live - 1].bin) {
		levels->live_shift++;
		for (size_t i = 0; i < levels->n_live; i++)
			levels->live[i].bin /= 2;
		live_compact(levels, n_rows);
	}
}

static void release_level(struct level *level, size_t n_devices)
{
	for (size_t i = 0; level->points && i < n_devices; i++)
		free(level->points[i]);
	free(level->points);
	free(level->spans);
}

void levels_release(struct levels *levels)
{
	for (size_t i = 0; i < LEVELS_MAX; i++)
		release_level(&levels->levels[i], levels->n_devices);
	timeline_events_release(&levels->marks);
	timeline_events_release(&levels->phases);
	free(levels->live);
	*levels = (struct levels){0};
}
