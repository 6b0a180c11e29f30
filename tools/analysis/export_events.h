/* Every allocation and free of a trace as one list, in the order of time: what a table or a script
 * wants. Also what ends without a call of its own is told. */
#ifndef VRAMTRACE_ANALYSIS_EXPORT_EVENTS_H
#define VRAMTRACE_ANALYSIS_EXPORT_EVENTS_H

#include "model/replay.h"

enum export_event_kind {
	EXPORT_ALLOC,
	EXPORT_FREE,
	EXPORT_TEARDOWN, /* went with its context */
	EXPORT_MAP,
	EXPORT_UNMAP,
	EXPORT_BLOCK_ALLOC, /* an allocator's */
	EXPORT_BLOCK_FREE,  /* given back to the allocator */
	EXPORT_BLOCK_READY, /* one that was given back before, and waited for a stream */
	EXPORT_REFUSED,
};

struct export_event {
	enum export_event_kind kind;
	uint64_t time_ns;
	uint32_t tid;
	int device; /* ordinal or MODEL_DEVICE_* */
	uint32_t memory_kind;
	uint64_t allocator_id; /* 0: of the driver */
	bool addressed;	       /* there is an address */
	uint64_t address;
	uint64_t bytes;
	uint64_t api_id; /* the program's call, 0 not known */
	uint64_t stack_id;
};

struct export_events_request {
	bool one_device;
	int device;
	void (*event)(void *user, const struct export_event *event);
	void *user;
};

/* Another pass over replay; calls event for each. Returns 0 or VT_E_*. */
int export_events_make(struct replay *replay, const struct export_events_request *request);

/* "alloc", "block_free". */
const char *export_event_name(enum export_event_kind kind);

#endif
