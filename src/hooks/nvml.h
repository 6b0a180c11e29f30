/*
 * NVML, the management library that comes with the driver: tells how much of a device is in use
 * where no context exists yet. Opened at run time, once; all answers are "not known" where it is
 * missing or refuses.
 */
#ifndef VRAMTRACE_HOOKS_NVML_H
#define VRAMTRACE_HOOKS_NVML_H

#include <stdbool.h>
#include <stdint.h>

struct nvml_reading {
	bool known;
	uint64_t used_bytes; /* by all processes, without what the driver keeps for itself */
};

/* What is in use on the CUDA device of this ordinal. Calls the loader the first time: no lock may
 * be held. */
struct nvml_reading nvml_read(int device);

#endif
