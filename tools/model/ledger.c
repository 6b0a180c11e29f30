/* Live blocks by address, arrays by handle, and the books: bytes by device and kind, and by site.
 */
#include <stdlib.h>

#include "model/events.h"
#include "model/internal.h"
#include "model/memory.h"

void ledger_hold(struct model_device *device, uint64_t *part, uint64_t bytes)
{
	device->tracked_bytes += bytes - *part;
	*part = bytes;
}

void ledger_note_peak(struct model_device *device, uint64_t time_ns)
{
	if (device->tracked_bytes < device->peak_tracked_bytes ||
		(device->tracked_bytes == device->peak_tracked_bytes &&
			device->block_bytes <= device->peak_block_bytes))
		return;
	if (device->tracked_bytes > device->peak_tracked_bytes)
		device->peak_sample.seen = false;
	device->peak_tracked_bytes = device->tracked_bytes;
	device->peak_block_bytes = device->block_bytes;
	device->peak_time_ns = time_ns;
}

/* What a device holds for blocks of this kind. */
static void book(struct model *model, struct model_block *block, bool add)
{
	struct model_device *device = block->device;
	struct model_held *held = &device->held;

	switch (block->kind) {
	case VT_KIND_LINEAR:
	case VT_KIND_ARRAY:
		pages_book(model, block, add);
		break;
	case VT_KIND_POOL:
		pool_book(model, block, add);
		break;
	case VT_KIND_VMM:
		ledger_hold(device, &held->vmm_bytes,
			add ? held->vmm_bytes + block->bytes : held->vmm_bytes - block->bytes);
		break;
	case VT_KIND_GRAPH:
		graph_settle(device);
		break;
	default:
		break;
	}
}

static void note_change(struct model *model, struct model_change change)
{
	model->changes = memory_grow(
		model->changes, model->n_changes, &model->changes_room, sizeof(*model->changes));
	model->changes[model->n_changes++] = change;
}

void site_moved(struct model *model, struct model_site *site)
{
	note_change(model, (struct model_change){.site = site, .how = MODEL_MOVED});
}

void site_remove(struct model *model, struct model_site *site, enum model_change_how how,
	uint64_t bytes, uint64_t born_ns, uint64_t address)
{
	site->live_bytes -= bytes;
	site->n_live--;
	if (how == MODEL_ENDED) {
		site->n_teardown++;
		site->teardown_bytes += bytes;
	}
	note_change(model, (struct model_change){site, how, bytes, born_ns, address});
}

void site_add(struct model *model, struct model_site *site, uint64_t bytes,
	const struct place_in_trace *place)
{
	size_t low = 0, high = site->n_tids;
	uint32_t tid = place->tid;

	/* A checkpoint tells of earlier ones, and of later ones that are gone. */
	if (!site->n_allocs && !site->first_ns)
		site->first_ns = place->time_ns;
	if (place->time_ns > site->last_ns)
		site->last_ns = place->time_ns;
	site->live_bytes += bytes;
	site->n_live++;
	site->alloc_bytes += bytes;
	site->n_allocs++;
	note_change(model, (struct model_change){site, MODEL_BORN, bytes, place->time_ns, 0});
	if (site->n_tids && site->last_tid == tid)
		return;
	site->last_tid = tid;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (site->tids[middle] == tid)
			return;
		if (site->tids[middle] < tid)
			low = middle + 1;
		else
			high = middle;
	}
	site->tids = memory_grow(site->tids, site->n_tids, &site->tids_room, sizeof(*site->tids));
	for (size_t i = site->n_tids++; i > low; i--)
		site->tids[i] = site->tids[i - 1];
	site->tids[low] = tid;
}

/* More bytes of something that is live. */
static void totals_grow(struct model_totals *totals, uint64_t bytes)
{
	totals->live_bytes += bytes;
	totals->alloc_bytes += bytes;
	if (totals->live_bytes > totals->peak_live_bytes)
		totals->peak_live_bytes = totals->live_bytes;
}

static void totals_add(struct model_totals *totals, uint64_t bytes)
{
	totals->n_live++;
	totals->n_allocs++;
	totals_grow(totals, bytes);
}

static void totals_remove(struct model_totals *totals, uint64_t bytes, bool teardown)
{
	totals->live_bytes -= bytes;
	totals->n_live--;
	if (teardown) {
		totals->n_teardown++;
		totals->teardown_bytes += bytes;
	} else {
		totals->n_frees++;
		totals->free_bytes += bytes;
	}
}

void ledger_add(struct model *model, struct model_block *block, const struct place_in_trace *place)
{
	struct model_device *device = block->device;

	block->time_ns = place->time_ns;
	block->tid = place->tid;
	block->site = model_site_of(model, place->stack_id, device, block->kind);
	site_add(model, block->site, block->bytes, place);
	totals_add(&device->kinds[block->kind], block->bytes);
	if (block->site->group)
		totals_add(block->site->group, block->bytes);
	book(model, block, true);
	ledger_note_peak(device, place->time_ns);
	block->number = model->n_ranges++;
	model_tell(model, &(struct model_event){MODEL_BLOCK_BEGIN, .block = block});
}

void ledger_grow(struct model *model, struct model_block *block, uint64_t bytes)
{
	block->bytes += bytes;
	block->site->live_bytes += bytes;
	block->site->alloc_bytes += bytes;
	site_moved(model, block->site);
	totals_grow(&block->device->kinds[block->kind], bytes);
	if (block->site->group)
		totals_grow(block->site->group, bytes);
}

