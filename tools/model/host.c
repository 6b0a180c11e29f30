/* The host's side: samples of the kernel's, and whether recording was paused. */
#include "model/internal.h"

static void note_highest(struct model_extreme *extreme, bool known, uint64_t bytes, uint64_t ns)
{
	if (known && (!extreme->seen || bytes > extreme->bytes))
		*extreme = (struct model_extreme){true, bytes, ns};
}

static void note_lowest(struct model_extreme *extreme, bool known, uint64_t bytes, uint64_t ns)
{
	if (known && (!extreme->seen || bytes < extreme->bytes))
		*extreme = (struct model_extreme){true, bytes, ns};
}

uint64_t model_swap_used(const struct vt_rec_host_memory *sample)
{
	return sample->swap_total_bytes > sample->swap_free_bytes
		       ? sample->swap_total_bytes - sample->swap_free_bytes
		       : 0;
}

static void apply_sample(struct model_host_samples *samples, const struct vt_rec_host_memory *given)
{
	uint64_t known = given->known, ns = given->time_ns;

	samples->n++;
	samples->last = *given;
	note_highest(&samples->most_resident, known & VT_HOST_RESIDENT, given->resident_bytes, ns);
	note_highest(&samples->most_locked, known & VT_HOST_LOCKED, given->locked_bytes, ns);
	note_highest(&samples->most_swapped, known & VT_HOST_SWAPPED, given->swapped_bytes, ns);
	note_lowest(
		&samples->least_available, known & VT_HOST_AVAILABLE, given->available_bytes, ns);
	note_highest(&samples->most_swap_used, known & VT_HOST_SWAP, model_swap_used(given), ns);
}

static void apply_pause(struct model_pauses *pauses, const struct vt_rec_pause *given)
{
	if (pauses->now == (given->paused != 0))
		return;
	pauses->now = given->paused != 0;
	if (pauses->now) {
		pauses->n++;
		pauses->since_ns = given->time_ns;
	} else if (given->time_ns > pauses->since_ns) {
		pauses->total_ns += given->time_ns - pauses->since_ns;
	}
}

uint64_t model_paused_ns(const struct model *model)
{
	const struct model_pauses *pauses = &model->pauses;
	bool open = pauses->now && model->last_ns > pauses->since_ns;

	return pauses->total_ns + (open ? model->last_ns - pauses->since_ns : 0);
}

void host_apply(struct model *model, const struct vt_record *record)
{
	if (record->kind == VT_REC_pause)
		apply_pause(&model->pauses, &record->pause);
	else
		apply_sample(&model->host_samples, &record->host_memory);
}
