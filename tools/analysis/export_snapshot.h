/*
 * A device's memory in the form of PyTorch's memory snapshot: segments, the blocks in them, and the
 * events that led there. Memory that PyTorch (or another allocator that reports itself) fills is a
 * segment with its blocks; any other memory with an address is a segment that one block fills.
 *
 * Readers replay the events backwards from the final segments. So what is told here always fits
 * together: events that would not, which only a damaged trace has, are left out in pairs.
 */
#ifndef VRAMTRACE_ANALYSIS_EXPORT_SNAPSHOT_H
#define VRAMTRACE_ANALYSIS_EXPORT_SNAPSHOT_H

#include "analysis/episodes.h"
#include "model/replay.h"

enum snapshot_action {
	SNAPSHOT_SEGMENT_ALLOC,
	SNAPSHOT_SEGMENT_FREE,
	SNAPSHOT_SEGMENT_MAP, /* of an allocator's segment that grows */
	SNAPSHOT_SEGMENT_UNMAP,
	SNAPSHOT_ALLOC,
	SNAPSHOT_FREE_REQUESTED,
	SNAPSHOT_FREE_COMPLETED,
	SNAPSHOT_OOM,
};

struct snapshot_event {
	enum snapshot_action action;
	uint64_t address;
	uint64_t bytes;
	int64_t stream;
	uint64_t time_ns;  /* since the trace's start */
	uint64_t stack_id; /* 0: none */
	bool direct;	   /* memory that no allocator fills; the next two are known */
	uint32_t kind;
	uint64_t api_id;     /* of the call, 0: not known */
	uint64_t free_bytes; /* SNAPSHOT_OOM: of the device, 0 not known */
};

enum snapshot_state {
	SNAPSHOT_ACTIVE,
	SNAPSHOT_PENDING, /* given back, waits for a stream */
	SNAPSHOT_INACTIVE,
};

struct snapshot_block {
	uint64_t address;
	uint64_t bytes;
	enum snapshot_state state;
	uint64_t stack_id;
};

/* Its blocks tile it. */
struct snapshot_segment {
	uint64_t address;
	uint64_t bytes;
	int64_t stream;
	bool expandable;
	bool captured; /* obtained inside a capture: of a graph's pool */
	uint64_t stack_id;
	size_t first_block, n_blocks;
};

struct snapshot_layout {
	struct snapshot_segment *segments; /* by address */
	size_t n_segments, segments_room;
	struct snapshot_block *blocks;
	size_t n_blocks, blocks_room;
};

/* What is learned of a whole trace before its events are told: which memory is an allocator's. */
struct snapshot_fates;

/* From a pass over replay; to be freed with snapshot_fates_free. *error is 0 or VT_E_*. */
struct snapshot_fates *snapshot_fates_new(struct replay *replay, int *error);
void snapshot_fates_free(struct snapshot_fates *fates);

/* What a snapshot is of, all of it borrowed. */
struct snapshot_request {
	int device;	   /* ordinal */
	uint64_t until_ns; /* later events are left out */
	const struct snapshot_fates *fates;
	const struct episodes *episodes;
	void (*event)(void *user, const struct snapshot_event *event);
	void *user;
};

/* Another pass over replay: calls event for each, in the order of time, and makes the layout at the
 * end of them, to be released with snapshot_layout_release. Returns 0 or VT_E_*. */
int snapshot_make(struct snapshot_layout *layout, struct replay *replay,
	const struct snapshot_request *request);
void snapshot_layout_release(struct snapshot_layout *layout);

#endif
