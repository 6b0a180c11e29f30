/* The native call stack of this thread, from libunwind, which is opened privately and only when
 * there is CUDA use. Nothing here takes a lock of the recorder or memory of the process. */
#ifndef VRAMTRACE_RECORD_NATIVE_H
#define VRAMTRACE_RECORD_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for the recorder's own frames, beyond the frames that are asked for. */
#define NATIVE_OWN_FRAMES 12u

/*
 * Opens libunwind, once; calls the loader, so no lock may be held. RTLD_LOCAL is what keeps its
 * _Unwind_* functions away from the target's C++ exceptions. Without it stacks stay empty.
 */
void native_prepare(void);

/* True when libunwind was looked for and is not there. */
bool native_is_missing(void);

/* Fills frames, which has room for max + NATIVE_OWN_FRAMES, with at most max return addresses of
 * the caller's thread, innermost first and without the recorder's own. Returns how many; *is_cut
 * tells whether there were more. */
size_t native_capture(uint64_t *frames, size_t max, bool *is_cut);

struct native_frame {
	uint64_t address; /* where it goes on */
	uint64_t stack;	  /* its stack pointer there: its memory is from here to that of the next */
};

/* The same stack, slowly, the recorder's own frames included. Returns how many frames, at most
 * max; 0 when libunwind does not offer it. */
size_t native_step(struct native_frame *frames, size_t max);

/* The code that the unwind table has as one piece around address. False when it has none. */
bool native_code_around(uint64_t address, uint64_t *start, uint64_t *end);

#endif
