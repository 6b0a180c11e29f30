#include "output/timeline_bands.h"

#include <string.h>

static uint64_t peak_of(
	const struct timeline *timeline, const struct timeline_device *device, size_t owner)
{
	uint64_t peak = 0;

	for (size_t i = 0; i < timeline->n_columns; i++)
		if (device->columns[i].owner_bytes[owner] > peak)
			peak = device->columns[i].owner_bytes[owner];
	return peak;
}

void timeline_bands_make(struct timeline_bands *bands, const struct timeline *timeline,
	const struct timeline_device *device)
{
	uint64_t peaks[TIMELINE_N_OWNERS], bytes[TIMELINE_N_BANDS + 1];

	*bands = (struct timeline_bands){.has_owners = device->n_owners != 0};
	for (size_t i = 0; i < device->n_owners; i++)
		peaks[i] = peak_of(timeline, device, i);
	while (bands->n_tops < TIMELINE_N_TOP && bands->n_tops < device->n_owners) {
		size_t best = 0;

		for (size_t i = 1; i < device->n_owners; i++)
			if (peaks[i] > peaks[best])
				best = i;
		if (!peaks[best])
			break;
		peaks[best] = 0;
		bands->tops[bands->n_tops++] = best;
	}
	for (size_t i = 0; i < timeline->n_columns; i++) {
		timeline_bands_fill(bands, &device->columns[i], bytes);
		bands->has_others = bands->has_others || bytes[TIMELINE_N_TOP];
		bands->has_idle = bands->has_idle || bytes[TIMELINE_N_BANDS];
	}
}

void timeline_bands_fill(const struct timeline_bands *bands, const struct timeline_column *column,
	uint64_t bytes[TIMELINE_N_BANDS + 1])
{
	uint64_t left = column->live_bytes < column->tracked_bytes ? column->live_bytes
								   : column->tracked_bytes;

	memset(bytes, 0, (TIMELINE_N_BANDS + 1) * sizeof(*bytes));
	if (!bands->has_owners) {
		bytes[0] = column->tracked_bytes;
		return;
	}
	bytes[TIMELINE_N_BANDS] = column->tracked_bytes - left;
	for (size_t i = 0; i < bands->n_tops; i++) {
		uint64_t part = column->owner_bytes[bands->tops[i]];

		bytes[i] = part < left ? part : left;
		left -= bytes[i];
	}
	bytes[TIMELINE_N_TOP] = left;
}

const char *timeline_band_name(
	const struct timeline_bands *bands, const struct timeline_device *device, size_t band)
{
	const char *owner;

	if (!bands->has_owners)
		return band ? NULL : "tracked memory";
	if (band == TIMELINE_N_BANDS)
		return bands->has_idle ? "reserved, not in use" : NULL;
	if (band == TIMELINE_N_TOP)
		return bands->has_others ? "others" : NULL;
	if (band >= bands->n_tops)
		return NULL;
	owner = device->owners[bands->tops[band]];
	return owner ? owner : "unknown";
}

uint64_t timeline_top(const struct timeline *timeline, const struct timeline_device *device,
	uint64_t peak_tracked_bytes)
{
	uint64_t top = peak_tracked_bytes;

	for (size_t i = 0; i < timeline->n_columns; i++) {
		const struct timeline_column *column = &device->columns[i];

		if (column->used_known && column->used_bytes > top)
			top = column->used_bytes;
	}
	return top;
}
