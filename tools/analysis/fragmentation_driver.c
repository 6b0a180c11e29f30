/* Fragmentation below every allocator: pages that small allocations of linear memory share, and
 * pools of stream-ordered memory. */
#include <stdlib.h>

#include "analysis/fragmentation_parts.h"
#include "analysis/order.h"
#include "model/memory.h"

static uint64_t rounded_up(uint64_t bytes, uint64_t unit)
{
	return (bytes / unit + !!(bytes % unit)) * unit;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static const struct model_block *first_block(const struct model *model)
{
	return (const struct model_block *)(const void *)tree_ceiling(&model->live, 0);
}

static const struct model_block *next_block(
	const struct model *model, const struct model_block *block)
{
	return (const struct model_block *)(const void *)tree_next(&model->live, &block->node);
}

_Static_assert(offsetof(struct model_block, node) == 0, "a block is where its node is");

/* The pages that are shared, one after the other, as blocks come in the order of addresses. */
struct page_walk {
	struct fragmentation_row *row;
	struct pin_book book;
	uint64_t index; /* of the page */
	uint64_t live_bytes;
	uint64_t used_bytes; /* the same, rounded up */
	bool open;
};

static void close_page(struct page_walk *walk)
{
	uint64_t idle_bytes;

	if (!walk->open)
		return;
	idle_bytes = less(walk->row->page_bytes, walk->used_bytes);
	pin_book_end(&walk->book, idle_bytes);
	walk->row->n_containers++;
	if (idle_bytes) {
		walk->row->n_pinned++;
		walk->row->pinning_bytes += walk->live_bytes;
	}
	walk->open = false;
}

static void add_small(struct page_walk *walk, const struct model_block *block)
{
	uint64_t index = block->node.key / walk->row->page_bytes;
	uint64_t used_bytes = rounded_up(block->bytes, MODEL_UNIT_BYTES);

	if (!walk->open || walk->index != index) {
		close_page(walk);
		pin_book_begin(&walk->book);
		walk->index = index;
		walk->live_bytes = walk->used_bytes = 0;
		walk->open = true;
	}
	walk->live_bytes += block->bytes;
	walk->used_bytes += used_bytes;
	walk->row->rounding_bytes += used_bytes - block->bytes;
	pin_book_add(&walk->book, &(struct fragmentation_holder){block->site->key.stack_id,
					  block->node.key, block->bytes, block->time_ns});
}

static void judge_driver(struct fragmentation_row *row, const struct model_device *device)
{
	if (fragmentation_matters(row, device, row->pinned_bytes) &&
		row->pinned_bytes >= row->rounding_bytes) {
		row->verdict = FRAGMENTATION_PINNED;
		row->advice = ADVICE_SHARE;
		row->advice_bytes = row->pinned_bytes;
	} else if (fragmentation_matters(row, device, row->rounding_bytes)) {
		row->verdict = FRAGMENTATION_ROUNDING;
		row->advice = ADVICE_WHOLE_PAGES;
		row->advice_bytes = row->rounding_bytes;
	}
}

void fragmentation_add_driver(struct fragmentation *list, const struct fragmentation_row *blank,
	const struct model *model, const struct model_device *device)
{
	struct fragmentation_row *row;
	struct page_walk walk = {0};

	if (!device->held.linear_bytes)
		return;
	row = fragmentation_new_row(list, blank);
	row->level = FRAGMENTATION_DRIVER;
	row->rounding_known = true;
	row->reserved_bytes = device->held.linear_bytes;
	row->live_bytes = device->kinds[VT_KIND_LINEAR].live_bytes;
	row->n_live = device->kinds[VT_KIND_LINEAR].n_live;
	walk.row = row;
	for (const struct model_block *block = first_block(model); block;
		block = next_block(model, block)) {
		if (block->kind != VT_KIND_LINEAR || block->device != device)
			continue;
		if (block->bytes > MODEL_SMALL_BYTES)
			row->rounding_bytes +=
				rounded_up(block->bytes, row->page_bytes) - block->bytes;
		else
			add_small(&walk, block);
	}
	close_page(&walk);
	pin_book_finish(&walk.book, row);
	/* A page without a block goes back at once: what is idle is pinned. */
	row->idle_bytes = less(row->reserved_bytes, row->live_bytes + row->rounding_bytes);
	row->pinned_bytes = row->idle_bytes;
	judge_driver(row, device);
}

/* What live blocks of the pool may take beyond their bytes: the driver does not tell, and it must
 * not be taken for something that waits. */
static uint64_t rounding_of_pool(const struct model *model, const struct model_pool *pool)
{
	uint64_t bytes = 0;

	for (const struct model_block *block = first_block(model); block;
		block = next_block(model, block))
		if (block->pool == pool)
			bytes += rounded_up(block->bytes, block->bytes > MODEL_SMALL_BYTES
								  ? pool->device->page_bytes
								  : MODEL_UNIT_BYTES) -
				 block->bytes;
	return bytes;
}

static int compare_pending(const void *a, const void *b)
{
	const struct model_pending *x = a, *y = b;
	int order = order_of(y->bytes, x->bytes);

	return order ? order : order_of(x->stream, y->stream);
}

static void take_pending(
	struct fragmentation_row *row, const struct model *model, const struct model_pool *pool)
{
	uint64_t most_bytes = less(row->reserved_bytes, row->live_bytes);

	row->pending_bytes = pool->pending_bytes;
	if (!row->pending_bytes)
		return;
	row->pending_bytes = less(row->pending_bytes, rounding_of_pool(model, pool));
	if (row->pending_bytes > most_bytes)
		row->pending_bytes = most_bytes;
	if (!row->pending_bytes)
		return;
	row->pending = memory_new(pool->n_pending, sizeof(*row->pending));
	for (size_t i = 0; i < pool->n_pending; i++)
		row->pending[row->n_pending++] = pool->pending[i];
	qsort(row->pending, row->n_pending, sizeof(*row->pending), compare_pending);
}

static void judge_pool(struct fragmentation_row *row, const struct model_device *device)
{
	if (fragmentation_matters(row, device, row->pending_bytes) &&
		row->pending_bytes >= row->idle_bytes) {
		row->verdict = FRAGMENTATION_PENDING;
		row->advice = ADVICE_SYNCHRONISE;
		row->advice_bytes = row->pending_bytes;
	} else if ((row->graphs || row->threshold_bytes) &&
		   fragmentation_matters(row, device, row->idle_bytes)) {
		/* Without a threshold the driver takes it back at the next synchronisation. */
		row->verdict = FRAGMENTATION_CACHED;
		row->advice = row->graphs ? ADVICE_TRIM_GRAPHS : ADVICE_THRESHOLD;
		row->advice_bytes = row->idle_bytes;
	}
}

static void add_pool(struct fragmentation *list, const struct fragmentation_row *blank,
	const struct model *model, const struct model_pool *pool)
{
	struct fragmentation_row *row = fragmentation_new_row(list, blank);

	row->level = FRAGMENTATION_POOL;
	row->pool = pool->key.handle;
	row->reserved_bytes = pool->held_bytes;
	row->live_bytes = pool->live_bytes;
	row->n_live = pool->n_live;
	row->threshold_known = pool->threshold_known;
	row->threshold_bytes = pool->threshold_bytes;
	row->most_bytes = pool->most_bytes;
	take_pending(row, model, pool);
	row->idle_bytes = less(row->reserved_bytes, row->live_bytes + row->pending_bytes);
	row->returnable_bytes = row->idle_bytes;
	judge_pool(row, pool->device);
}

static void add_graphs(struct fragmentation *list, const struct fragmentation_row *blank,
	const struct model_device *device)
{
	struct fragmentation_row *row = fragmentation_new_row(list, blank);

	row->level = FRAGMENTATION_POOL;
	row->graphs = true;
	row->reserved_bytes = device->held.graph_bytes;
	row->live_bytes = device->kinds[VT_KIND_GRAPH].live_bytes;
	row->n_live = device->kinds[VT_KIND_GRAPH].n_live;
	row->idle_bytes = less(row->reserved_bytes, row->live_bytes);
	row->returnable_bytes = row->idle_bytes;
	judge_pool(row, device);
}

void fragmentation_add_pools(struct fragmentation *list, const struct fragmentation_row *blank,
	const struct model *model, const struct model_device *device)
{
	/* What a pool reserves is known only where the driver was asked. */
	for (const struct model_pool *pool = model->pools; pool; pool = pool->hh.next)
		if (pool->device == device && pool->sampled && pool->held_bytes)
			add_pool(list, blank, model, pool);
	if (device->graph_sampled && device->held.graph_bytes)
		add_graphs(list, blank, device);
}
