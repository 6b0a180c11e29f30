/*
 * Memory over time in levels of detail, and who held it, for a picture that can be looked at
 * closely. A bin is a stretch of the trace with about as many changes as any other, so that there
 * are many where much happens; the finest level has one bin for each change if they are few enough.
 * Of every bin the highest and the lowest are kept: no level hides a peak.
 *
 * Beside it, what each call site held at the ends of bins, as changes from one to the next: at
 * fewer ends where that would be too much.
 */
#ifndef VRAMTRACE_ANALYSIS_LEVELS_H
#define VRAMTRACE_ANALYSIS_LEVELS_H

#include "analysis/places.h"
#include "analysis/roster.h"
#include "model/replay.h"

#define LEVELS_FACTOR	4u   /* bins of a level that are one of the next */
#define LEVELS_MIN_BINS 256u /* a level with fewer has no next one */
#define LEVELS_MAX	12u

/* The times of the first and the last change in a bin; up to the next bin all stays as it is. */
struct level_span {
	uint64_t from_ns;
	uint64_t to_ns;
};

/* One bin of one device. */
struct level_point {
	uint64_t most_bytes; /* tracked; of moments with that, the one with most live is described:
			      */
	uint64_t live_bytes; /* asked for and in use, without what allocators keep */
	uint64_t kept_bytes; /* by allocators, in no block */
	uint64_t owner_bytes[ROSTER_N_OWNERS]; /* of live_bytes, */
	uint64_t curve_bytes[ROSTER_N_CURVES]; /* and in another way */
	uint64_t least_bytes;		       /* tracked */
	uint64_t least_live_bytes;
	bool used_known;	 /* what the driver said: in the bin, or last before it */
	uint64_t used_bytes;	 /* by all; the most */
	int64_t untracked_bytes; /* by this process and not allocated; the most */
};

struct level {
	size_t n_bins;
	struct level_span *spans;
	struct level_point **points; /* of each device of the roster */
};

/* From entry to entry, a row holds what the last one of it says; at first nothing. */
struct live_entry {
	uint32_t bin; /* of the finest level, divided by 2 to the power of live_shift */
	uint32_t row; /* of the roster */
	uint64_t bytes;
	uint64_t count;
};

/* Release with levels_release. */
struct levels {
	uint64_t start_ns, end_ns;
	size_t n_devices;
	struct level levels[LEVELS_MAX]; /* the finest first */
	size_t n_levels;
	struct live_entry *live; /* in order of bins */
	size_t n_live, live_room;
	unsigned int live_shift;
	struct timeline_events marks, phases;
	uint64_t n_changes;    /* that the finest bins are made of */
	uint64_t kept_from_ns; /* from when on single records are there; 0: from the beginning */
};

struct levels_limits {
	size_t n_bins; /* of the finest level: at most twice as many */
	size_t n_live; /* entries */
};

/* Another pass over replay, whose model stays. Returns 0 or VT_E_*. */
int levels_make(struct levels *levels, struct replay *replay, const struct roster *roster,
	const struct levels_limits *limits);

void levels_release(struct levels *levels);

#endif
