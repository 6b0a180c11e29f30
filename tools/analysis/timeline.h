/* Memory over time, in columns of equal length: what a device held at most, by kind, and what the
 * driver said. */
#ifndef VRAMTRACE_ANALYSIS_TIMELINE_H
#define VRAMTRACE_ANALYSIS_TIMELINE_H

#include "model/replay.h"

/* One stretch of time of one device. */
struct timeline_column {
	uint64_t tracked_bytes; /* highest in the stretch; the kinds are as of that moment */
	uint64_t kind_bytes[VT_N_KINDS];
	bool used_known;	 /* the rest, as of the last sample in or before the stretch */
	uint64_t used_bytes;	 /* of the device, by all */
	int64_t untracked_bytes; /* by this process and measured, without what is unexplained */
	int64_t others_bytes;
	int64_t unexplained_bytes;
};

struct timeline_device {
	int ordinal;
	struct timeline_column *columns;
};

/* Release with timeline_release. */
struct timeline {
	uint64_t start_ns;  /* of the first column */
	uint64_t column_ns; /* length of a column, at least 1 */
	size_t n_columns;
	struct timeline_device *devices;
	size_t n_devices;
};

/* Replays once more into n_columns (at least 1) columns. Devices that were never used are left out.
 * Returns 0 or VT_E_NO_MEMORY. */
int timeline_make(struct timeline *timeline, struct replay *replay, size_t n_columns);
void timeline_release(struct timeline *timeline);

#endif
