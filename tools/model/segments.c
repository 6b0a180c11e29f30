/* Segments: which memory of the driver an allocator has, and how much of it is in use. */
#include <stdlib.h>

#include "model/blocks_internal.h"
#include "model/events.h"
#include "model/memory.h"

/* Of which near_segments are found; large segments have many, small ones share none. */
#define PAGE_BYTES (2u << 20)

struct model_segment *segment_from(struct tree_node *node)
{
	return node ? container(node, struct model_segment, node) : NULL;
}

static size_t holding_of(
	struct model_allocator *allocator, struct model_device *device, uint32_t kind)
{
	size_t i = 0;

	while (i < allocator->n_holdings &&
		(allocator->holdings[i].device != device || allocator->holdings[i].kind != kind))
		i++;
	if (i < allocator->n_holdings)
		return i;
	allocator->holdings = memory_grow(allocator->holdings, allocator->n_holdings,
		&allocator->holdings_room, sizeof(*allocator->holdings));
	allocator->holdings[allocator->n_holdings++] =
		(struct model_holding){.device = device, .kind = kind};
	return i;
}

/* Memory at `address` of this device, kind and site is the allocator's from now on. */
static struct model_segment *segment_add(struct model *model, struct model_allocator *allocator,
	uint64_t address, uint64_t bytes, const struct model_block *block, uint64_t time_ns)
{
	struct model_segment *segment = memory_new(1, sizeof(*segment));
	struct model_holding *holding;

	segment->bytes = bytes;
	segment->allocator = allocator;
	segment->site = block->site;
	segment->time_ns = time_ns;
	segment->holding = holding_of(allocator, block->device, block->kind);
	tree_insert(&allocator->segments, &segment->node, address);
	holding = &allocator->holdings[segment->holding];
	holding->segment_bytes += bytes;
	holding->n_segments++;
	allocator->reserved_bytes += bytes;
	if (segment->site) {
		segment->site->segment_bytes += bytes;
		segment->site->n_segments++;
		segment->site->as_segment_bytes += bytes;
		segment->site->n_as_segments++;
		site_moved(model, segment->site);
	}
	return segment;
}

static void tell(
	const struct model *model, enum model_event_kind kind, const struct model_segment *segment)
{
	model_tell(model,
		&(struct model_event){kind, .segment = segment, .allocator = segment->allocator});
}

/* What of a segment is free while the rest of it is not. */
static uint64_t split_of(const struct model_segment *segment)
{
	return segment->used_bytes ? segment->bytes - segment->used_bytes : 0;
}

void segment_use(struct model_segment *segment, uint64_t bytes, bool add)
{
	struct model_allocator *allocator = segment->allocator;

	if (segment->mapped)
		return;
	allocator->split_bytes -= split_of(segment);
	segment->used_bytes += add ? bytes : -bytes;
	allocator->split_bytes += split_of(segment);
}

static struct model_segment **near_segment(struct model_allocator *allocator, uint64_t page)
{
	return &HASH_NEAR(allocator->near_segments, hash_of(&page, sizeof(page)));
}

/* It was found by pages that it holds; of an endless one not all can be gone through. */
static void forget_near(struct model_allocator *allocator, const struct model_segment *segment)
{
	uint64_t first = segment->node.key / PAGE_BYTES, n = segment->bytes / PAGE_BYTES + 2;

	for (uint64_t i = 0; i < n && n <= HASH_N_NEAR; i++)
		if (*near_segment(allocator, first + i) == segment)
			*near_segment(allocator, first + i) = NULL;
	if (n > HASH_N_NEAR)
		memset(allocator->near_segments, 0, sizeof(allocator->near_segments));
}

void segment_end(struct model *model, struct model_segment *segment)
{
	struct model_allocator *allocator = segment->allocator;
	struct model_holding *holding = &allocator->holdings[segment->holding];

	/* Of what has no known size at least the first byte was there. */
	pieces_end_in(model, allocator, segment->node.key, segment->bytes ? segment->bytes : 1);
	tell(model, MODEL_SEGMENT_END, segment);
	allocator->split_bytes -= segment->mapped ? 0 : split_of(segment);
	holding->segment_bytes -= segment->bytes;
	holding->n_segments--;
	allocator->reserved_bytes -= segment->bytes;
	if (segment->site) {
		segment->site->segment_bytes -= segment->bytes;
		segment->site->n_segments--;
		site_moved(model, segment->site);
	}
	tree_remove(&allocator->segments, &segment->node);
	forget_near(allocator, segment);
	free(segment);
}

static struct model_segment *own(
	struct model_segment *segment, const struct model_allocator *allocator)
{
	return segment && segment->allocator == allocator ? segment : NULL;
}

/* The mappings that a piece spans, each of which becomes a segment if it is none yet. */
static struct model_segment *take_mappings(struct model *model, struct model_allocator *allocator,
	uint64_t address, uint64_t bytes, uint64_t time_ns)
{
	struct model_mapping *mapping = vmm_mapping_of(model, address);
	struct model_segment *first = NULL;

	while (mapping && (!first || mapping->node.key - address < bytes)) {
		if (!mapping->segment && mapping->physical &&
			!tree_find(&allocator->segments, mapping->node.key)) {
			mapping->segment = segment_add(model, allocator, mapping->node.key,
				mapping->bytes, &mapping->physical->block, time_ns);
			mapping->segment->mapped = true;
			mapping->segment->number = mapping->number;
			tell(model, MODEL_SEGMENT_BEGIN, mapping->segment);
		}
		if (!first)
			first = own(mapping->segment, allocator);
		if (!first)
			return NULL;
		mapping = vmm_mapping_next(model, mapping);
	}
	return first;
}

/* The same for a piece whose page was not seen before. */
static struct model_segment *find_segment(struct model *model, struct model_allocator *allocator,
	uint64_t address, uint64_t bytes, uint64_t time_ns)
{
	struct model_block *block = ledger_block_at(model, address);

	if (!block)
		return take_mappings(model, allocator, address, bytes, time_ns);
	if (!block->segment && !tree_find(&allocator->segments, block->node.key)) {
		block->segment = segment_add(
			model, allocator, block->node.key, block->bytes, block, time_ns);
		block->segment->number = block->number;
		tell(model, MODEL_SEGMENT_BEGIN, block->segment);
	}
	return own(block->segment, allocator);
}

struct model_segment *segment_of(struct model *model, struct model_allocator *allocator,
	uint64_t address, uint64_t bytes, uint64_t time_ns)
{
	struct model_segment **near = near_segment(allocator, address / PAGE_BYTES);
	struct model_segment *segment = *near;

	/* A piece that reaches beyond may be the first one in the mapping behind. */
	if (!segment || address < segment->node.key ||
		address - segment->node.key >= segment->bytes ||
		bytes > segment->bytes - (address - segment->node.key)) {
		segment = find_segment(model, allocator, address, bytes, time_ns);
		*near = segment;
	}
	return segment;
}

const struct model_segment *model_segment_first(const struct model_allocator *allocator)
{
	return segment_from(tree_ceiling(&allocator->segments, 0));
}

const struct model_segment *model_segment_next(
	const struct model_allocator *allocator, const struct model_segment *segment)
{
	return segment_from(tree_next(&allocator->segments, &segment->node));
}
