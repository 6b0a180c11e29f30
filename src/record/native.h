/* The native call stack of this thread, from the recorder's own unwinder (unwind/unwind.h) and from
 * libunwind, which is opened privately and only when there is CUDA use. Nothing here takes memory
 * of the process. */
#ifndef VRAMTRACE_RECORD_NATIVE_H
#define VRAMTRACE_RECORD_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/options.h"

struct vt_lane;

/* Room for the recorder's own frames, beyond the frames that are asked for. */
#define NATIVE_OWN_FRAMES 12u

/*
 * Opens libunwind, once; calls the loader, so no lock may be held. RTLD_LOCAL is what keeps its
 * _Unwind_* functions away from the target's C++ exceptions. Without it stacks stay empty.
 */
void native_prepare(void);

/* True when libunwind was looked for and is not there. */
bool native_is_missing(void);

/* One thread's native stack: return addresses, innermost first, without the recorder's own. */
struct native {
	const uint64_t *frames; /* in room, or good until this thread's next capture */
	size_t n_frames;
	bool is_cut;  /* there were more */
	bool has_gap; /* some may be missing, for want of unwind information */
	uint64_t id;  /* not 0: native stacks that have the same are equal */
	uint64_t room[OPTIONS_MAX_DEPTH + 1];
};

/* Fills native with at most max addresses of the caller's thread. */
void native_capture(struct native *native, size_t max);

struct native_frame {
	uint64_t address; /* where it goes on */
	uint64_t stack;	  /* its stack pointer there: its memory is from here to that of the next */
};

/* The same stack, slowly, the recorder's own frames included. Returns how many frames, at most
 * max; 0 when libunwind does not offer it. */
size_t native_step(struct native_frame *frames, size_t max);

/* With VRAMTRACE_UNWINDER=check every capture was compared: writes the counts to lane. */
void native_finish(struct vt_lane *lane, uint64_t time_ns);

/* In a forked child: counts from 0. */
void native_forget(void);

/* The code that the unwind table has as one piece around address. False when it has none. */
bool native_code_around(uint64_t address, uint64_t *start, uint64_t *end);

#endif
