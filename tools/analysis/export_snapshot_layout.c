/* Which memory is an allocator's, known from a pass before; and the layout at the end. */
#include <stdlib.h>

#include "analysis/export_snapshot_parts.h"
#include "analysis/order.h"
#include "model/blocks.h"
#include "model/events.h"
#include "model/memory.h"

struct snapshot_fates {
	struct fate *items; /* by number */
	size_t n_items, room;
};

static void add_fate(struct snapshot_fates *fates, const struct model_segment *segment)
{
	fates->items =
		memory_grow(fates->items, fates->n_items, &fates->room, sizeof(*fates->items));
	fates->items[fates->n_items++] = (struct fate){
		segment->number, segment->stream_known ? segment->stream : 0, segment->captured};
}

static void listen(void *user, const struct model *model, const struct vt_record *record,
	const struct model_event *change)
{
	(void)model;
	(void)record;
	if (change->kind == MODEL_SEGMENT_END)
		add_fate(user, change->segment);
}

static int compare(const void *a, const void *b)
{
	const struct fate *x = a, *y = b;

	return order_of(x->number, y->number);
}

struct snapshot_fates *snapshot_fates_new(struct replay *replay, int *error)
{
	struct snapshot_fates *fates = memory_new(1, sizeof(*fates));

	*error = replay_follow(replay, &(struct replay_hooks){.listener = listen, .user = fates});
	for (const struct model_allocator *allocator = replay->model->allocators; allocator;
		allocator = allocator->hh.next)
		for (const struct model_segment *segment = model_segment_first(allocator); segment;
			segment = model_segment_next(allocator, segment))
			add_fate(fates, segment);
	if (fates->n_items)
		qsort(fates->items, fates->n_items, sizeof(*fates->items), compare);
	return fates;
}

void snapshot_fates_free(struct snapshot_fates *fates)
{
	free(fates->items);
	free(fates);
}

const struct fate *fate_find(const struct snapshot_fates *fates, uint64_t number)
{
	const struct fate key = {.number = number};

	return fates->n_items ? bsearch(&key, fates->items, fates->n_items, sizeof(key), compare)
			      : NULL;
}

/* Pages of one segment that grows are one segment, as PyTorch's own snapshot has it. */
static void add_segment(
	struct snapshot_layout *layout, const struct range *range, const struct range *last)
{
	struct snapshot_segment *segment =
		layout->n_segments ? &layout->segments[layout->n_segments - 1] : NULL;

	if (segment && last && last->mapped && range->mapped &&
		last->node.key + last->bytes == range->node.key &&
		last->reservation == range->reservation) {
		segment->bytes += range->bytes;
		return;
	}
	layout->segments = memory_grow(layout->segments, layout->n_segments, &layout->segments_room,
		sizeof(*layout->segments));
	layout->segments[layout->n_segments++] = (struct snapshot_segment){
		.address = range->node.key,
		.bytes = range->bytes,
		.stream = range->stream,
		.expandable = range->mapped,
		.captured = range->captured,
		.stack_id = range->stack_id,
	};
}

static void add_block(struct snapshot_layout *layout, const struct snapshot_block *block)
{
	if (!block->bytes)
		return;
	layout->blocks = memory_grow(
		layout->blocks, layout->n_blocks, &layout->blocks_room, sizeof(*layout->blocks));
	layout->blocks[layout->n_blocks++] = *block;
}

static void add_idle(struct snapshot_layout *layout, uint64_t from, uint64_t to)
{
	add_block(layout, &(struct snapshot_block){
				  .address = from, .bytes = to - from, .state = SNAPSHOT_INACTIVE});
}

static void fill(
	struct snapshot_layout *layout, struct snapshot_segment *segment, const struct tree *pieces)
{
	const struct tree_node *node = tree_ceiling(pieces, segment->address);
	uint64_t at = segment->address, end = segment->address + segment->bytes;

	segment->first_block = layout->n_blocks;
	for (; node && node->key < end; node = tree_next(pieces, node)) {
		const struct piece *piece = (const struct piece *)(const void *)node;

		if (piece->bytes > end - node->key)
			continue;
		add_idle(layout, at, node->key);
		add_block(layout,
			&(struct snapshot_block){
				.address = node->key,
				.bytes = piece->bytes,
				.state = piece->pending ? SNAPSHOT_PENDING : SNAPSHOT_ACTIVE,
				.stack_id = piece->stack_id,
			});
		at = node->key + piece->bytes;
	}
	add_idle(layout, at, end);
	segment->n_blocks = layout->n_blocks - segment->first_block;
}

void snapshot_lay_out(
	struct snapshot_layout *layout, const struct tree *ranges, const struct tree *pieces)
{
	const struct tree_node *node = tree_ceiling(ranges, 0);
	const struct range *last = NULL;

	for (; node; node = tree_next(ranges, node)) {
		const struct range *range = (const struct range *)(const void *)node;

		add_segment(layout, range, last);
		last = range;
	}
	for (size_t i = 0; i < layout->n_segments; i++)
		fill(layout, &layout->segments[i], pieces);
}

void snapshot_layout_release(struct snapshot_layout *layout)
{
	free(layout->segments);
	free(layout->blocks);
	*layout = (struct snapshot_layout){0};
}
