/*
 * Which device a call goes to: that of the context current to the thread. NVIDIA's runtime makes
 * contexts current through a private table (seen on an H200 with driver 580 and runtime 13.0: no
 * cuCtxSetCurrent, no push), so wrapping those calls would not tell; the driver is asked which
 * handle is current, which costs 15 ns and disturbs nothing, also during a capture. "Unknown" (-1)
 * is an answer.
 */
#ifndef VRAMTRACE_HOOKS_CONTEXTS_H
#define VRAMTRACE_HOOKS_CONTEXTS_H

#include <stdint.h>

/* A context or a pool by the number the trace knows it by. */
struct context_info {
	unsigned int id; /* 0 unknown */
	int device;	 /* -1 unknown */
};

/* The handle stands for a context of this device from now on. A handle already known keeps its
 * number. */
struct context_info contexts_add(const void *handle, int device);

/* What is known of the handle. */
struct context_info contexts_get(const void *handle);

/* The handle is gone; returns what was known. The same value may come back for another context. */
struct context_info contexts_remove(const void *handle);

/* The primary context of a device. */
void contexts_set_primary(int device, const void *handle);
const void *contexts_get_primary(int device);

/* The context current to this thread. Calls the driver: not before the real call that is being
 * recorded. */
struct context_info contexts_current(void);

/* Named pools, told apart by their handles. */
void contexts_add_pool(const void *pool, int device);
void contexts_remove_pool(const void *pool);
int contexts_device_of_pool(const void *pool);

/* Where a graphics resource is mapped; taking it forgets it. Address 0: not known to be mapped. */
void contexts_add_mapped(const void *resource, uint64_t address);
uint64_t contexts_take_mapped(const void *resource);

/* In a forked child: contexts do not survive. */
void contexts_forget(void);

#endif
