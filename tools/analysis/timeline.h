/* Memory over time, in columns of equal length: what a device held at most, by kind, and what the
 * driver said; beside it what the host said, and where the program was. */
#ifndef VRAMTRACE_ANALYSIS_TIMELINE_H
#define VRAMTRACE_ANALYSIS_TIMELINE_H

#include "analysis/episodes.h"
#include "analysis/owners.h"
#include "analysis/places.h"
#include "model/replay.h"

/* Owners that are told apart, of each device the first ones that held memory. */
#define TIMELINE_N_OWNERS 12u

/* One stretch of time of one device. */
struct timeline_column {
	uint64_t tracked_bytes; /* highest in the stretch; the kinds are as of that moment */
	uint64_t kind_bytes[VT_N_KINDS];
	uint64_t live_bytes; /* of tracked_bytes, what was asked for and is in use: without what
				allocators and pools keep, and without rounding; 0 without owners */
	uint64_t owner_bytes[TIMELINE_N_OWNERS]; /* of live_bytes; what is left is of others */
	uint64_t n_refused;			 /* requests for memory in the stretch */
	bool used_known;	 /* the rest, as of the last sample in or before the stretch */
	uint64_t used_bytes;	 /* of the device, by all */
	int64_t untracked_bytes; /* by this process and measured, without what is unexplained */
	int64_t others_bytes;
	int64_t unexplained_bytes;
};

struct timeline_device {
	int ordinal;
	struct timeline_column *columns;
	const char *owners[TIMELINE_N_OWNERS]; /* NULL: of stacks that were not recorded */
	size_t n_owners;
};

/* Release with timeline_release. */
struct timeline {
	uint64_t start_ns;  /* of the first column */
	uint64_t column_ns; /* length of a column, at least 1 */
	size_t n_columns;
	struct timeline_device *devices;
	size_t n_devices;
	struct vt_rec_host_memory *host; /* n_columns; last sample in or before; .known 0: none */
	struct timeline_events marks, phases;
};

/* Beside the memory: who holds it, and when it was refused. Each may be NULL. */
struct timeline_also {
	const struct owner_source *owners;
	const struct episodes *episodes;
};

/* Replays once more into n_columns (at least 1) columns. Devices that were never used are left out.
 * Returns 0 or VT_E_NO_MEMORY. */
int timeline_make(struct timeline *timeline, struct replay *replay, size_t n_columns,
	const struct timeline_also *also);
void timeline_release(struct timeline *timeline);

#endif
