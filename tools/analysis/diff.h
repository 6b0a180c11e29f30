/* What became more and what less between two moments, of one trace or of two: by call site and by
 * owner. */
#ifndef VRAMTRACE_ANALYSIS_DIFF_H
#define VRAMTRACE_ANALYSIS_DIFF_H

#include "analysis/sites.h"

/* One of the two moments. */
struct diff_side {
	const struct site_list *sites;
	/* The text that is equal for the same call site on both sides; to be freed. */
	char *(*key)(void *user, const struct site_row *row);
	/* Whose it is; NULL not known. Valid as long as the diff. */
	const char *(*owner)(void *user, const struct site_row *row);
	void *user;
};

struct diff_row {
	int device;
	const char *owner; /* NULL not known */
	const struct site_row
		*sites[2]; /* the first row of each side; NULL: none there. Not of owners
			    */
	uint64_t bytes[2];
	uint64_t counts[2];
};

struct diff_rows {
	struct diff_row *items;
	size_t n_items, room;
	size_t n_left_out; /* by a limit */
};

/* All zero is empty; release it with diff_release. Only what is live counts. */
struct diff {
	struct diff_rows sites, owners; /* what grew most first; what is as it was is left out */
};

/* From sides[0] to sides[1], whose lists must outlive diff. */
void diff_make(struct diff *diff, const struct diff_side sides[2]);

/* Keeps the changes by at least min_bytes, on the filter's device, and at most limit sites. */
void diff_filter(struct diff *diff, const struct site_filter *filter);

void diff_release(struct diff *diff);

#endif
