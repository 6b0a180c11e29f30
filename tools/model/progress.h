/* How far long work is, on a terminal's stderr, once it has taken two seconds. */
#ifndef VRAMTRACE_MODEL_PROGRESS_H
#define VRAMTRACE_MODEL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	uint64_t start_ns;
	uint64_t shown_ns; /* 0: nothing shown yet */
};

/* Whether anything is shown at all. Off at the start. */
void progress_show(bool on);

/* Work that begins now. */
struct progress progress_start(void);

/* Shows "doing path: 12 %" when it is time to. */
void progress_step(
	struct progress *progress, const char *doing, const char *path, uint64_t done, uint64_t of);

/* The work is done: what was shown goes away. */
void progress_end(const struct progress *progress);

#endif