void ledger_remove(struct model *model, struct model_block *block, bool teardown)
{
	model_tell(model,
		&(struct model_event){MODEL_BLOCK_END, .teardown = teardown, .block = block});
	totals_remove(&block->device->kinds[block->kind], block->bytes, teardown);
	if (block->site->group)
		totals_remove(block->site->group, block->bytes, teardown);
	site_remove(model, block->site, teardown ? MODEL_ENDED : MODEL_FREED, block->bytes,
		block->time_ns, block->node.key);
	book(model, block, false);
}

static struct model_block *block_from(struct tree_node *node)
{
	return node ? container(node, struct model_block, node) : NULL;
}

static struct tree *tree_of(struct model *model, uint32_t kind)
{
	return kind == VT_KIND_ARRAY ? &model->arrays : &model->live;
}

struct model_block *ledger_block_at(const struct model *model, uint64_t address)
{
	struct model_block *block = block_from(tree_floor(&model->live, address));

	/* Of what has no known size at least the first byte is there. */
	return block && address - block->node.key < (block->bytes ? block->bytes : 1) ? block
										      : NULL;
}

struct model_block *ledger_block_from(const struct model *model, uint64_t address)
{
	return block_from(tree_find(&model->live, address));
}

struct model_block *ledger_array(const struct model *model, uint64_t handle)
{
	return block_from(tree_find(&model->arrays, handle));
}

void ledger_end_block(struct model *model, struct model_block *block, bool teardown)
{
	context_remove_block(block);
	if (block->segment)
		segment_end(model, block->segment);
	ledger_remove(model, block, teardown);
	tree_remove(tree_of(model, block->kind), &block->node);
	free(block->use);
	free(block);
}

struct model_block *ledger_new_block(struct model *model, uint32_t kind, uint64_t address)
{
	struct tree *tree = tree_of(model, kind);
	struct model_block *block = block_from(tree_find(tree, address));

	if (block) {
		/* The address is used again: if a context that was let go held it, that context has
		 * ended. */
		context_touch(model, block->context);
		block = block_from(tree_find(tree, address));
	}
	if (block) {
		model->n_missed_frees++;
		ledger_end_block(model, block, false);
	}
	block = memory_new(1, sizeof(*block));
	block->kind = kind;
	tree_insert(tree, &block->node, address);
	return block;
}

/* Where memory of this kind is, that a record says is on a device. */
static struct model_device *device_for(struct model *model, uint32_t kind, int64_t ordinal)
{
	return kind == VT_KIND_PINNED || kind == VT_KIND_REGISTERED
		       ? &model->host
		       : model_device_of(model, ordinal);
}

void ledger_apply_alloc(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_alloc *alloc = &record->alloc;
	const struct place_in_trace place = {alloc->stack_id, alloc->time_ns, record->tid};
	uint32_t kind = kind_from(alloc->kind);
	struct model_device *device = device_for(model, kind, alloc->device);
	/* A pool may be on another device than the context. */
	bool told = alloc->device >= 0 && kind != VT_KIND_POOL;
	struct model_context *context = context_use(model, alloc->context_id, told ? device : NULL);
	struct model_block *block = ledger_new_block(model, kind, alloc->address);

	block->bytes = alloc->bytes;
	block->device = device;
	if (kind == VT_KIND_POOL) {
		block->pool = pool_of(model, alloc->pool, device);
		block->device = block->pool->device;
	}
	context_add_block(context, block);
	ledger_add(model, block, &place);
	host_use_begin(model, block, alloc);
	again_note_alloc(model, block, alloc);
}

/* What the free of a record, which frees `block` if that is known, is refused. */
static void note_refused(
	struct model *model, const struct vt_rec_free *given, const struct model_block *block)
{
	struct model_failure_key key = {
		.stack_id = given->stack_id,
		.api_id = given->api_id,
		.caller_api = given->caller_api,
		.result = given->result,
		.device = block ? block->device->ordinal : MODEL_DEVICE_UNKNOWN,
		.refusal = MODEL_REFUSED_FREE,
		.kind = (uint16_t)(block ? block->kind : kind_from(given->kind)),
	};

	model_note_failure(model, &key, block ? block->bytes : 0, given->time_ns);
}

void model_note_unknown_free(struct model *model, uint64_t time_ns)
{
	/* Another thread was given the address, and said so before the checkpoint: it has counted
	 * this free as missed. */
	if (!model_is_past(model, time_ns))
		model->n_unknown_frees++;
	else if (model->n_missed_frees)
		model->n_missed_frees--;
}

void ledger_apply_free(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_free *given = &record->free;
	struct model_block *block;

	/* Freeing nothing is allowed, and does nothing. */
	if (!given->address && !given->result)
		return;
	block = given->kind == VT_KIND_ARRAY ? ledger_array(model, given->address)
					     : ledger_block_from(model, given->address);
	if (given->result) {
		note_refused(model, given, block);
	} else if (block) {
		/* cuMemFree, which also takes memory of pools, waits for what uses it. */
		if (block->pool && given->kind == VT_KIND_POOL)
			pool_note_pending(block->pool, given->stream, block->bytes);
		host_use_end(model, block, given);
		again_note_free(model, block, given);
		ledger_end_block(model, block, false);
	} else {
		model_note_unknown_free(model, given->time_ns);
	}
}

static void release_tree(struct tree *tree)
{
	while (tree->root) {
		struct tree_node *node = tree->root;

		tree_remove(tree, node);
		free(container(node, struct model_block, node)->use);
		free(container(node, struct model_block, node));
	}
}

void ledger_release(struct model *model)
{
	release_tree(&model->live);
	release_tree(&model->arrays);
	pages_release(model);
}
