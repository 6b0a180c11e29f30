/*
 * How long copies take on the device (VRAMTRACE_COPY_TIMING=1): an event of the stream right before
 * and one right after an asynchronous copy. Both come from a pool that each thread keeps, and are
 * read when the thread makes its later calls, without waiting for anything; a copy for which there
 * is no pair is not timed.
 *
 * No call of this is made while a capture is open anywhere in the process, and none on a context
 * that is about to end: whoever begins a capture or ends a context says so before, and waits for
 * calls that are under way (sample.h).
 */
#ifndef VRAMTRACE_HOOKS_COPY_TIMING_H
#define VRAMTRACE_HOOKS_COPY_TIMING_H

#include "hooks/cuda_api.h"
#include "record/events.h"
#include "record/options.h"

struct timing_pair;

/* When the library is loaded, after the options were read. */
void timing_prepare(void);

/* Before a copy on a stream; per_thread: for its entry point NULL is the default stream of the
 * thread. NULL when it is not to be timed, otherwise timing_end must follow. Keeps errno. */
struct timing_pair *timing_start(bool per_thread, CUstream stream);

static inline struct timing_pair *timing_begin(bool per_thread, CUstream stream)
{
	return __builtin_expect(options.copy_timing, 0) ? timing_start(per_thread, stream) : NULL;
}

/* Right after the copy: sets call->timed_id if it is being timed. */
void timing_stop(struct call *call, struct timing_pair *pair, CUstream stream);

static inline void timing_end(struct call *call, struct timing_pair *pair, CUstream stream)
{
	if (__builtin_expect(pair != NULL, 0))
		timing_stop(call, pair, stream);
}

/* Writes the times of this thread's copies that are done, a few at most. */
void timing_read(const struct call *call);

/* A context, by the number that contexts.h gives it, may be gone after the call to come. */
void timing_context_ends(unsigned int context_id);

/* In a forked child. */
void timing_forget(void);

#endif
