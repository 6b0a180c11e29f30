/*
 * Out-of-memory episodes, gathered during one pass over a trace: calls that the driver refused for
 * lack of memory, and an allocator's own reports that it has none, put together where they belong
 * to one request. What was refused and what followed is here; what the memory looked like is in
 * oom.h.
 */
#ifndef VRAMTRACE_ANALYSIS_EPISODES_H
#define VRAMTRACE_ANALYSIS_EPISODES_H

#include "model/replay.h"

/* More are counted, and only the last of them is kept. */
#define EPISODES_MAX	  64u
#define EPISODES_N_EVENTS 20u

/* What could not be had. */
enum episode_want {
	EPISODE_MEMORY,	       /* device memory */
	EPISODE_HOST,	       /* page-locked host memory */
	EPISODE_ADDRESS_SPACE, /* a reservation */
	EPISODE_CONTEXT,
	EPISODE_GRAPH, /* one that is made executable, or its memory at a launch */
	EPISODE_CODE,  /* a module, a kernel's first launch, a limit */
};

struct episode {
	enum episode_want want;
	int device; /* ordinal or MODEL_DEVICE_* */
	uint32_t tid;
	uint64_t first_ns; /* of the calls and reports that belong together */
	uint64_t last_ns;
	uint64_t n_calls; /* that the driver refused */
	/* of the last of those, or else of the report */
	uint64_t api_id; /* 0: no call, a report alone */
	uint64_t caller_api;
	uint32_t kind;
	uint64_t bytes; /* 0 not told by the call */
	uint64_t stack_id;
	uint64_t pool; /* EPISODE_MEMORY of kind pool: handle, 0: the device's current one */
	uint64_t stream;
	bool reported; /* an allocator said that it has no memory */
	uint64_t allocator_id;
	uint64_t report_bytes;
	uint64_t report_stack_id;
	bool waits_ended; /* blocks that waited for streams came free during the call */
	bool recovered;	  /* the same request succeeded in the same call */
	bool sampled;	  /* the driver said at once what is free */
	uint64_t free_bytes;
	uint64_t total_bytes;
	struct replay_moment moment;		    /* the last refusal */
	struct vt_record events[EPISODES_N_EVENTS]; /* before the first, oldest first */
	size_t n_events;
};

struct episode_thread;

/* All zero is empty; release it with episodes_release. */
struct episodes {
	struct episode *items;
	size_t n_items, room;
	uint64_t n_in_all;
	struct vt_record recent[EPISODES_N_EVENTS]; /* ring */
	size_t n_recent;			    /* ever */
	struct episode_thread *threads;
};

/* Takes in the next record of a pass; model is as it is after that record. */
void episodes_observe(
	struct episodes *episodes, const struct model *model, const struct vt_record *record);

void episodes_release(struct episodes *episodes);

#endif
