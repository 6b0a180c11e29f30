/*
 * CUDA calls the recorder makes itself, beside the question which context is current (contexts.h).
 *
 * Free memory is asked for only after a successful allocation, free, context call or launch of a
 * graph, on the same thread, at most once in 10 ms, and always when the driver refuses a call for
 * lack of memory; never while any stream is being captured. What the pools and the graphs of the
 * device hold is asked with it, so that the account of that moment adds up; at a refusal NVML is
 * asked as well, at most once a second, what other processes use. Driver and devices are described
 * once, when the trace has just been made, with calls that need no context. A stream is asked for
 * its flags when it is seen in a copy. Events are used only by copy_timing.h.
 */
#ifndef VRAMTRACE_HOOKS_SAMPLE_H
#define VRAMTRACE_HOOKS_SAMPLE_H

#include <stdbool.h>

#include "hooks/cuda_api.h"
#include "record/events.h"

/* Writes the device's free memory, if it is time. To be called after the event of an allocation,
 * free or context call. */
void sample_memory(const struct call *call);

/* A call was refused for lack of memory: writes how much is free on the device of this thread's
 * context, and what others use of it. To be called after the event. */
void sample_refusal(const struct call *call);

/* A call used a pool of the device, or with NULL its current one: writes what the pool holds, if it
 * is time. */
void sample_pool(const struct call *call, CUmemoryPool pool, int device);

/* The device has another current pool now. */
void sample_pool_changes(int device);

/* A pool, or with its primary context all pools of a device, may be gone after the call to come:
 * they are not asked about any more until they are used again. */
void sample_pool_ends(CUmemoryPool pool);
void sample_reset(int device);

/* The same of a release; true: it may be the last one. */
bool sample_release(int device);

/* The primary context of the device was retained. */
void sample_retained(int device);

/* A graph was launched: its device is asked about graphs from now on, and samples are written if it
 * is time. */
void sample_launch(const struct call *call);

/* Writes what the device holds for graphs, at any time. */
void sample_graphs(const struct call *call, int device);

/* Whether any capture is open: then nothing else may be asked. */
bool sample_captures_open(void);

/* Whether this call on the stream went into a graph, and with graph (may be NULL) into which. Which
 * default stream NULL means is in the call. Asks the driver only while a capture is
 * open. */
bool sample_is_capturing(const struct call *call, CUstream stream, CUgraph *graph);

/* A capture is about to be begun on some stream, or was ended, or was not begun after all. */
void sample_capture_begins(void);
void sample_capture_ended(void);

/* Around calls of the driver about something that another thread may end meanwhile, or that a
 * capture would not survive; whoever does that waits, for a while and with no lock. */
void sample_asking_begins(void);
void sample_asking_ends(void);
void sample_wait_for_askers(void);

/* Whether the stream of a copy that was made waits for the legacy default stream. Asks the driver,
 * but not about the stream this thread asked about last, and not while a capture is open: then it
 * is not known, which is false. */
bool sample_is_blocking(const struct call *call, CUstream stream);

/* Writes the driver's version and what devices there are. */
void sample_describe(void);

/* In a forked child. */
void sample_forget(void);

#endif
