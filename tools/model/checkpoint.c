/*
 * The checkpoint that a part of a bounded trace opens with. Records of what still lives are
 * repeated in it and say what they always say; here is what sums up the rest. Everything is added
 * to what other records say, or is the greater of the two, so that their order does not matter.
 */
#include <stdlib.h>

#include "model/blocks.h"
#include "model/internal.h"
#include "model/memory.h"

static struct model_device *device_in(struct model *model, int64_t ordinal)
{
	return ordinal == VT_DEVICE_HOST ? &model->host : model_device_of(model, ordinal);
}

static void apply_checkpoint(struct model *model, const struct vt_rec_checkpoint *given)
{
	/* Of several the first one counts; the reader leaves the others out. */
	if (model->part)
		return;
	model->part = given->part ? given->part : 1;
	model->kept_from_ns = given->made_ns;
	model->n_events += (uint64_t)given->n_events;
	model->first_ns = given->first_ns;
	model->last_ns = given->made_ns;
	model->n_unknown_frees += given->n_unknown_frees;
	model->n_missed_frees += given->n_missed_frees;
	model->n_graph_launches += given->n_graph_launches;
}

static void raise_to(uint64_t *most, uint64_t bytes)
{
	if (bytes > *most)
		*most = bytes;
}

static void raise_peak(struct model_peak *peak, const struct vt_rec_figure *given)
{
	if ((uint64_t)given->value > peak->bytes)
		*peak = (struct model_peak){(uint64_t)given->value, given->when_ns};
}

static void apply_allocator(struct model *model, const struct vt_rec_figure *given)
{
	struct model_allocator *allocator = model_allocator_of(model, given->id);
	struct model_check *check = &allocator->check;

	switch (given->what) {
	case VT_FIGURE_BLOCKS_PEAK:
		raise_peak(&allocator->peak_live, given);
		break;
	case VT_FIGURE_RESERVED_PEAK:
		raise_peak(&allocator->peak_reserved, given);
		break;
	case VT_FIGURE_TOLD_ALLOCATED:
		check->known = true;
		check->allocated_bytes += (uint64_t)given->value;
		break;
	default:
		check->reserved_bytes += (uint64_t)given->value;
		break;
	}
}

/* The part of what is held that a kind of memory is. */
static uint64_t *held_of(struct model_held *held, uint64_t kind)
{
	switch (kind) {
	case VT_KIND_LINEAR:
		return &held->linear_bytes;
	case VT_KIND_ARRAY:
		return &held->array_bytes;
	case VT_KIND_POOL:
		return &held->pool_bytes;
	case VT_KIND_VMM:
		return &held->vmm_bytes;
	case VT_KIND_GRAPH:
		return &held->graph_bytes;
	default:
		return NULL;
	}
}

static void apply_held(struct model_account *account, const struct vt_rec_figure *given)
{
	uint64_t *part = held_of(&account->held, given->kind);

	if (!part)
		return;
	*part = (uint64_t)given->value;
	account->tracked_bytes += *part;
}

static void apply_untracked(struct model_account *account, const struct vt_rec_figure *given)
{
	if (given->kind >= VT_N_CAUSES)
		return;
	account->untracked_bytes[given->kind] = given->value;
	account->untracked_sum_bytes = add_wrapped(account->untracked_sum_bytes, given->value);
}

/* The last figure of a sample: the account is complete. */
static void apply_free(struct model_device *device, const struct vt_rec_figure *given)
{
	struct model_account *account = &device->account;
	uint64_t used_bytes = account->total_bytes - (uint64_t)given->value;

	account->seen = true;
	account->time_ns = given->when_ns;
	account->free_bytes = (uint64_t)given->value;
	account->context_known = account->others_measured = device->others_measured;
	account->others_bytes = device->others_bytes;
	account->pools_known = account->graphs_known = true;
	account->unexplained_bytes =
		(int64_t)(used_bytes - account->tracked_bytes -
			  (uint64_t)account->untracked_sum_bytes - (uint64_t)account->others_bytes);
	device->last_sample =
		(struct model_sample){true, given->when_ns, account->free_bytes, used_bytes};
}

static void apply_device(struct model_device *device, const struct vt_rec_figure *given)
{
	uint64_t value = (uint64_t)given->value;

	switch (given->what) {
	case VT_FIGURE_PEAK:
		raise_to(&device->peak_tracked_bytes, value);
		device->peak_time_ns = given->when_ns;
		/* Where the program was then is not known. */
		device->peak_place_ns = given->when_ns;
		device->peak_place_bytes = value;
		break;
	case VT_FIGURE_PEAK_BLOCKS:
		raise_to(&device->peak_block_bytes, value);
		break;
	case VT_FIGURE_PEAK_FREE:
		device->peak_sample = (struct model_sample){
			true, given->when_ns, value, device->account.total_bytes - value};
		break;
	case VT_FIGURE_KIND_PEAK:
		raise_to(&device->kinds[kind_from(given->kind)].peak_live_bytes, value);
		break;
	case VT_FIGURE_OTHERS:
		device->others_known = true;
		device->others_measured = given->kind;
		device->others_bytes = given->value;
		break;
	case VT_FIGURE_TOTAL:
		device->account = (struct model_account){.total_bytes = value};
		break;
	case VT_FIGURE_HELD:
		apply_held(&device->account, given);
		break;
	case VT_FIGURE_UNTRACKED:
		apply_untracked(&device->account, given);
		break;
	case VT_FIGURE_FREE:
		apply_free(device, given);
		break;
	case VT_FIGURE_MOST_USED:
		device->most_used = (struct model_sample){
			true, given->when_ns, device->account.total_bytes - value, value};
		break;
	default:
		break;
	}
}

