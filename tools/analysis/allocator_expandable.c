#include <stdlib.h>

#include "analysis/allocator_internal.h"

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
	return (bytes + step - 1) / step * step;
}

static bool is_open(const struct allocator_block *block)
{
	return block && !block->used && !block->pending;
}

/* Free and unmapped neighbours from this block on hold `bytes`. */
static bool has_room(const struct allocator_block *block, uint64_t bytes)
{
	uint64_t room = 0;

	for (; room < bytes && is_open(block); block = block->next)
		room += block->bytes;
	return room >= bytes;
}

/* Rule 16: the lowest place of the stream, or a new range of addresses, which may be too short. */
static struct allocator_block *find_place(
	struct allocator *allocator, struct stream_set *set, uint64_t bytes)
{
	uint64_t device_bytes = allocator->options.device_bytes;
	uint64_t page_bytes = set->pool->is_small ? SMALL_SEGMENT_BYTES
						  : allocator->options.settings.large_segment_bytes;
	struct allocator_block *block, *unmapped;
	struct segment *segment;
	uint64_t range_bytes;

	for (unmapped = set_unmapped_from(set, 0); unmapped;
		unmapped = set_unmapped_from(set, unmapped->address + 1)) {
		block = is_open(unmapped->previous) ? unmapped->previous : unmapped;
		if (has_room(block, bytes))
			return block;
	}
	range_bytes = round_up(device_bytes + device_bytes / 8, page_bytes);
	if (allocator->options.range_bytes)
		range_bytes = allocator->options.range_bytes / page_bytes * page_bytes;
	segment = segment_new(allocator, set, range_bytes, page_bytes);
	if (!segment)
		return NULL;
	set_insert_unmapped(segment->first);
	return segment->first;
}

/* Maps at least the first `bytes` of an unmapped range, in whole pages, all or nothing. */
static bool map(struct allocator *allocator, struct allocator_block *block, uint64_t bytes)
{
	uint64_t mapped = round_up(bytes, block->segment->page_bytes);

	if (mapped > block->bytes)
		mapped = block->bytes;
	if (!driver_ask(allocator, ALLOCATOR_MAP, mapped))
		return false;
	set_remove_unmapped(block);
	if (mapped < block->bytes)
		set_insert_unmapped(block_split(allocator, block, mapped));
	block->mapped = true;
	block->segment->mapped_bytes += mapped;
	count_reserved(allocator, mapped);
	block_merge(allocator, block);
	set_insert(block);
	return true;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct allocator_block *expandable_get(
	struct allocator *allocator, struct stream_set *set, uint64_t bytes)
{
	struct allocator_block *block = find_place(allocator, set, bytes);

	if (!block || (!block->mapped && !map(allocator, block, least(block->bytes, bytes))))
		return NULL;
	while (block->bytes < bytes) {
		struct allocator_block *next = block->next;

		/* The range is too short: more than the device has. */
		if (!next)
			return NULL;
		if (!map(allocator, next, least(next->bytes, bytes - block->bytes)))
			return NULL;
		block = next;
	}
	set_remove(block);
	return block;
}

/* Unmaps the whole pages inside a free block; a segment with nothing mapped goes. */
void expandable_unmap(struct allocator *allocator, struct allocator_block *block)
{
	struct segment *segment = block->segment;
	uint64_t page_bytes = segment->page_bytes, base = segment->node.key;
	uint64_t first = base + round_up(block->address - base, page_bytes);
	uint64_t end = base + (block->address + block->bytes - base) / page_bytes * page_bytes;
	uint64_t bytes;

	if (end <= first)
		return;
	bytes = end - first;
	set_remove(block);
	if (first > block->address) {
		struct allocator_block *middle =
			block_split(allocator, block, first - block->address);

		set_insert(block);
		block = middle;
	}
	if (bytes < block->bytes)
		set_insert(block_split(allocator, block, bytes));
	block->mapped = false;
	block_merge(allocator, block);
	set_insert_unmapped(block);
	segment->mapped_bytes -= bytes;
	allocator->stats.reserved_bytes -= bytes;
	allocator->stats.n_device_frees++;
	if (segment->mapped_bytes)
		return;
	set_remove_unmapped(block);
	segment_free(allocator, segment);
}
