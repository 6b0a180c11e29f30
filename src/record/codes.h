/*
 * Every distinct Python code object once, with a number, and its record in the trace. Distinct by
 * what it says, not by its address: code that is made anew from the same text is the same.
 */
#ifndef VRAMTRACE_RECORD_CODES_H
#define VRAMTRACE_RECORD_CODES_H

#include <stdbool.h>
#include <stdint.h>

#include "python/python.h"

struct vt_lane;
struct codes_seen;

/* The number of the code object that key identifies, which this thread's running frame holds. At
 * first sight it is read and written to lane. 0 when it is no code object, or without memory. */
uint32_t codes_intern(const struct python *python, struct python_key *key, struct vt_lane *lane);

/* What a thread that has ended remembered, for another thread. NULL: nothing. */
void codes_release(struct codes_seen *seen);

/* Empty, with fresh locks: in a forked child. */
void codes_forget(void);

#endif
