/* What a running process holds now, and how that has changed over the last stretch of time. */
#ifndef VRAMTRACE_ANALYSIS_TOP_H
#define VRAMTRACE_ANALYSIS_TOP_H

#include "analysis/sites.h"
#include "model/replay.h"

struct top_row {
	struct site_row site;
	int64_t growth_bytes; /* in the stretch */
};

struct top {
	uint64_t now_ns;   /* of the last event */
	uint64_t since_ns; /* the stretch's begin; now_ns: there is none */
	uint64_t n_allocs; /* in the stretch, of memory of the driver and of blocks */
	uint64_t n_frees;
	uint64_t n_out_of_memory; /* calls that were refused for lack of memory, in all */
	struct top_row *rows;	  /* most live bytes first */
	size_t n_rows;
};

enum top_order { TOP_BY_LIVE, TOP_BY_GROWTH, TOP_BY_COUNT, TOP_N_ORDERS };

/* Looks at replay, which has made its first pass, and as far back as window_ns, or as single
 * records of the trace reach. Returns 0, to be ended with top_release, or VT_E_NO_MEMORY. */
int top_make(struct top *top, struct replay *replay, uint64_t window_ns);
void top_sort(struct top *top, enum top_order order);
void top_release(struct top *top);

/* "live", "growth", "count". */
const char *top_order_name(enum top_order order);

#endif
