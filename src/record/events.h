/*
 * From an intercepted call to a record. A wrapper fills a struct call around the real call and
 * hands it to one event_* function; what a record needs beyond that (time, stack, thread) is added
 * here.
 */
#ifndef VRAMTRACE_RECORD_EVENTS_H
#define VRAMTRACE_RECORD_EVENTS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "record/session.h"
#include "vramtrace/format.h"

/* One intercepted call. Lives on the wrapper's stack. */
struct call {
	unsigned int api;	 /* row in a hook table */
	const char *name;	 /* of that row */
	bool per_thread;	 /* for this entry point NULL is the default stream of the thread */
	bool recorded;		 /* outermost call of this thread, and the recorder is on */
	int result;		 /* CUresult */
	int saved_errno;	 /* as the real call left it */
	int device;		 /* of the context current to this thread, -1 unknown */
	unsigned int context_id; /* of that context, 0 unknown */
	uint64_t timed_id;	 /* of a copy that is being timed, 0: it is not */
	uint64_t start_ns;	 /* CLOCK_MONOTONIC before the real call */
	uint64_t end_ns;	 /* and after it */
};

static inline void call_enter(struct call *call)
{
	session_thread.n_calls++;
	call->recorded = session_thread.depth++ == 0 && session_is_possible();
	if (call->recorded)
		call->start_ns = session_clock_ns();
}

/* Right after the real call: errno is kept from here to call_leave. */
static inline void call_return(struct call *call, int result)
{
	call->saved_errno = errno;
	call->result = result;
	if (call->recorded)
		call->end_ns = session_clock_ns();
}

static inline void call_leave(const struct call *call)
{
	session_thread.depth--;
	errno = call->saved_errno;
}

/* Each writes one record if call->recorded, and nothing else. Of out-parameters only those of
 * successful calls are given. A failed allocation becomes a `failure`; address and handles are then
 * not looked at. */
void event_alloc(const struct call *call, enum vt_kind kind, uint64_t address, uint64_t bytes,
	uint64_t stream, uint64_t pool);
void event_free(const struct call *call, enum vt_kind kind, uint64_t address, uint64_t stream);

/* One copy: linear when rows is 0. */
struct event_copy {
	enum vt_direction direction;
	unsigned int flags; /* VT_COPY_* */
	uint64_t dst, src;  /* addresses or, with the flags, array handles */
	uint64_t bytes;
	uint64_t rows;
	uint64_t pitch;
	uint64_t stream;
};
void event_copy(const struct call *call, const struct event_copy *copy);

/* A number for a copy about which there will be more to say. */
uint64_t event_timed_id(void);

/* The host waited for a stream, or with any_stream for more than one: if it is the thread's first
 * wait since it began an asynchronous copy to the host there, that copy is said to have cost the
 * time. */
void event_wait(const struct call *call, uint64_t stream, bool any_stream);

/* How long a copy, made by entry point api, took on the device. */
void event_copy_time(unsigned int api, const char *name, uint64_t timed_id, uint64_t gpu_time_ns);
void event_peer_access(const struct call *call, int peer, bool on);
void event_set(
	const struct call *call, unsigned int flags, uint64_t dst, uint64_t bytes, uint64_t stream);
void event_reserve(const struct call *call, uint64_t address, uint64_t bytes);
void event_unreserve(const struct call *call, uint64_t address, uint64_t bytes);
void event_handle_create(const struct call *call, uint64_t handle, uint64_t bytes, int device,
	unsigned int location, enum vt_sharing sharing);
void event_handle_retain(const struct call *call, uint64_t handle, uint64_t address);
void event_handle_release(const struct call *call, uint64_t handle);
void event_map(const struct call *call, uint64_t address, uint64_t bytes, uint64_t offset,
	uint64_t handle);
void event_unmap(const struct call *call, uint64_t address, uint64_t bytes);
void event_access(
	const struct call *call, uint64_t address, uint64_t bytes, int device, unsigned int flags);
void event_context(const struct call *call, enum vt_context_action action, unsigned int context_id,
	int device);
void event_capture(const struct call *call, bool begin, uint64_t stream);
void event_pool(const struct call *call, enum vt_pool_action action, uint64_t pool, int device,
	uint64_t value);
void event_graph_alloc(
	const struct call *call, uint64_t graph, int device, uint64_t address, uint64_t bytes);
void event_graph_free(const struct call *call, uint64_t graph, uint64_t address);
void event_graph(const struct call *call, enum vt_graph_action action, uint64_t graph,
	uint64_t exec, int device, uint64_t stream);
void event_migrate(const struct call *call, enum vt_migrate_action action, uint64_t address,
	uint64_t bytes, int device, uint64_t stream);
void event_untracked(const struct call *call, enum vt_cause cause, int device, int64_t taken_bytes);

/* How often device memory came or went, by any thread: tells whether a measurement was disturbed.
 */
uint64_t events_n_changes(void);

/* What other processes use of a device; the fields of the record. */
struct event_others {
	uint64_t used_bytes;
	bool at_refusal;
	unsigned int n_processes;
	unsigned int largest_pid;
	uint64_t largest_bytes;
};

/* These describe; they need no stack. device_uuid is 16 bytes. */
void event_memory(int device, uint64_t free_bytes, uint64_t total_bytes);
void event_pool_memory(int device, uint64_t pool, uint64_t reserved_bytes, uint64_t used_bytes);
void event_graph_memory(int device, uint64_t reserved_bytes, uint64_t used_bytes);
void event_others(int device, const struct event_others *others);
void event_driver(unsigned int version, const char *path);
void event_device(unsigned int ordinal, const char *name, const void *uuid, uint64_t total_bytes,
	uint64_t page_bytes);

/* In a forked child: its own trace names its own entry points. */
void events_forget(void);

#endif
