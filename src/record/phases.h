/*
 * What programs say about where they are: marks, and phases that begin and end. Called at any time,
 * also before the first CUDA call: phases that are open when the trace is made are written then.
 * All keep errno.
 */
#ifndef VRAMTRACE_RECORD_PHASES_H
#define VRAMTRACE_RECORD_PHASES_H

#include <stdint.h>

#include "vramtrace/format.h"

/* Bytes of a name that are kept. */
#define PHASES_MAX_NAME 255u

/* Texts are only read, and never NULL. */
struct phase_event {
	enum vt_told told;
	uint64_t range_id;  /* of VT_TOLD_NVTX_RANGE, else 0 */
	const char *name;   /* "" at an end of anything but VT_TOLD_API */
	const char *domain; /* "": none */
};

void phases_mark(const struct phase_event *event);
void phases_begin(const struct phase_event *event);
void phases_end(const struct phase_event *event);

/* The trace has just been made: writes what was waiting for it. */
void phases_flush(void);

/* In a forked child: what its parent was in is over. */
void phases_forget(void);

#endif
