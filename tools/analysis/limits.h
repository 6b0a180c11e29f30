/* What of a trace limits are set for, as sums over it. */
#ifndef VRAMTRACE_ANALYSIS_LIMITS_H
#define VRAMTRACE_ANALYSIS_LIMITS_H

#include "analysis/overview.h"

struct limit_sums {
	uint64_t leak_bytes;	     /* of what is called a leak */
	uint64_t unknown_bytes;	     /* of that, what has no verdict */
	uint64_t live_bytes;	     /* of what is live at the end, and not suppressed; without what
					allocators keep and what is other processes' */
	uint64_t growth_bytes_per_s; /* of all that grows and is not suppressed */
	uint64_t n_refused;	     /* out-of-memory episodes that no retry overcame */
	const struct leak *fastest;  /* of what grows; NULL: none does */
	const struct leak *largest;  /* of what is called a leak */
};

/* The sums of overview, which must outlive them. */
void limit_sums_get(struct limit_sums *sums, const struct overview *overview);

#endif
