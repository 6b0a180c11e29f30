/*
 * Recording can be paused and resumed from outside, through the control word in the header of the
 * mapped trace. While it is paused, what comes and goes is still recorded, so that what is live is
 * known at any time; but without call stacks (only refusals keep theirs), and there are no copies
 * and no samples. Records say from when to when.
 */
#ifndef VRAMTRACE_RECORD_PAUSE_H
#define VRAMTRACE_RECORD_PAUSE_H

#include <stdatomic.h>

#include "record/session.h"

/* Of the session that is on. */
static inline bool pause_is_on(void)
{
	return vt_writer_is_paused(&session.writer);
}

extern _Atomic int pause_noted; /* 1: the trace says that recording is paused */

/* Writes to lane that recording was paused or resumed; no later than monotonic_ns, after which the
 * event to come began. */
void pause_note(struct vt_lane *lane, uint64_t monotonic_ns);

/* To be called before each event is written to lane. */
static inline void pause_check(struct vt_lane *lane, uint64_t monotonic_ns)
{
	if (__builtin_expect(
		    pause_is_on() != atomic_load_explicit(&pause_noted, memory_order_relaxed), 0))
		pause_note(lane, monotonic_ns);
}

/* In a forked child: its trace says it anew. */
void pause_forget(void);

#endif
