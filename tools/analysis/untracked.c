#include "analysis/untracked.h"

#include <stdlib.h>

#include "analysis/leaks.h"
#include "analysis/order.h"
#include "model/memory.h"

/* How much a part of it grew from a column on. */
static uint64_t growth_from(struct history *history, struct curve *curve, uint32_t column)
{
	struct series series;
	uint64_t before, now;
	size_t i = 0;

	series_make(&series, curve, &history->time, history->last_event_ns);
	if (!series.n)
		return 0;
	while (i + 1 < series.n && series.columns[i] < column)
		i++;
	before = series.least_bytes[i];
	now = series.least_bytes[series.n - 1];
	return now > before ? now - before : 0;
}

/* What was measured, and what is left of the growth. */
static void take_causes(struct untracked_growth *growth, struct history *history,
	struct history_device *device, uint32_t column)
{
	uint64_t left = growth->growth_bytes;

	for (size_t cause = 1; cause < VT_N_CAUSES; cause++) {
		uint64_t bytes = growth_from(history, &device->causes[cause], column);

		growth->cause_bytes[cause] = bytes < left ? bytes : left;
		left -= growth->cause_bytes[cause];
	}
	growth->cause_bytes[0] = left;
}

static void take_counts(struct untracked_growth *growth, struct history *history, uint32_t column)
{
	for (size_t object = 0; object < VT_N_OBJECTS; object++) {
		struct history_count *from = &history->counts[object];
		struct untracked_count *count = &growth->counts[object];
		struct series series;
		struct shape shape;

		series_make(&series, &from->by_time, &history->time, history->last_event_ns);
		shape_judge(&shape, &series, SHAPE_STAY_UNKNOWN);
		count->n_created = from->n_created;
		count->n_destroyed = from->n_destroyed;
		count->n_more = growth_from(history, &from->by_time, column);
		count->grows = shape.kind == SHAPE_GROWING;
	}
}

static bool takes_more(const struct untracked_maker *a, const struct untracked_maker *b)
{
	return a->taken_bytes != b->taken_bytes ? a->taken_bytes > b->taken_bytes
						: a->n_made > b->n_made;
}

/* The contexts' own memory comes once each, and is in the account. */
static void take_makers(struct untracked_growth *growth, const struct history *history)
{
	for (const struct history_object *object = history->objects; object;
		object = object->hh.next) {
		struct untracked_maker maker = {object->key.stack_id, object->key.cause,
			object->n_made, (uint64_t)object->taken_bytes};
		size_t at = growth->n_makers;

		if (object->key.device != growth->device || !object->n_made ||
			object->key.cause == VT_CAUSE_CONTEXT)
			continue;
		while (at && takes_more(&maker, &growth->makers[at - 1]))
			at--;
		if (at == UNTRACKED_N_MAKERS)
			continue;
		if (growth->n_makers < UNTRACKED_N_MAKERS)
			growth->n_makers++;
		for (size_t i = growth->n_makers - 1; i > at; i--)
			growth->makers[i] = growth->makers[i - 1];
		growth->makers[at] = maker;
	}
}

static void judge(
	struct untracked_list *list, struct history *history, struct history_device *device)
{
	uint64_t column_ns = history->time.unit << history->time.shift;
	struct untracked_growth *growth;
	struct series series;
	struct shape shape;
	uint32_t column;

	series_make(&series, &device->rest, &history->time, history->last_event_ns);
	shape_judge(&shape, &series, SHAPE_STAY_UNKNOWN);
	if (shape.kind != SHAPE_GROWING || shape.growth_bytes < UNTRACKED_MIN_BYTES)
		return;
	column = series.columns[shape.from];
	if ((series.columns[series.n - 1] - column) * column_ns < leak_min_ns(history))
		return;
	list->items = memory_grow(list->items, list->n_items, &list->room, sizeof(*list->items));
	growth = &list->items[list->n_items++];
	*growth = (struct untracked_growth){
		.device = device->device,
		.bytes = series.end_bytes[series.n - 1],
		.growth_bytes = shape.growth_bytes,
		.since_ns = history->time.start + column * column_ns,
		.rate_bytes_per_s = leak_rate(shape.bytes_per_step, column_ns),
		.n_execs_made = history->n_execs_made,
		.n_execs_destroyed = history->n_execs_destroyed,
		.n_modules_loaded = history->n_modules_loaded,
		.n_modules_unloaded = history->n_modules_unloaded,
	};
	take_causes(growth, history, device, column);
	take_counts(growth, history, column);
	take_makers(growth, history);
}

void untracked_list_make(struct untracked_list *list, struct history *history)
{
	for (size_t i = 0; i < history->n_devices; i++)
		judge(list, history, &history->devices[i]);
}

void untracked_list_release(struct untracked_list *list)
{
	free(list->items);
	*list = (struct untracked_list){0};
}
