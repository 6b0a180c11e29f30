/*
 * Live blocks by address, and the books: bytes by device and kind, by site, and the pages the
 * driver takes for them.
 */
#include <stdlib.h>

#include "model/internal.h"
#include "model/memory.h"

struct page_key {
	uint64_t index;
	uint64_t device;
};

struct model_page {
	struct page_key key;
	uint64_t n_blocks;
	UT_hash_handle hh;
};

static struct page_key page_key_of(const struct model_device *device, uint64_t index)
{
	return (struct page_key){index, (uint64_t)(device->ordinal + 2)};
}

/* One more, or one less, small block on this page. Returns the bytes that the device holds more, or
 * less, for it. */
static uint64_t page_add(struct model *model, const struct model_device *device, uint64_t index)
{
	struct page_key key = page_key_of(device, index);
	struct model_page *page;

	HASH_FIND(hh, model->pages, &key, sizeof(key), page);
	if (page) {
		page->n_blocks++;
		return 0;
	}
	page = memory_new(1, sizeof(*page));
	page->key = key;
	page->n_blocks = 1;
	HASH_ADD(hh, model->pages, key, sizeof(page->key), page);
	return device->page_bytes;
}

static uint64_t page_remove(struct model *model, const struct model_device *device, uint64_t index)
{
	struct page_key key = page_key_of(device, index);
	struct model_page *page;

	HASH_FIND(hh, model->pages, &key, sizeof(key), page);
	if (!page || --page->n_blocks)
		return 0;
	HASH_DEL(model->pages, page);
	free(page);
	return device->page_bytes;
}

/* Bytes the driver takes for a linear block that it did not take before, or gives back with it. */
static uint64_t held_change(struct model *model, const struct model_block *block, bool add)
{
	const struct model_device *device = block->device;
	uint64_t first = block->node.key / device->page_bytes, change = 0, n_pages;

	if (block->bytes > MODEL_SMALL_BYTES) {
		n_pages = block->bytes / device->page_bytes + !!(block->bytes % device->page_bytes);
		return n_pages * device->page_bytes;
	}
	/* The driver keeps a small block inside one page; a trace may still say otherwise. */
	n_pages = (block->node.key % device->page_bytes + (block->bytes ? block->bytes - 1 : 0)) /
			  device->page_bytes +
		  1;
	for (uint64_t i = 0; i < n_pages; i++)
		change += add ? page_add(model, device, first + i)
			      : page_remove(model, device, first + i);
	return change;
}

void ledger_release(struct model *model)
{
	struct model_page *page, *next;

	HASH_ITER(hh, model->pages, page, next)
	{
		HASH_DEL(model->pages, page);
		free(page);
	}
}

static void book(struct model *model, struct model_block *block, bool add)
{
	struct model_device *device = block->device;
	uint64_t change = block->bytes;

	if (block->kind == VT_KIND_LINEAR) {
		change = held_change(model, block, add);
		device->held_bytes += add ? change : -change;
	}
	if (model_kind_tracked(block->kind))
		device->tracked_bytes += add ? change : -change;
}

static void site_add(struct model_site *site, uint64_t bytes, uint64_t time_ns, uint32_t tid)
{
	size_t low = 0, high = site->n_tids;

	if (!site->n_allocs)
		site->first_ns = time_ns;
	site->last_ns = time_ns;
	site->live_bytes += bytes;
	site->n_live++;
	site->alloc_bytes += bytes;
	site->n_allocs++;
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

static void totals_add(struct model_totals *totals, uint64_t bytes)
{
	totals->live_bytes += bytes;
	totals->n_live++;
	totals->n_allocs++;
	totals->alloc_bytes += bytes;
	if (totals->live_bytes > totals->peak_live_bytes)
		totals->peak_live_bytes = totals->live_bytes;
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

void ledger_add(struct model *model, struct model_block *block, uint64_t stack_id, uint64_t time_ns,
	uint32_t tid)
{
	struct model_device *device = block->device;

	block->site = model_site_of(model, stack_id, device, block->kind);
	site_add(block->site, block->bytes, time_ns, tid);
	totals_add(&device->kinds[block->kind], block->bytes);
	if (block->site->group)
		totals_add(block->site->group, block->bytes);
	book(model, block, true);
	if (device->tracked_bytes > device->peak_tracked_bytes) {
		device->peak_tracked_bytes = device->tracked_bytes;
		device->peak_time_ns = time_ns;
		device->peak_sample.seen = false;
	}
}

void ledger_remove(struct model *model, struct model_block *block, bool teardown)
{
	totals_remove(&block->device->kinds[block->kind], block->bytes, teardown);
	if (block->site->group)
		totals_remove(block->site->group, block->bytes, teardown);
	block->site->live_bytes -= block->bytes;
	block->site->n_live--;
	if (teardown) {
		block->site->n_teardown++;
		block->site->teardown_bytes += block->bytes;
	}
	book(model, block, false);
}

static struct model_block *block_from(struct tree_node *node)
{
	return node ? container(node, struct model_block, node) : NULL;
}

struct model_block *ledger_block_at(const struct model *model, uint64_t address)
{
	struct model_block *block = block_from(tree_floor(&model->live, address));

	return block && address - block->node.key < block->bytes ? block : NULL;
}

void ledger_apply_alloc(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_alloc *alloc = &record->alloc;
	uint32_t kind = alloc->kind < VT_N_KINDS ? (uint32_t)alloc->kind : VT_KIND_NONE;
	struct model_block *block;

	context_touch(model, alloc->context_id);
	block = block_from(tree_find(&model->live, alloc->address));
	if (block) {
		/* The address is used again: if a context that was let go held it, that context has
		 * ended. */
		context_touch(model, block->context_id);
		block = block_from(tree_find(&model->live, alloc->address));
	}
	if (block) {
		model->n_missed_frees++;
		ledger_remove(model, block, false);
		tree_remove(&model->live, &block->node);
	} else {
		block = memory_new(1, sizeof(*block));
	}
	block->bytes = alloc->bytes;
	block->kind = kind;
	block->context_id = alloc->context_id;
	block->device = kind == VT_KIND_PINNED || kind == VT_KIND_REGISTERED
				? &model->host
				: model_device_of(model, alloc->device);
	tree_insert(&model->live, &block->node, alloc->address);
	ledger_add(model, block, alloc->stack_id, alloc->time_ns, record->tid);
}

void ledger_apply_free(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_free *given = &record->free;
	struct model_block *block;

	/* Freeing nothing is allowed, and does nothing. */
	if (!given->address)
		return;
	block = block_from(tree_find(&model->live, given->address));
	if (given->result) {
		model_note_failure(model, MODEL_REFUSED_FREE, given->api_id,
			block ? block->kind
			      : (uint32_t)(given->kind < VT_N_KINDS ? given->kind : 0),
			block ? block->device->ordinal : MODEL_DEVICE_UNKNOWN, given->stack_id,
			given->result, block ? block->bytes : 0, given->time_ns);
	} else if (block) {
		ledger_remove(model, block, false);
		tree_remove(&model->live, &block->node);
		free(block);
	} else {
		model->n_unknown_frees++;
	}
}
