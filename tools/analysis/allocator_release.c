#include <stdlib.h>

#include "analysis/allocator_internal.h"
#include "model/memory.h"

/* Gives a segment that is one free block back to the driver. */
static void release_segment(struct allocator *allocator, struct allocator_block *block)
{
	struct segment *segment = block->segment;

	set_remove(block);
	allocator->stats.reserved_bytes -= block->bytes;
	allocator->stats.n_device_frees++;
	segment_free(allocator, segment);
}

static bool is_collectable(const struct allocator_block *block)
{
	return !block_is_split(block) && !block->segment->page_bytes;
}

static uint64_t age_of(const struct allocator_block *block)
{
	return block->segment->set->pool->clock - block->since;
}

/* Rule 13: frees blocks as old as the average or older, until enough is back or none is left. */
void release_old(struct allocator *allocator)
{
	double limit =
		allocator->options.settings.collection_threshold * (double)allocator->cap_bytes;
	struct pool *pool = &allocator->large;
	double total_age = 0, threshold;
	uint64_t target, freed = 0;
	size_t n_blocks = 0;
	bool any = true;

	if ((double)allocator->stats.reserved_bytes <= (double)(uint64_t)limit)
		return;
	target = allocator->stats.reserved_bytes - (uint64_t)limit;
	for (struct stream_set *set = pool->sets; set; set = set->next)
		for (struct allocator_block *block = set_at_least(set, 0); block;
			block = set_next(set, block))
			if (is_collectable(block)) {
				total_age += (double)age_of(block);
				n_blocks++;
			}
	while (freed < target && any && n_blocks) {
		threshold = total_age / (double)n_blocks;
		any = false;
		for (struct stream_set *set = pool->sets; set; set = set->next) {
			struct allocator_block *block, *next;

			for (block = set_at_least(set, 0); block; block = next) {
				next = set_next(set, block);
				if (!is_collectable(block) || (double)age_of(block) < threshold)
					continue;
				any = true;
				freed += block->bytes;
				total_age -= (double)age_of(block);
				n_blocks--;
				release_segment(allocator, block);
			}
		}
	}
}

/* Rule 14. */
bool release_oversize(struct allocator *allocator, struct stream_set *set, uint64_t bytes)
{
	uint64_t limit = allocator->options.settings.max_split_bytes;
	uint64_t wanted = bytes > limit ? bytes : limit;
	struct allocator_block *block, *smaller;
	uint64_t freed = 0;

	if (limit == UINT64_MAX)
		return false;
	block = set_at_least(set, wanted);
	if (block && !block->segment->page_bytes) {
		release_segment(allocator, block);
		return true;
	}
	for (block = block ? set_previous(set, block) : set_largest(set);
		block && freed < wanted && block->bytes >= limit; block = smaller) {
		smaller = set_previous(set, block);
		if (!is_collectable(block))
			continue;
		freed += block->bytes;
		release_segment(allocator, block);
	}
	return freed >= wanted;
}

static void release_pool(struct allocator *allocator, struct pool *pool)
{
	for (struct stream_set *set = pool->sets; set; set = set->next) {
		struct allocator_block *block, *next;

		for (block = set_at_least(set, 0); block; block = next) {
			next = set_next(set, block);
			if (is_collectable(block))
				release_segment(allocator, block);
		}
	}
}

/* The free blocks of expandable segments are listed first: unmapping changes the set. */
static void unmap_pool(struct allocator *allocator, struct pool *pool)
{
	struct allocator_block **blocks = NULL;
	size_t n_blocks = 0, room = 0;

	for (struct stream_set *set = pool->sets; set; set = set->next)
		for (struct allocator_block *block = set_at_least(set, 0); block;
			block = set_next(set, block))
			if (block->segment->page_bytes) {
				blocks = memory_grow(blocks, n_blocks, &room, sizeof(*blocks));
				blocks[n_blocks++] = block;
			}
	for (size_t i = 0; i < n_blocks; i++)
		expandable_unmap(allocator, blocks[i]);
	free(blocks);
}

static void release_pools(struct allocator *allocator, struct pool *large, struct pool *small)
{
	release_pool(allocator, large);
	unmap_pool(allocator, large);
	release_pool(allocator, small);
	unmap_pool(allocator, small);
}

/* Rule 15. */
void release_all(struct allocator *allocator)
{
	struct private_pool *pool, *next_pool;
	struct pending *pending, *next;

	HASH_ITER(hh, allocator->pending, pending, next)
	{
		allocator_ready(allocator, pending->ticket);
	}
	release_pools(allocator, &allocator->large, &allocator->small);
	HASH_ITER(hh, allocator->pools, pool, next_pool)
	{
		if (pool->unused)
			release_pools(allocator, &pool->large, &pool->small);
	}
}
