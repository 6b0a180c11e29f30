/*
 * Records of allocators that hand out parts of what they have from the driver: PyTorch's, as it
 * reports them, and those of programs that tell (vramtrace.h). PyTorch reports with its own lock
 * held, so nothing here calls CUDA, the loader or Python, or takes a lock that is held while
 * anything else is called.
 */
#ifndef VRAMTRACE_RECORD_EVENTS_BLOCK_H
#define VRAMTRACE_RECORD_EVENTS_BLOCK_H

#include <stdint.h>

#include "vramtrace/format.h"

/* Numbers of allocators are below this. */
#define EVENT_MAX_ALLOCATORS 512u

/* An allocator; texts are read at its first report only, and not kept. */
struct event_allocator {
	unsigned int id; /* 1 to EVENT_MAX_ALLOCATORS - 1 */
	enum vt_layer layer;
	int device; /* -1: that of the memory */
	const char *name;
	const char *version;
	const char *path;
};

/* The sums that an allocator passes along with a report, this block included. */
struct event_totals {
	uint64_t allocated_bytes;
	uint64_t reserved_bytes;
};

/* A block was handed out or given back; totals NULL: none are told. Reports of one allocator with
 * totals must not overlap. */
void event_block_alloc(const struct event_allocator *allocator, uint64_t address, uint64_t bytes,
	const struct event_totals *totals);
void event_block_free(const struct event_allocator *allocator, uint64_t address, uint64_t bytes,
	const struct event_totals *totals);

/* A request was refused by the allocator itself. */
void event_block_failure(
	const struct event_allocator *allocator, uint64_t bytes, const struct event_totals *totals);

/* The stream that memory of the driver, in which the block at address lies, is for; flags are
 * VT_STREAM_*. */
void event_block_stream(const struct event_allocator *allocator, uint64_t address, int64_t stream,
	unsigned int flags);

/* A block that is about to be freed waits for an event. caller and distance: see records.def. */
struct event_wait {
	uint64_t event;
	uint64_t stream;
	uint64_t address;
	uint64_t caller;
	uint64_t distance;
};
void event_block_wait(const struct event_wait *wait);

/* An event is done with. */
void event_stream_done(enum vt_event_action action, uint64_t event);

/* A pool of a framework's graphs, or of the program, by the two numbers of its name. */
struct event_graph_pool {
	enum vt_graph_pool_action action;
	uint64_t object;
	uint64_t first, second;
	int64_t stream;
};
void event_graph_pool(const struct event_graph_pool *pool);

/* In a forked child: its own trace names its own allocators. */
void events_block_forget(void);

#endif
