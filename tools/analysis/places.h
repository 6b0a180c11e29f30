/* Where a program said it was, over the time of a trace: each mark, and each phase. */
#ifndef VRAMTRACE_ANALYSIS_PLACES_H
#define VRAMTRACE_ANALYSIS_PLACES_H

#include "model/model.h"

/* More marks, or phases, of a trace are only counted. */
#define TIMELINE_MAX_EVENTS 10000u

/* A mark, or a phase. */
struct timeline_event {
	struct model_place_name place; /* texts point into the trace */
	uint64_t thread_id;
	uint64_t begin_ns;
	bool is_open;
	uint64_t end_ns; /* of a phase that is not open */
};

/* All zero is empty; release it with timeline_events_release. */
struct timeline_events {
	struct timeline_event *items; /* in the order of their begin */
	size_t n_items;
	size_t room;
	uint64_t n_left_out;
};

/* Takes in the next record of a pass; model is as it is after that record. Phases come in the order
 * of their end. */
void timeline_events_observe(struct timeline_events *marks, struct timeline_events *phases,
	const struct model *model, const struct vt_record *record);

/* After the last record, which left model: adds the phases that are open, and sorts. */
void timeline_events_finish(struct timeline_events *phases, const struct model *model);

void timeline_events_release(struct timeline_events *events);

#endif
