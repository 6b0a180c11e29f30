/* Memory over time as curves, told point by point: for viewers that draw them. */
#ifndef VRAMTRACE_ANALYSIS_COUNTERS_H
#define VRAMTRACE_ANALYSIS_COUNTERS_H

#include "analysis/owners.h"
#include "model/replay.h"

enum counter_what {
	COUNTER_TRACKED,
	COUNTER_USED,	   /* of the device, by all, as sampled */
	COUNTER_UNTRACKED, /* by this process and not allocated, as sampled */
	COUNTER_RESERVED,  /* by allocators that report their blocks */
	COUNTER_BLOCKS,	   /* of that, handed out */
	COUNTER_OWNER,	   /* asked for by one owner */
	COUNTER_PINNED,	   /* page-locked host memory */
};

struct counter_point {
	size_t curve; /* 0, 1, ...: which curve, in the order in which they begin */
	enum counter_what what;
	int device;	   /* ordinal or MODEL_DEVICE_* */
	const char *owner; /* of COUNTER_OWNER; NULL: of stacks that were not recorded */
	uint64_t time_ns;
	int64_t bytes;
};

struct counters_request {
	const struct owner_source *owners;
	const struct model *names; /* of a whole pass: it has all stacks */
	uint64_t step_ns; /* in each such stretch, only the highest and the last point are told; 0:
			     all */
	void (*point)(void *user, const struct counter_point *point);
	void *user;
};

/* The step with which a trace's curves stay within a few hundred thousand points each; 0 for most
 * traces. model is that of a whole pass. */
uint64_t counters_step(const struct model *model);

/* Another pass over replay; calls point for each point. Those of one curve come in the order of
 * time; the first of each is at its first change. Returns 0 or VT_E_*. */
int counters_make(struct replay *replay, const struct counters_request *request);

#endif
