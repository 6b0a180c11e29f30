/*
 * CUDA calls the recorder makes itself, beside the question which context is current (contexts.h).
 *
 * Free memory is asked for only after a successful allocation, free or context call, on the same thread, at most once in
 * 10 ms, and always when the device is full; never while any stream is being captured. Driver and devices are described
 * once, when the trace has just been made, with calls that need no context.
 */
#ifndef VRAMTRACE_HOOKS_SAMPLE_H
#define VRAMTRACE_HOOKS_SAMPLE_H

#include <stdbool.h>

#include "record/events.h"

/* Writes the device's free memory, if it is time. To be called after the event of an allocation, free or context call. */
void sample_memory(const struct call *call);

/* A capture was begun or ended on some stream. */
void sample_capture(bool begun);

/* Writes the driver's version and what devices there are. */
void sample_describe(void);

/* In a forked child. */
void sample_forget(void);

#endif
