#include "analysis/allocator.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/allocator_internal.h"
#include "model/memory.h"

/* More than any device has: sums of such stay below 2^64. */
#define MOST_BYTES (1ull << 62)

/* Room for expandable segments where the device's size is not known. */
#define UNKNOWN_DEVICE_BYTES (1ull << 40)

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
	return (bytes + step - 1) / step * step;
}

static unsigned int floor_log2(uint64_t n)
{
	return 63u - (unsigned int)__builtin_clzll(n);
}

/* Rule 1: the interval is that of the request's highest bit, from 1 MiB on. */
static uint32_t divisions_for(const struct settings *settings, uint64_t bytes)
{
	unsigned int log2 = floor_log2(bytes);
	unsigned int index = log2 < 20 ? 0 : log2 - 20;

	return settings->divisions[index < SETTINGS_N_DIVISIONS ? index : SETTINGS_N_DIVISIONS - 1];
}

uint64_t allocator_round(const struct settings *settings, uint64_t bytes)
{
	uint32_t divisions;
	uint64_t power;

	if (bytes < MIN_BLOCK_BYTES)
		return MIN_BLOCK_BYTES;
	divisions = divisions_for(settings, bytes);
	if (divisions < 2 || bytes <= (uint64_t)divisions * MIN_BLOCK_BYTES)
		return round_up(bytes, MIN_BLOCK_BYTES);
	power = 1ull << floor_log2(bytes);
	return round_up(bytes, power / divisions);
}

uint64_t allocator_rounding(const struct settings *settings, uint64_t bytes)
{
	uint64_t below = bytes - 1, unit;
	uint32_t divisions;

	if (bytes <= MIN_BLOCK_BYTES)
		return 0;
	divisions = divisions_for(settings, below);
	if (divisions < 2 || below <= (uint64_t)divisions * MIN_BLOCK_BYTES)
		return 0;
	unit = (1ull << floor_log2(below)) / divisions;
	return unit - MIN_BLOCK_BYTES;
}

