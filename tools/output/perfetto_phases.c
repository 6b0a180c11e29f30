/* Phases as slices, and marks as instants. Slices of one track must lie in one another or apart:
 * where those of a thread do not, it gets more tracks. */
#include <inttypes.h>
#include <stdlib.h>

#include "model/memory.h"
#include "model/phases.h"
#include "output/perfetto_parts.h"

enum event_type { EVENT_BEGIN = 1, EVENT_END = 2, EVENT_INSTANT = 3 };

#define MAX_LANES 1000u

/* One track of a thread. */
struct lane {
	uint64_t thread_id;
	uint64_t *ends; /* of the slices that are open, the innermost last */
	size_t n_ends, room;
};

struct lanes {
	struct lane items[MAX_LANES];
	size_t n_items;
};

/* Whether a slice fits into what is open at its begin; then it is open from there on. */
static bool enter(struct lane *lane, uint64_t begin_ns, uint64_t end_ns)
{
	while (lane->n_ends && lane->ends[lane->n_ends - 1] <= begin_ns)
		lane->n_ends--;
	if (lane->n_ends && lane->ends[lane->n_ends - 1] < end_ns)
		return false;
	lane->ends = memory_grow(lane->ends, lane->n_ends, &lane->room, sizeof(*lane->ends));
	lane->ends[lane->n_ends++] = end_ns;
	return true;
}

/* The number of the track for a slice, MAX_LANES: there are too many. */
static size_t lane_for(struct perfetto *perfetto, struct lanes *lanes, uint64_t thread_id,
	uint64_t begin_ns, uint64_t end_ns)
{
	char name[64];
	size_t i = 0;

	for (; i < lanes->n_items; i++)
		if (lanes->items[i].thread_id == thread_id &&
			enter(&lanes->items[i], begin_ns, end_ns))
			return i;
	if (i == MAX_LANES)
		return i;
	lanes->items[lanes->n_items++] = (struct lane){.thread_id = thread_id};
	enter(&lanes->items[i], begin_ns, end_ns);
	snprintf(name, sizeof(name), "phases of thread %" PRIu64, thread_id);
	perfetto_put_track(perfetto, PERFETTO_UUID_OF_LANE + i, name, false);
	return i;
}

static void put_event(struct perfetto *perfetto, enum event_type type, uint64_t number,
	const char *name, uint64_t time_ns)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;

	SET(event, type, (int32_t)type);
	SET(event, track_uuid, perfetto_uuid(perfetto, number));
	event.name = (char *)(uintptr_t)name;
	SET(packet, timestamp, perfetto_time(perfetto, time_ns));
	packet.track_event = &event;
	perfetto_put_packet(perfetto, &packet);
}

static const char *name_of(struct perfetto *perfetto, const struct timeline_event *event)
{
	char text[520];

	return export_name_set(
		&perfetto->name, model_place_text(&event->place, text, sizeof(text)));
}

/* A phase, as long as it was seen. */
struct slice {
	const struct timeline_event *phase;
	uint64_t begin_ns, end_ns;
};

/* By begin, what holds others before what it holds. */
static int compare(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

static struct slice *slices_of(
	const struct perfetto *perfetto, const struct timeline_events *phases)
{
	struct slice *slices = memory_new(phases->n_items, sizeof(*slices));

	for (size_t i = 0; i < phases->n_items; i++) {
		const struct timeline_event *phase = &phases->items[i];
		uint64_t end_ns =
			phase->is_open ? perfetto->trace->facts->duration_ns : phase->end_ns;

		slices[i] = (struct slice){phase, phase->begin_ns,
			end_ns < phase->begin_ns ? phase->begin_ns : end_ns};
	}
	if (phases->n_items)
		qsort(slices, phases->n_items, sizeof(*slices), compare);
	return slices;
}

void perfetto_put_phases(struct perfetto *perfetto, const struct timeline_events *phases)
{
	struct lanes *lanes = memory_new(1, sizeof(*lanes));
	struct slice *slices = slices_of(perfetto, phases);

	for (size_t i = 0; i < phases->n_items; i++) {
		const struct slice *slice = &slices[i];
		size_t lane = lane_for(
			perfetto, lanes, slice->phase->thread_id, slice->begin_ns, slice->end_ns);

		if (lane == MAX_LANES)
			continue;
		put_event(perfetto, EVENT_BEGIN, PERFETTO_UUID_OF_LANE + lane,
			name_of(perfetto, slice->phase), slice->begin_ns);
		put_event(perfetto, EVENT_END, PERFETTO_UUID_OF_LANE + lane, NULL, slice->end_ns);
	}
	for (size_t i = 0; i < lanes->n_items; i++)
		free(lanes->items[i].ends);
	free(lanes);
	free(slices);
}

void perfetto_put_marks(struct perfetto *perfetto, const struct timeline_events *marks)
{
	if (marks->n_items)
		perfetto_put_track(perfetto, PERFETTO_UUID_OF_MARKS, "marks", false);
	for (size_t i = 0; i < marks->n_items; i++)
		put_event(perfetto, EVENT_INSTANT, PERFETTO_UUID_OF_MARKS,
			name_of(perfetto, &marks->items[i]), marks->items[i].begin_ns);
}
