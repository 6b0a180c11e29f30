#include "analysis/gpus.h"

#include <stdlib.h>
#include <string.h>

#include "model/memory.h"

#define UUID_BYTES 16u

/* Between what a process sees and the time it notes, others may have noted something. */
#define SKEW_NS 1000000u

static bool is_uuid(struct vt_text uuid)
{
	static const char none[UUID_BYTES];

	return uuid.bytes == UUID_BYTES && memcmp(uuid.data, none, UUID_BYTES);
}

static struct gpu *gpu_of(struct gpu_list *list, const struct model_device *device)
{
	bool known = is_uuid(device->uuid);

	for (size_t i = 0; i < list->n_items && known; i++)
		if (list->items[i].uuid.bytes &&
			!memcmp(list->items[i].uuid.data, device->uuid.data, UUID_BYTES))
			return &list->items[i];
	list->items = memory_grow(list->items, list->n_items, &list->room, sizeof(*list->items));
	list->items[list->n_items] = (struct gpu){.uuid = {NULL, 0}};
	if (known)
		list->items[list->n_items].uuid = device->uuid;
	return &list->items[list->n_items++];
}

/* Seeing it is not using it. */
static bool is_used(const struct model_device *device)
{
	for (size_t kind = 0; kind < VT_N_KINDS; kind++)
		if (device->kinds[kind].n_allocs)
			return true;
	return device->first_context.seen || device->n_contexts || device->peak_tracked_bytes;
}

void gpu_list_add(struct gpu_list *list, size_t process, const struct model *model)
{
	for (size_t i = 0; i < model->n_devices; i++) {
		const struct model_device *device = model->devices[i];
		struct gpu *gpu;

		if (!is_used(device))
			continue;
		gpu = gpu_of(list, device);
		gpu->shares =
			memory_grow(gpu->shares, gpu->n_shares, &gpu->room, sizeof(*gpu->shares));
		gpu->shares[gpu->n_shares++] = (struct gpu_share){.process = process,
			.device = device,
			.end_untracked_bytes = gpu_untracked(device)};
	}
}

static int64_t untracked_of(const struct gpu_share *share)
{
	if (share->measured_bytes <= 0)
		return share->measured_bytes;
	return share->measured_bytes > share->excess_bytes
		       ? share->measured_bytes - share->excess_bytes
		       : 0;
}

void gpu_note_peak(struct gpu *gpu)
{
	for (size_t i = 0; i < gpu->n_shares && gpu->is_rising; i++) {
		gpu->shares[i].peak_tracked_bytes = gpu->shares[i].tracked_bytes;
		gpu->shares[i].peak_untracked_bytes = untracked_of(&gpu->shares[i]);
	}
	gpu->is_rising = false;
}

int64_t gpu_take(struct gpu *gpu, struct gpu_share *share, uint64_t tracked_bytes,
	int64_t untracked_bytes, uint64_t time_ns)
{
	int64_t more_bytes = (int64_t)(tracked_bytes - share->tracked_bytes);
	uint64_t peak_bytes = gpu->tracked.peak_bytes;

	if (!more_bytes && untracked_bytes == share->measured_bytes)
		return 0;
	/* Only now is it known that nothing higher comes first. */
	if (more_bytes <= 0)
		gpu_note_peak(gpu);
	share->measured_bytes = untracked_bytes;
	if (!more_bytes)
		return 0;
	share->before_bytes = share->tracked_bytes;
	share->changed_ns = time_ns;
	share->tracked_bytes = tracked_bytes;
	held_sum_add(&gpu->tracked, more_bytes, time_ns);
	gpu->is_at_peak = gpu->tracked.peak_bytes > peak_bytes;
	gpu->is_rising = gpu->is_rising || gpu->is_at_peak;
	return more_bytes;
}

/* The least that all but one may have held when that one looked. */
static uint64_t least_tracked(
	const struct gpu *gpu, const struct gpu_share *looking, uint64_t time_ns)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < gpu->n_shares; i++) {
		const struct gpu_share *share = &gpu->shares[i];
		bool unclear = share != looking && time_ns - share->changed_ns < SKEW_NS &&
			       share->before_bytes < share->tracked_bytes;

		sum += unclear ? share->before_bytes : share->tracked_bytes;
	}
	return sum;
}

/* The most that each may have for all together to have limit_bytes. */
static int64_t level_of(const struct gpu *gpu, int64_t limit_bytes)
{
	int64_t level = -1, next = 0;

	/* It rises as those that are below leave more to the others. */
	while (next > level) {
		int64_t rest = limit_bytes, n_above = 0;

		level = next;
		for (size_t i = 0; i < gpu->n_shares; i++) {
			int64_t bytes = gpu->shares[i].measured_bytes;

			if (bytes > level)
				n_above++;
			else if (bytes > 0)
				rest -= bytes;
		}
		if (!n_above)
			return INT64_MAX;
		next = rest / n_above;
	}
	return level;
}

void gpu_sample(
	struct gpu *gpu, const struct gpu_share *share, uint64_t used_bytes, uint64_t time_ns)
{
	uint64_t tracked_bytes = least_tracked(gpu, share, time_ns);
	int64_t level = level_of(
		gpu, used_bytes > tracked_bytes ? (int64_t)(used_bytes - tracked_bytes) : 0);
	size_t n_measured = 0;

	for (size_t i = 0; i < gpu->n_shares; i++)
		n_measured += gpu->shares[i].measured_bytes > 0;
	for (size_t i = 0; i < gpu->n_shares; i++) {
		int64_t bytes = gpu->shares[i].measured_bytes;
		int64_t *excess = &gpu->shares[i].excess_bytes;

		if (n_measured >= gpu->n_measured || bytes - level > *excess)
			*excess = bytes > level ? bytes - level : 0;
	}
	if (n_measured > gpu->n_measured)
		gpu->n_measured = n_measured;
	/* Of the time at the peak, the last sample says most. */
	gpu->is_rising = gpu->is_rising || gpu->is_at_peak;
	if (gpu->is_at_peak)
		gpu_note_peak(gpu);
}

void gpu_share_end(struct gpu_share *share)
{
	share->end_untracked_bytes = untracked_of(share);
}

int64_t gpu_untracked(const struct model_device *device)
{
	uint64_t sum = 0;

	for (size_t cause = 0; cause < VT_N_CAUSES; cause++)
		sum += (uint64_t)device->untracked_bytes[cause];
	return (int64_t)sum;
}

void gpu_list_release(struct gpu_list *list)
{
	for (size_t i = 0; i < list->n_items; i++)
		free(list->items[i].shares);
	free(list->items);
	*list = (struct gpu_list){0};
}
