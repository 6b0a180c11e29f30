/*
 * What the driver and NVML said about a device's memory, and the account made of it: at each sample
 * everything in use on the device is what others use, what is tracked, what was measured to go
 * without being allocated, and a rest that nothing explains.
 */
#include "model/internal.h"

static int64_t sum_of(const int64_t *bytes)
{
	int64_t sum = 0;

	for (size_t cause = 0; cause < VT_N_CAUSES; cause++)
		sum = add_wrapped(sum, bytes[cause]);
	return sum;
}

/* What others use where NVML did not tell: what is in use already at the first sample, and not this
 * process's by anything that is known. It is taken to stay. */
static void assume_others(struct model_device *device, uint64_t used_bytes, int64_t untracked_bytes)
{
	int64_t rest = (int64_t)(used_bytes - device->tracked_bytes - (uint64_t)untracked_bytes);

	if (device->others_known)
		return;
	device->others_known = true;
	device->others_bytes = rest > 0 ? rest : 0;
}

static bool pools_known(const struct model *model, const struct model_device *device)
{
	for (const struct model_pool *pool = model->pools; pool; pool = pool->hh.next)
		if (pool->device == device && pool->held_bytes && !pool->sampled)
			return false;
	return true;
}

static void make_account(
	const struct model *model, struct model_device *device, const struct vt_rec_memory *given)
{
	struct model_account *account = &device->account;
	uint64_t used_bytes = given->total_bytes - given->free_bytes;
	int64_t untracked_bytes = sum_of(device->untracked_bytes);

	assume_others(device, used_bytes, untracked_bytes);
	*account = (struct model_account){
		.seen = true,
		.time_ns = given->time_ns,
		.total_bytes = given->total_bytes,
		.free_bytes = given->free_bytes,
		.tracked_bytes = device->tracked_bytes,
		.held = device->held,
		.untracked_sum_bytes = untracked_bytes,
		.context_known = device->others_measured,
		.others_measured = device->others_measured,
		.pools_known = pools_known(model, device),
		.graphs_known = device->graph_sampled || !device->held.graph_bytes,
		.others_bytes = device->others_bytes,
		.unexplained_bytes =
			(int64_t)(used_bytes - device->tracked_bytes - (uint64_t)untracked_bytes -
				  (uint64_t)device->others_bytes),
	};
	for (size_t cause = 0; cause < VT_N_CAUSES; cause++)
		account->untracked_bytes[cause] = device->untracked_bytes[cause];
}

static void apply_memory(struct model *model, const struct vt_rec_memory *given)
{
	struct model_device *device = model_device_of(model, given->device);
	struct model_sample sample = {true, given->time_ns, given->free_bytes, 0};

	if (given->free_bytes > given->total_bytes)
		return;
	sample.used_bytes = given->total_bytes - given->free_bytes;
	device->last_sample = sample;
	if (!device->most_used.seen || sample.used_bytes > device->most_used.used_bytes)
		device->most_used = sample;
	if (device->peak_tracked_bytes && device->tracked_bytes == device->peak_tracked_bytes)
		device->peak_sample = sample;
	make_account(model, device, given);
}

static void note_context(struct model_first_context *first, const struct vt_rec_untracked *given)
{
	if (!first->measured)
		first->stack_id = given->stack_id;
	first->measured = true;
	first->taken_bytes = add_wrapped(first->taken_bytes, given->taken_bytes);
}

static void apply_untracked(struct model *model, const struct vt_rec_untracked *given)
{
	struct model_device *device = model_device_of(model, given->device);
	struct model_context *context = device->newest_context;
	int64_t *sum;

	if (!given->cause || given->cause >= VT_N_CAUSES)
		return;
	sum = &device->untracked_bytes[given->cause];
	*sum = add_wrapped(*sum, given->taken_bytes);
	if (given->cause == VT_CAUSE_CONTEXT)
		note_context(&device->first_context, given);
	if (given->cause == VT_CAUSE_CONTEXT && context)
		context->taken_bytes = add_wrapped(context->taken_bytes, given->taken_bytes);
	device->n_untracked++;
}

/* Memory can be had on a device without a context there, from pools for one. */
static bool was_used(const struct model_device *device)
{
	for (size_t kind = 0; kind < VT_N_KINDS; kind++)
		if (device->kinds[kind].n_allocs)
			return true;
	return false;
}

/* With a context or memory of its own already there, what is in use is no longer the others' alone.
 */
static void apply_others(struct model *model, const struct vt_rec_others *given)
{
	struct model_device *device = model_device_of(model, given->device);

	if (given->at_refusal) {
		device->listed = (struct model_listed){true, given->time_ns, given->used_bytes,
			given->n_processes, given->largest_pid, given->largest_bytes};
		/* Where what contexts take was not measured, it is among what others are taken to
		 * use. */
		if (device->others_measured)
			device->others_bytes = (int64_t)given->used_bytes;
		return;
	}
	if (device->n_contexts > 1 || was_used(device))
		return;
	device->others_known = true;
	device->others_measured = true;
	device->others_bytes = (int64_t)given->used_bytes;
}

void account_apply(struct model *model, const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_memory:
		apply_memory(model, &record->memory);
		break;
	case VT_REC_untracked:
		apply_untracked(model, &record->untracked);
		break;
	case VT_REC_others:
		apply_others(model, &record->others);
		break;
	default:
		break;
	}
}
