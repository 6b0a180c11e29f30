/*
 * CUDA calls the recorder makes itself, beside the question which context is current (contexts.h).
 *
 * Free memory (and what pools hold, after calls on them) is asked for only after a successful allocation, free or context call, on the same thread, at most once in
 * 10 ms, and always when the device is full; never while any stream is being captured. Driver and devices are described
 * once, when the trace has just been made, with calls that need no context.
 */
#ifndef VRAMTRACE_HOOKS_SAMPLE_H
#define VRAMTRACE_HOOKS_SAMPLE_H

#include <stdbool.h>

#include "hooks/cuda_api.h"
#include "record/events.h"

/* Writes the device's free memory, if it is time. To be called after the event of an allocation, free or context call. */
void sample_memory(const struct call *call);

/* Writes what a pool, or with NULL the current pool of the call's device, holds, if it is time. */
void sample_pool(const struct call *call, CUmemoryPool pool);

/* Writes what the device of the call holds for graphs, if it is time. */
void sample_graphs(const struct call *call);

/* Whether any capture is open: then nothing else may be asked. */
bool sample_captures_open(void);

/* Whether this call on the stream went into a graph, and with graph (may be NULL) into which. Which default stream NULL
 * means is in the name of the call. Asks the driver only while a capture is open. */
bool sample_is_capturing(const struct call *call, CUstream stream, CUgraph *graph);

/* A capture was begun or ended on some stream. */
void sample_capture(bool begun);

/* Writes the driver's version and what devices there are. */
void sample_describe(void);

/* In a forked child. */
void sample_forget(void);

#endif
