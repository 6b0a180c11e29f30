/*
 * NVML, the management library that comes with the driver: tells how much of a device is in use
 * where no context exists yet. Opened at run time, once; all answers are "not known" where it is
 * missing or refuses.
 */
#ifndef VRAMTRACE_HOOKS_NVML_H
#define VRAMTRACE_HOOKS_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "record/events.h"

struct nvml_reading {
	bool known;
	uint64_t used_bytes; /* by all processes, without what the driver keeps for itself */
};

/* What is in use on the CUDA device of this ordinal. Calls the loader the first time: no lock may
 * be held. */
struct nvml_reading nvml_read(int device);

struct nvml_others {
	bool known; /* this process is among those that are listed, so that the others are the rest
		     */
	struct event_others found;
};

/* What other processes use of the CUDA device of this ordinal. Asks only where NVML was opened
 * before: this may be called with locks of the program held. */
struct nvml_others nvml_read_others(int device);

#endif