uint64_t allocator_segment_bytes(const struct settings *settings, uint64_t bytes)
{
	if (bytes <= SMALL_BYTES)
		return SMALL_SEGMENT_BYTES;
	if (bytes < MIN_LARGE_BYTES)
		return settings->large_segment_bytes;
	return round_up(bytes, SEGMENT_STEP_BYTES);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct allocator *allocator_new(const struct allocator_options *options)
{
	struct allocator *allocator = memory_new(1, sizeof(*allocator));
	double fraction = options->settings.memory_fraction;

	allocator->options = *options;
	allocator->small.is_small = true;
	if (!options->device_bytes)
		allocator->options.device_bytes = UNKNOWN_DEVICE_BYTES;
	allocator->cap_bytes = options->cap_bytes ? options->cap_bytes : UINT64_MAX;
	if (fraction < 1 && options->device_bytes)
		allocator->cap_bytes = least(
			allocator->cap_bytes, (uint64_t)(fraction * (double)options->device_bytes));
	return allocator;
}

static void free_sets(struct pool *pool)
{
	struct stream_set *set, *next;

	for (set = pool->sets; set; set = next) {
		next = set->next;
		set_free(set);
	}
}

void allocator_free(struct allocator *allocator)
{
	struct private_pool *pool, *next_pool;
	struct pending *pending, *next_pending;

	while (allocator->segments.root) {
		struct segment *segment = (struct segment *)allocator->segments.root;

		tree_remove(&allocator->segments, &segment->node);
		free(segment);
	}
	HASH_ITER(hh, allocator->pools, pool, next_pool)
	{
		HASH_DEL(allocator->pools, pool);
		free_sets(&pool->small);
		free_sets(&pool->large);
		free(pool);
	}
	HASH_ITER(hh, allocator->pending, pending, next_pending)
	{
		HASH_DEL(allocator->pending, pending);
		free(pending);
	}
	free_sets(&allocator->small);
	free_sets(&allocator->large);
	while (allocator->arenas) {
		struct arena *arena = allocator->arenas;

		allocator->arenas = arena->next;
		free(arena);
	}
	while (allocator->slabs) {
		struct block_slab *slab = allocator->slabs;

		allocator->slabs = slab->next;
		free(slab);
	}
	free(allocator);
}

bool block_is_split(const struct allocator_block *block)
{
	return block->previous || block->next;
}

static void add_slab(struct allocator *allocator)
{
	struct block_slab *slab = memory_new(1, sizeof(*slab));

	slab->next = allocator->slabs;
	allocator->slabs = slab;
	for (size_t i = 0; i < SLAB_BLOCKS; i++)
		block_free(allocator, &slab->blocks[i]);
}

struct allocator_block *block_new(
	struct allocator *allocator, struct segment *segment, uint64_t address, uint64_t bytes)
{
	struct allocator_block *block;

	if (!allocator->spare)
		add_slab(allocator);
	block = allocator->spare;
	allocator->spare = block->next;
	block->segment = segment;
	block->address = address;
	block->bytes = bytes;
	block->previous = block->next = NULL;
	block->used = block->pending = false;
	block->mapped = true;
	return block;
}

void block_free(struct allocator *allocator, struct allocator_block *block)
{
	block->next = allocator->spare;
	allocator->spare = block;
}

struct allocator_block *block_split(
	struct allocator *allocator, struct allocator_block *block, uint64_t bytes)
{
	struct allocator_block *rest =
		block_new(allocator, block->segment, block->address + bytes, block->bytes - bytes);

	rest->mapped = block->mapped;
	rest->previous = block;
	rest->next = block->next;
	if (rest->next)
		rest->next->previous = rest;
	block->next = rest;
	block->bytes = bytes;
	return rest;
}

static bool is_mergeable(const struct allocator_block *block, const struct allocator_block *with)
{
	return with && !with->used && !with->pending && with->mapped == block->mapped;
}

/* Takes `with` into block; it stands before or behind it, in its set. */
static void merge(
	struct allocator *allocator, struct allocator_block *block, struct allocator_block *with)
{
	if (with->mapped)
		set_remove(with);
	else
		set_remove_unmapped(with);
	if (with == block->previous) {
		block->address = with->address;
		block->previous = with->previous;
		if (block->previous)
			block->previous->next = block;
		else
			block->segment->first = block;
	} else {
		block->next = with->next;
		if (block->next)
			block->next->previous = block;
	}
	block->bytes += with->bytes;
	block_free(allocator, with);
}

void block_merge(struct allocator *allocator, struct allocator_block *block)
{
	if (is_mergeable(block, block->previous))
		merge(allocator, block, block->previous);
	if (is_mergeable(block, block->next))
		merge(allocator, block, block->next);
}

void block_release(struct allocator *allocator, struct allocator_block *block)
{
	block->used = block->pending = false;
	allocator->stats.allocated_bytes -= block->bytes;
	block_merge(allocator, block);
	set_insert(block);
}

static bool is_vacant(const struct allocator *allocator, uint64_t address, uint64_t bytes)
{
	const struct segment *below =
		(const struct segment *)tree_floor(&allocator->segments, address);
	const struct segment *above =
		(const struct segment *)tree_ceiling(&allocator->segments, address);

	return bytes && address + bytes > address &&
	       (!below || address - below->node.key >= below->bytes) &&
	       (!above || above->node.key - address >= bytes);
}

struct segment *segment_new(
	struct allocator *allocator, struct stream_set *set, uint64_t bytes, uint64_t page_bytes)
{
	enum allocator_request request = page_bytes ? ALLOCATOR_RANGE : ALLOCATOR_SEGMENT;
	uint64_t address = driver_ask(allocator, request, bytes);
	struct segment *segment;

	if (!address || !is_vacant(allocator, address, bytes))
		return NULL;
	segment = memory_new(1, sizeof(*segment));
	segment->bytes = bytes;
	segment->page_bytes = page_bytes;
	segment->set = set;
	tree_insert(&allocator->segments, &segment->node, address);
	segment->first = block_new(allocator, segment, address, bytes);
	segment->first->mapped = !page_bytes;
	set->pool->n_segments++;
	return segment;
}

void segment_free(struct allocator *allocator, struct segment *segment)
{
	segment->set->pool->n_segments--;
	tree_remove(&allocator->segments, &segment->node);
	if (allocator->options.addresses == ALLOCATOR_ARENA)
		driver_give(allocator, segment->node.key);
	block_free(allocator, segment->first);
	free(segment);
}

void count_reserved(struct allocator *allocator, uint64_t bytes)
{
	struct allocator_stats *stats = &allocator->stats;

	stats->reserved_bytes += bytes;
	stats->n_device_allocs++;
	if (stats->reserved_bytes > stats->peak_reserved_bytes)
		stats->peak_reserved_bytes = stats->reserved_bytes;
}

/* Rule 12. The cap is checked with the size of an ordinary segment, also for expandable ones (rule
 * 18). */
static struct allocator_block *new_segment(
	struct allocator *allocator, struct stream_set *set, uint64_t bytes)
{
	uint64_t new_bytes = allocator_segment_bytes(&allocator->options.settings, bytes);
	struct segment *segment;

	if (allocator->cap_bytes != UINT64_MAX &&
		allocator->stats.reserved_bytes + new_bytes > allocator->cap_bytes)
		return NULL;
	if (allocator->options.settings.expandable &&
		(!set->pool->owner || !allocator->options.version ||
			allocator->options.version > 202))
		return expandable_get(allocator, set, bytes);
	segment = segment_new(allocator, set, new_bytes, 0);
	if (!segment)
		return NULL;
	segment->mapped_bytes = new_bytes;
	count_reserved(allocator, new_bytes);
	return segment->first;
}

static uint64_t extended_bytes(const struct allocator_block *block)
{
	return block->bytes + (block->next && !block->next->mapped ? block->next->bytes : 0);
}

/* Rules 5 to 7. */
static struct allocator_block *search(
	const struct allocator *allocator, struct stream_set *set, uint64_t bytes)
{
	const struct settings *settings = &allocator->options.settings;
	struct allocator_block *block, *next;

	set->pool->clock++;
	block = set_at_least(set, bytes);
	if (block && block->segment->page_bytes) {
		for (next = set_next(set, block); next && block->segment->page_bytes &&
						  extended_bytes(next) < extended_bytes(block);
			next = set_next(set, block))
			block = next;
	}
	if (!block)
		return NULL;
	if (bytes < settings->max_split_bytes && block->bytes >= settings->max_split_bytes)
		return NULL;
	if (bytes >= settings->max_split_bytes &&
		block->bytes >= bytes + settings->max_non_split_rounding_bytes)
		return NULL;
	return block;
}

/* Rule 8. */
static bool is_to_split(
	const struct allocator *allocator, const struct allocator_block *block, uint64_t bytes)
{
	const struct settings *settings = &allocator->options.settings;
	uint64_t rest = block->bytes - bytes;

	if (block->segment->set->pool->is_small || settings->expandable)
		return rest >= MIN_BLOCK_BYTES;
	return bytes < settings->max_split_bytes && rest > SMALL_BYTES;
}

/* Rule 11. */
static struct allocator_block *attempts(
	struct allocator *allocator, struct stream_set *set, uint64_t bytes)
{
	struct allocator_block *block;

	if (allocator->cap_bytes != UINT64_MAX &&
		allocator->options.settings.collection_threshold > 0)
		release_old(allocator);
	block = new_segment(allocator, set, bytes);
	if (!block && release_oversize(allocator, set, bytes))
		block = new_segment(allocator, set, bytes);
	if (!block && !allocator->n_scopes) {
		release_all(allocator);
		allocator->stats.n_retries++;
		block = new_segment(allocator, set, bytes);
	}
	return block;
}

static struct pool *pool_for(struct allocator *allocator, uint64_t id, uint64_t bytes)
{
	struct private_pool *pool;

	if (!id)
		return bytes <= SMALL_BYTES ? &allocator->small : &allocator->large;
	HASH_FIND(hh, allocator->pools, &id, sizeof(id), pool);
	if (!pool) {
		pool = memory_new(1, sizeof(*pool));
		pool->id = id;
		pool->small = (struct pool){.is_small = true, .owner = pool};
		pool->large = (struct pool){.owner = pool};
		HASH_ADD(hh, allocator->pools, id, sizeof(pool->id), pool);
	}
	pool->unused = false;
	return bytes <= SMALL_BYTES ? &pool->small : &pool->large;
}

struct allocator_block *allocator_get(
	struct allocator *allocator, uint64_t stream, uint64_t pool, uint64_t bytes)
{
	struct allocator_stats *stats = &allocator->stats;
	struct allocator_block *block;
	struct stream_set *set;

	if (bytes > MOST_BYTES) {
		stats->n_refused++;
		return NULL;
	}
	bytes = allocator_round(&allocator->options.settings, bytes);
	set = set_of(pool_for(allocator, pool, bytes), stream);
	block = search(allocator, set, bytes);
	if (block)
		set_remove(block);
	else
		block = attempts(allocator, set, bytes);
	if (!block) {
		stats->n_refused++;
		return NULL;
	}
	allocator->has_split = is_to_split(allocator, block, bytes);
	if (allocator->has_split)
		set_insert(block_split(allocator, block, bytes));
	block->used = true;
	stats->allocated_bytes += block->bytes;
	if (stats->allocated_bytes > stats->peak_allocated_bytes)
		stats->peak_allocated_bytes = stats->allocated_bytes;
	return block;
}

uint64_t allocator_put(struct allocator *allocator, struct allocator_block *block, bool is_pending)
{
	struct pending *pending;

	if (!is_pending) {
		block_release(allocator, block);
		return 0;
	}
	block->used = false;
	block->pending = true;
	pending = memory_new(1, sizeof(*pending));
	pending->ticket = ++allocator->n_tickets;
	pending->block = block;
	HASH_ADD(hh, allocator->pending, ticket, sizeof(pending->ticket), pending);
	return pending->ticket;
}

void allocator_ready(struct allocator *allocator, uint64_t ticket)
{
	struct pending *pending;

	HASH_FIND(hh, allocator->pending, &ticket, sizeof(ticket), pending);
	if (!pending)
		return;
	HASH_DEL(allocator->pending, pending);
	block_release(allocator, pending->block);
	free(pending);
}

void allocator_empty_cache(struct allocator *allocator)
{
	release_all(allocator);
}

void allocator_scope(struct allocator *allocator, bool begin)
{
	if (begin)
		allocator->n_scopes++;
	else if (allocator->n_scopes)
		allocator->n_scopes--;
}

void allocator_pool_unused(struct allocator *allocator, uint64_t id)
{
	struct private_pool *pool;

	HASH_FIND(hh, allocator->pools, &id, sizeof(id), pool);
	if (pool)
		pool->unused = true;
}

bool allocator_has_split(const struct allocator *allocator)
{
	return allocator->has_split;
}

uint64_t allocator_block_address(const struct allocator_block *block)
{
	return block->address;
}

uint64_t allocator_block_bytes(const struct allocator_block *block)
{
	return block->bytes;
}

const struct allocator_stats *allocator_stats(const struct allocator *allocator)
{
	return &allocator->stats;
}
