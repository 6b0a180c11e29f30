#include "analysis/places.h"

#include <stdlib.h>

#include "analysis/order.h"
#include "model/memory.h"

static void add_event(struct timeline_events *events, const struct timeline_event *event)
{
	if (events->n_items == TIMELINE_MAX_EVENTS) {
		events->n_left_out++;
		return;
	}
	events->items =
		memory_grow(events->items, events->n_items, &events->room, sizeof(*events->items));
	events->items[events->n_items++] = *event;
}

static void add_phase(struct timeline_events *events, const struct model_open_phase *phase,
	bool is_open, uint64_t end_ns)
{
	struct timeline_event event = {
		phase->place, phase->thread_id, phase->begin_ns, is_open, end_ns};

	add_event(events, &event);
}

void timeline_events_observe(struct timeline_events *marks, struct timeline_events *phases,
	const struct model *model, const struct vt_record *record)
{
	struct timeline_event mark = {
		model->phases.last_mark, record->tid, record->time_ns, false, record->time_ns};

	if (record->kind == VT_REC_mark)
		add_event(marks, &mark);
	if (record->kind == VT_REC_phase && model->phases.ended.phase)
		add_phase(phases, &model->phases.ended, false, record->time_ns);
}

static int compare_events(const void *a, const void *b)
{
	const struct timeline_event *x = a, *y = b;

	return order_of(x->begin_ns, y->begin_ns);
}

void timeline_events_finish(struct timeline_events *phases, const struct model *model)
{
	for (size_t i = 0; i < model->phases.n_open; i++)
		add_phase(phases, &model->phases.open[i], true, 0);
	if (phases->n_items)
		qsort(phases->items, phases->n_items, sizeof(*phases->items), compare_events);
}

void timeline_events_release(struct timeline_events *events)
{
	free(events->items);
	*events = (struct timeline_events){0};
}
