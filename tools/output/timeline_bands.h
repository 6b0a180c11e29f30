/* The parts that a drawing of tracked memory is stacked from. */
#ifndef VRAMTRACE_OUTPUT_TIMELINE_BANDS_H
#define VRAMTRACE_OUTPUT_TIMELINE_BANDS_H

#include "analysis/timeline.h"

/* Owners with a band of their own; one more holds the others. */
#define TIMELINE_N_TOP	 3u
#define TIMELINE_N_BANDS (TIMELINE_N_TOP + 1u)

struct timeline_bands {
	size_t tops[TIMELINE_N_TOP]; /* indices of owners, the highest peak first */
	size_t n_tops;
	bool has_owners; /* false: one band, of all that is tracked */
	bool has_others, has_idle;
};

void timeline_bands_make(struct timeline_bands *bands, const struct timeline *timeline,
	const struct timeline_device *device);

/* Bytes of each band of a column, from the bottom to the top, the last one what is reserved and not
 * in use. Their sum is what is tracked. */
void timeline_bands_fill(const struct timeline_bands *bands, const struct timeline_column *column,
	uint64_t bytes[TIMELINE_N_BANDS + 1]);

/* The name of a band, for a legend; NULL: it is nowhere. */
const char *timeline_band_name(
	const struct timeline_bands *bands, const struct timeline_device *device, size_t band);

/* The most that is shown of the device: tracked, or in use by all. */
uint64_t timeline_top(const struct timeline *timeline, const struct timeline_device *device,
	uint64_t peak_tracked_bytes);

#endif
