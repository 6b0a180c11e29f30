/*
 * The driver's choice of addresses is not documented. It matters only between free blocks of equal
 * size, of which PyTorch takes the lowest; several guesses that lead to one result make it certain.
 */
#include <stdlib.h>

#include "analysis/allocator_internal.h"
#include "model/memory.h"

#define PLACE_BYTES (1ull << 42)
#define N_PLACES    (1ull << 20)
#define ARENA_BYTES (32 * SETTINGS_MIB)
/* Anywhere in the middle of the address space. */
#define FIRST_ADDRESS (1ull << 46)

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
	return (bytes + step - 1) / step * step;
}

static uint64_t take_below(struct allocator *allocator, uint64_t bytes)
{
	if (!allocator->lowest)
		allocator->lowest = allocator->highest = FIRST_ADDRESS;
	if (bytes >= allocator->lowest)
		return 0;
	return allocator->lowest -= bytes;
}

static uint64_t take_above(struct allocator *allocator, uint64_t bytes)
{
	uint64_t address;

	if (!allocator->highest)
		allocator->lowest = allocator->highest = FIRST_ADDRESS;
	address = allocator->highest;
	if (bytes > UINT64_MAX - address)
		return 0;
	allocator->highest += bytes;
	return address;
}

static const struct segment *segment_from(const struct allocator *allocator, uint64_t address)
{
	return (const struct segment *)tree_ceiling(&allocator->segments, address);
}

/* The smallest gap of the arena that takes `bytes`: its address, 0 when there is none. */
static uint64_t best_gap(
	const struct allocator *allocator, const struct arena *arena, uint64_t bytes)
{
	uint64_t end = arena->address + arena->bytes, at = arena->address;
	uint64_t best = 0, best_bytes = UINT64_MAX;

	while (at < end) {
		const struct segment *segment = segment_from(allocator, at);
		uint64_t next = segment && segment->node.key < end ? segment->node.key : end;

		if (next - at >= bytes && next - at < best_bytes) {
			best = at;
			best_bytes = next - at;
		}
		at = next < end ? next + segment->bytes : end;
	}
	return best;
}

static bool overlaps(const struct arena *arena, uint64_t address, uint64_t bytes)
{
	return address < arena->address + arena->bytes && arena->address < address + bytes;
}

/* The highest gap between the arenas, looked for from the top down. */
static uint64_t highest_gap(const struct allocator *allocator, uint64_t bytes)
{
	uint64_t address = FIRST_ADDRESS - bytes;
	bool moved = true;

	while (moved) {
		moved = false;
		for (const struct arena *arena = allocator->arenas; arena; arena = arena->next)
			if (overlaps(arena, address, bytes)) {
				if (arena->address <= bytes)
					return 0;
				address = arena->address - bytes;
				moved = true;
			}
	}
	return address;
}

static uint64_t take_in_arena(struct allocator *allocator, uint64_t bytes)
{
	struct arena *arena;
	uint64_t address;

	for (arena = allocator->arenas; arena; arena = arena->next) {
		address = best_gap(allocator, arena, bytes);
		if (address) {
			arena->n_segments++;
			return address;
		}
	}
	address = highest_gap(allocator, round_up(bytes, ARENA_BYTES));
	if (!address)
		return 0;
	arena = memory_new(1, sizeof(*arena));
	arena->bytes = round_up(bytes, ARENA_BYTES);
	arena->address = address;
	arena->n_segments = 1;
	arena->next = allocator->arenas;
	allocator->arenas = arena;
	return arena->address;
}

static uint64_t next_random(struct allocator *allocator)
{
	uint64_t x = allocator->random += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* One of many places so far from each other that nothing reaches the next one. */
static uint64_t take_anywhere(struct allocator *allocator, uint64_t bytes)
{
	uint64_t address;

	if (!allocator->random)
		allocator->random = allocator->options.seed + 1;
	if (bytes >= PLACE_BYTES)
		return 0;
	do
		address = (1 + next_random(allocator) % N_PLACES) * PLACE_BYTES;
	while (tree_find(&allocator->segments, address));
	return address;
}

static uint64_t take(struct allocator *allocator, uint64_t bytes)
{
	switch (allocator->options.addresses) {
	case ALLOCATOR_UP:
		return take_above(allocator, bytes);
	case ALLOCATOR_ANYWHERE:
		return take_anywhere(allocator, bytes);
	case ALLOCATOR_ARENA:
		return take_in_arena(allocator, bytes);
	default:
		return take_below(allocator, bytes);
	}
}

uint64_t driver_ask(struct allocator *allocator, enum allocator_request request, uint64_t bytes)
{
	const struct allocator_options *options = &allocator->options;
	uint64_t capacity = options->capacity_bytes;

	if (options->addresses == ALLOCATOR_GIVEN)
		return options->driver(options->arg, request, bytes);
	if (request != ALLOCATOR_RANGE && capacity &&
		allocator->stats.reserved_bytes + bytes > capacity)
		return 0;
	return request == ALLOCATOR_MAP ? 1 : take(allocator, bytes);
}

void driver_give(struct allocator *allocator, uint64_t address)
{
	for (struct arena **link = &allocator->arenas; *link; link = &(*link)->next) {
		struct arena *arena = *link;

		if (!overlaps(arena, address, 1))
			continue;
		if (!--arena->n_segments) {
			*link = arena->next;
			free(arena);
		}
		return;
	}
}
