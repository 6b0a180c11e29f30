/*
 * Device memory that nobody allocated, and that grows all the same: what the driver says is in use
 * beyond what the ledgers hold, sampled over the trace, and what the program made meanwhile that
 * takes such memory. Other processes' memory is taken to stay as it is: where nothing was measured
 * around calls of this one, their growth looks the same.
 */
#ifndef VRAMTRACE_ANALYSIS_UNTRACKED_H
#define VRAMTRACE_ANALYSIS_UNTRACKED_H

#include "analysis/history.h"

#define UNTRACKED_N_MAKERS  3u
#define UNTRACKED_MIN_BYTES ((uint64_t)2 << 20) /* less is no finding */

/* Where objects are made that take it. */
struct untracked_maker {
	uint64_t stack_id;
	uint32_t cause; /* enum vt_cause */
	uint64_t n_made;
	uint64_t taken_bytes; /* as measured around its calls */
};

/* Objects of one sort, of the whole process. */
struct untracked_count {
	uint64_t n_created, n_destroyed;
	uint64_t n_more; /* there at the end than when the growth began */
	bool grows;	 /* as leaks do, and so may be the reason */
};

struct untracked_growth {
	int device;
	uint64_t bytes; /* in all, at the end */
	uint64_t growth_bytes;
	uint64_t since_ns;
	uint64_t rate_bytes_per_s;
	uint64_t cause_bytes[VT_N_CAUSES]; /* of growth_bytes, measured; [0]: the rest */
	struct untracked_count counts[VT_N_OBJECTS];
	/* Of the whole process. */
	uint64_t n_execs_made, n_execs_destroyed;
	uint64_t n_modules_loaded, n_modules_unloaded;	   /* by calls that changed free memory */
	struct untracked_maker makers[UNTRACKED_N_MAKERS]; /* that took most first */
	size_t n_makers;
};

/* All zero is an empty list; release it with untracked_list_release. */
struct untracked_list {
	struct untracked_growth *items;
	size_t n_items, room;
};

/* Appends a finding for each device on which it grows. */
void untracked_list_make(struct untracked_list *list, struct history *history);

void untracked_list_release(struct untracked_list *list);

#endif
