/* Who held what at a moment, and had asked for how much until then: for the formats of other
 * viewers. */
#ifndef VRAMTRACE_ANALYSIS_EXPORT_SITES_H
#define VRAMTRACE_ANALYSIS_EXPORT_SITES_H

#include "analysis/sites.h"
#include "model/replay.h"

/* One site; no byte is in two of a moment. The driver's memory that became an allocator's segment
 * is in the allocator's sites, and nowhere else. */
struct export_site {
	uint64_t stack_id; /* 0 of SITE_IDLE */
	int device;	   /* ordinal or MODEL_DEVICE_* */
	uint32_t kind;
	enum site_level level;
	uint64_t allocator_id; /* 0: of the driver */
	uint64_t live_bytes;
	uint64_t n_live;      /* of SITE_IDLE: segments */
	uint64_t alloc_bytes; /* until the moment; of SITE_IDLE what is live */
	uint64_t n_allocs;
};

struct export_moment {
	struct replay_moment moment;
	size_t oom_number;	   /* of REPLAY_AT_RECORD */
	uint64_t time_ns;	   /* since the trace's start */
	bool one_device;	   /* its sites are all of moment.device */
	struct export_site *sites; /* most live bytes first */
	size_t n_sites, room;
};

/* Fills the n moments, of which moment, oom_number and one_device are set, from another pass over
 * replay as far as needed; release each with export_moment_release. Memory of other processes is
 * left out, and of a peak all that is not the device's own. Returns 0 or VT_E_*. */
int export_moments_make(struct replay *replay, struct export_moment *moments, size_t n);

/* The sites of model as it is now into moment. */
void export_moment_fill(struct export_moment *moment, const struct model *model);

void export_moment_release(struct export_moment *moment);

#endif
