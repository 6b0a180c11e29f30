/* Moments of a trace that a picture shows in whole: who held what, and what lay where. */
#ifndef VRAMTRACE_ANALYSIS_SCENES_H
#define VRAMTRACE_ANALYSIS_SCENES_H

#include "analysis/address_map.h"
#include "analysis/episodes.h"
#include "analysis/roster.h"
#include "model/replay.h"

struct scene_row {
	uint32_t row; /* of the roster */
	uint64_t bytes;
	uint64_t count;
};

struct scene {
	struct replay_moment moment;
	size_t oom_number; /* of REPLAY_AT_RECORD, as in the report */
	uint64_t time_ns;
	struct scene_row *rows; /* by number of the row */
	size_t n_rows;
	bool has_map;		/* false: of that moment only is known who held what */
	struct address_map map; /* of a peak, of its device only */
};

struct scene_list {
	struct scene *items; /* in the order of time */
	size_t n_items;
};

/* Looks once more at replay, whose model stays: at each device's peak, the end, at most n_ooms
 * refusals, and n_times moments between. Returns 0, with *list to be released by scenes_release, or
 * VT_E_*. */
int scenes_make(struct scene_list *list, struct replay *replay, const struct roster *roster,
	const struct episodes *episodes, size_t n_ooms, size_t n_times);

void scenes_release(struct scene_list *list);

#endif
