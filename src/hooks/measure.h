/*
 * Device memory that goes without being allocated, measured as the change of free memory across the
 * call that takes it. A measurement during which any thread allocated or freed is thrown away: a
 * gap in the account is better than a wrong entry.
 */
#ifndef VRAMTRACE_HOOKS_MEASURE_H
#define VRAMTRACE_HOOKS_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hooks/nvml.h"
#include "record/events.h"

struct measurement {
	bool valid;
	size_t free_bytes;
	uint64_t n_changes;
};

struct context_measurement {
	struct nvml_reading reading;
	unsigned int serial; /* of the call among those on its device, 0: none of a device */
	uint64_t n_changes;
};

/* Before the call: free memory of the context current to this thread. Nothing when it is not to be
 * recorded. Keeps errno. */
struct measurement measure_begin(void);

/* After the event of the call. */
void measure_end(const struct call *call, const struct measurement *before, enum vt_cause cause);

/* The same for a call that makes a context, where the driver cannot be asked: by NVML. Also notes
 * what others use. Nothing is read for a primary context that is there already. Calls that overlap
 * on a device are not measured. */
struct context_measurement measure_context_begin(int device, bool primary);
void measure_context_end(
	const struct call *call, int device, const struct context_measurement *before);

#endif