static void apply_figure(struct model *model, const struct vt_rec_figure *given)
{
	switch (given->what) {
	case VT_FIGURE_BLOCKS_PEAK:
	case VT_FIGURE_RESERVED_PEAK:
	case VT_FIGURE_TOLD_ALLOCATED:
	case VT_FIGURE_TOLD_RESERVED:
		apply_allocator(model, given);
		break;
	case VT_FIGURE_PAUSED:
		model->pauses.n += given->id;
		model->pauses.total_ns += (uint64_t)given->value;
		break;
	default:
		apply_device(device_in(model, given->device), given);
		break;
	}
}

static void add_totals(struct model_totals *totals, const struct vt_rec_past *given)
{
	totals->n_allocs += given->count;
	totals->alloc_bytes += given->bytes;
	totals->n_frees += given->count - given->n_teardown;
	totals->free_bytes += given->bytes - given->teardown_bytes;
	totals->n_teardown += given->n_teardown;
	totals->teardown_bytes += given->teardown_bytes;
}

static void add_to_site(struct model_site *site, const struct vt_rec_past *given)
{
	if (!site->n_allocs || given->first_ns < site->first_ns)
		site->first_ns = given->first_ns;
	if (given->last_ns > site->last_ns)
		site->last_ns = given->last_ns;
	site->n_allocs += given->count;
	site->alloc_bytes += given->bytes;
	site->n_teardown += given->n_teardown;
	site->teardown_bytes += given->teardown_bytes;
	site->n_past_peak = given->peak_count;
	site->past_peak_bytes = given->peak_bytes;
	if (site->group)
		add_totals(site->group, given);
}

static void apply_allocations(struct model *model, const struct vt_rec_past *given)
{
	struct model_device *device = device_in(model, given->device);
	uint32_t kind = kind_from(given->kind);
	struct model_allocator *allocator;

	if (!given->id) {
		add_totals(&device->kinds[kind], given);
		add_to_site(model_site_of(model, given->stack_id, device, kind), given);
		return;
	}
	allocator = model_allocator_of(model, given->id);
	if (given->first_ns && (!allocator->first_ns || given->first_ns < allocator->first_ns))
		allocator->first_ns = given->first_ns;
	allocator->n_allocs += given->count;
	allocator->alloc_bytes += given->bytes;
	allocator->n_frees += given->count;
	/* Blocks in memory that is not known have no site. */
	if (kind != VT_KIND_NONE)
		add_to_site(model_block_site_of(model, given->stack_id, device, kind, given->id),
			given);
}

static void apply_refusals(struct model *model, const struct vt_rec_past *given)
{
	struct model_failure_key key = {
		.stack_id = given->stack_id,
		.api_id = given->api_id,
		.caller_api = given->caller_api,
		.result = given->result,
		.device = device_in(model, given->device)->ordinal,
		.refusal = (uint16_t)given->id,
		.kind = (uint16_t)kind_from(given->kind),
	};

	if (given->id <= MODEL_REFUSED_BLOCK)
		model_note_failures(model, &key, given);
	if (given->id == MODEL_REFUSED_BLOCK)
		model_allocator_of(model, given->api_id)->n_failures += given->count;
}

static void add_idle(struct model *model, const struct vt_rec_past *given)
{
	model->past_idle = memory_grow(model->past_idle, model->n_past_idle, &model->past_idle_room,
		sizeof(*model->past_idle));
	model->past_idle[model->n_past_idle++] = (struct model_past_idle){.allocator_id = given->id,
		.device = device_in(model, given->device)->ordinal,
		.kind = kind_from(given->kind),
		.n_segments = given->peak_count,
		.bytes = given->peak_bytes};
}

static void apply_past(struct model *model, const struct vt_rec_past *given)
{
	switch (given->what) {
	case VT_PAST_ALLOC:
		apply_allocations(model, given);
		break;
	case VT_PAST_REFUSED:
		apply_refusals(model, given);
		break;
	case VT_PAST_IDLE:
		add_idle(model, given);
		break;
	default:
		break;
	}
}

void checkpoint_apply(struct model *model, const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_checkpoint:
		apply_checkpoint(model, &record->checkpoint);
		break;
	case VT_REC_figure:
		apply_figure(model, &record->figure);
		break;
	case VT_REC_past:
		apply_past(model, &record->past);
		break;
	default:
		model->stretches = memory_grow(model->stretches, model->n_stretches,
			&model->stretches_room, sizeof(*model->stretches));
		model->stretches[model->n_stretches++] = record->stretch;
		break;
	}
}
