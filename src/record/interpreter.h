/* The Python interpreter of this process, if there is one: when it is looked for, what the trace
 * says about it, and the frames it runs on the calling thread. */
#ifndef VRAMTRACE_RECORD_INTERPRETER_H
#define VRAMTRACE_RECORD_INTERPRETER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vramtrace/format.h"

struct python;
struct vt_lane;

/* Looks for it, unless VRAMTRACE_STACK leaves Python out, and writes what was found to the trace of
 * this session. Takes the loader's lock: call it with no lock held. */
void interpreter_prepare(void);

/* False as long as none was found. */
bool interpreter_is_known(void);

/* The interpreter whose frames are recorded, or NULL. */
const struct python *interpreter_get(void);

/*
 * Fills words with at most max of this thread's Python frames, as in stack.python, innermost first.
 * Returns how many; *is_cut tells whether there were more. May look for the interpreter again. What
 * is new goes to lane, in records of time_ns.
 */
size_t interpreter_capture(
	uint64_t *words, size_t max, bool *is_cut, struct vt_lane *lane, uint64_t time_ns);

/* One more capture that ended so. */
void interpreter_count(enum vt_python_outcome outcome, struct vt_lane *lane, uint64_t time_ns);

/* Writes the counts: the last word on them in a trace whose process ends. */
void interpreter_finish(struct vt_lane *lane, uint64_t time_ns);

/* In a forked child: the interpreter is still there, the trace is another. */
void interpreter_forget(void);

#endif
