/*
 * The host's side: what the kernel says of the memory of the process and of the machine, read at
 * most once a second and only when there is an event anyway. A thread of our own would be one more
 * in the program.
 */
#ifndef VRAMTRACE_RECORD_HOST_MEMORY_H
#define VRAMTRACE_RECORD_HOST_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct vt_lane;

extern _Atomic uint64_t host_memory_next_ns; /* when the next sample is due, CLOCK_MONOTONIC */

static inline bool host_memory_is_due(uint64_t monotonic_ns)
{
	return monotonic_ns >= atomic_load_explicit(&host_memory_next_ns, memory_order_relaxed);
}

/* Writes a sample for the event that ended at monotonic_ns, if none is written for another one, and
 * unless no samples are wanted. Changes errno. */
void host_memory_sample(uint64_t monotonic_ns);

/* Writes one to lane now, if they are wanted. Changes errno. */
void host_memory_write(struct vt_lane *lane);

/* In a forked child. */
void host_memory_forget(void);

#endif
