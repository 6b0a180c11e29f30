/*
 * The torch layer: PyTorch's caching allocator takes segments from the driver and hands out blocks
 * of them. For each block that comes or goes it calls a function of libc10, which the recorder
 * stands before. It does so with its lock held: what is done there asks neither CUDA nor the loader
 * for anything and takes no lock but the leaves of the recorder.
 *
 * That it waits for other streams before it uses a freed block again is seen from its calls of the
 * CUDA runtime about events, told from everybody else's by the address they come from. Where the
 * runtime is linked into PyTorch's own libraries they are not seen.
 */
#ifndef VRAMTRACE_HOOKS_TORCH_H
#define VRAMTRACE_HOOKS_TORCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vramtrace/format.h"

/* Where the allocator's code is, once it has reported a block: all zero before. */
extern struct torch_code {
	_Atomic uintptr_t start;
	_Atomic size_t bytes; /* written last */
} torch_code;

/* Whether the address, to which a call returns, lies in the library that holds the allocator. */
static inline bool torch_contains(const void *address)
{
	size_t bytes = atomic_load_explicit(&torch_code.bytes, memory_order_acquire);

	return (uintptr_t)address - atomic_load_explicit(&torch_code.start, memory_order_relaxed) <
	       bytes;
}

/* That library called the runtime, which succeeded: an event was recorded on a stream, from a place
 * and with a frame of the wrapper; */
void torch_note_record(
	const void *event, const void *stream, const void *caller, const char *frame);
/* an event is done with; */
void torch_note_done(enum vt_event_action action, const void *event);
/* the thread's capture mode was exchanged; */
void torch_note_mode(bool relaxed);
/* it asked how much memory the current device has. */
void torch_note_memory(uint64_t free_bytes, uint64_t total_bytes);

#endif
