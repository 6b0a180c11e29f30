/* Expandable segments: one range of addresses for a pool and stream, with pages mapped into it as
 * they are needed. */
#include <stdlib.h>

#include "c10_cuda.h"

struct c10_expandable {
	CUdeviceptr base;
	u64 bytes, page_bytes;
	int device;
	CUmemGenericAllocationHandle *handles; /* one a page; 0: not mapped */
};

static struct c10_block *segment_new(struct c10_pool *pool, int64_t stream)
{
	struct c10_expandable *segment = calloc(1, sizeof(*segment));
	size_t free_bytes, total_bytes;
	struct c10_block *block;

	if (!segment || cudaMemGetInfo(&free_bytes, &total_bytes))
		abort();
	segment->device = pool->device->ordinal;
	segment->page_bytes = pool->small ? SMALL_SEGMENT : LARGE_SEGMENT;
	segment->bytes =
		(total_bytes + total_bytes / 8) / segment->page_bytes * segment->page_bytes;
	segment->handles = calloc(segment->bytes / segment->page_bytes, sizeof(*segment->handles));
	if (!segment->handles || cuMemAddressReserve(&segment->base, segment->bytes, 0, 0, 0)) {
		free(segment->handles);
		free(segment);
		return NULL;
	}
	block = c10_block_new(pool, stream, (char *)(uintptr_t)segment->base, segment->bytes);
	block->mapped = false;
	block->expandable = segment;
	c10_unmapped_insert(block);
	return block;
}

static bool map_page(struct c10_expandable *segment, u64 page)
{
	const CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, segment->device};
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = location};
	CUmemGenericAllocationHandle handle;

	if (cuMemCreate(&handle, segment->page_bytes, &prop, 0))
		return false;
	if (cuMemMap(segment->base + page * segment->page_bytes, segment->page_bytes, 0, handle,
		    0)) {
		cuMemRelease(handle);
		return false;
	}
	segment->handles[page] = handle;
	return true;
}

static void unmap_page(struct c10_expandable *segment, u64 page)
{
	if (cuMemUnmap(segment->base + page * segment->page_bytes, segment->page_bytes) ||
		cuMemRelease(segment->handles[page]))
		abort();
	segment->handles[page] = 0;
}

static u64 page_of(const struct c10_expandable *segment, const char *pointer)
{
	return ((u64)(uintptr_t)pointer - segment->base) / segment->page_bytes;
}

/* Maps whole pages from the beginning of an unmapped range. Returns their bytes, or 0: what was
 * mapped is handed back. */
static u64 map_range(struct c10_expandable *segment, const char *pointer, u64 bytes)
{
	const CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, segment->device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	u64 first = page_of(segment, pointer), n = 0;
	const u64 wanted = (bytes + segment->page_bytes - 1) / segment->page_bytes;

	while (n < wanted && map_page(segment, first + n))
		n++;
	if (n < wanted) {
		while (n--)
			unmap_page(segment, first + n);
		return 0;
	}
	if (cuMemSetAccess(segment->base + first * segment->page_bytes, n * segment->page_bytes,
		    &access, 1))
		abort();
	return n * segment->page_bytes;
}

/* Maps at least bytes of an unmapped block, the rest of which becomes a block of its own. */
static bool map_block(struct c10_block *block, u64 bytes)
{
	struct c10_device_state *device = block->pool->device;
	u64 mapped = map_range(block->expandable, block->pointer, bytes);

	if (!mapped)
		return false;
	c10_unmapped_remove(block);
	if (mapped < block->bytes) {
		struct c10_block *rest = c10_block_new(
			block->pool, block->stream, block->pointer + mapped, block->bytes - mapped);

		rest->mapped = false;
		rest->expandable = block->expandable;
		rest->prev = block;
		rest->next = block->next;
		if (rest->next)
			rest->next->prev = rest;
		block->next = rest;
		block->bytes = mapped;
		c10_unmapped_insert(rest);
	}
	block->mapped = true;
	c10_merge(block, block->prev);
	c10_merge(block, block->next);
	c10_free_insert(block);
	c10_stat_add(&device->reserved, mapped);
	device->n_device_allocations++;
	return true;
}

static bool is_free(const struct c10_block *block)
{
	return block && !block->allocated && !block->n_events;
}

/* Where free and unmapped blocks in a row have room: begins with a free block or an unmapped one.
 */
static struct c10_block *find_room(struct c10_pool *pool, int64_t stream, u64 bytes)
{
	struct c10_block *best = NULL;

	for (struct c10_block *block = pool->unmapped; block; block = block->free_next) {
		struct c10_block *start =
			is_free(block->prev) && block->prev->mapped ? block->prev : block;
		u64 room = 0;

		if (block->stream != stream || (best && block->pointer > best->pointer))
			continue;
		for (struct c10_block *b = start; is_free(b) && room < bytes; b = b->next)
			room += b->bytes;
		if (room >= bytes)
			best = block;
	}
	if (best && is_free(best->prev) && best->prev->mapped)
		return best->prev;
	return best ? best : segment_new(pool, stream);
}

static u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

struct c10_block *c10_expand(struct c10_pool *pool, int64_t stream, u64 bytes)
{
	struct c10_block *block = find_room(pool, stream, bytes);

	if (!block || (!block->mapped && !map_block(block, least(block->bytes, bytes))))
		return NULL;
	while (block->bytes < bytes) {
		struct c10_block *next = block->next;

		if (!map_block(next, least(bytes - block->bytes, next->bytes)))
			return NULL;
		block = next; /* merged with the one before it */
	}
	c10_free_remove(block);
	return block;
}

/* The part of block before or behind what was unmapped stays free. */
static void split_off(struct c10_block *block, char *pointer, u64 bytes, bool before)
{
	struct c10_block *part = c10_block_new(block->pool, block->stream, pointer, bytes);

	part->expandable = block->expandable;
	part->prev = before ? block->prev : block;
	part->next = before ? block : block->next;
	if (part->prev)
		part->prev->next = part;
	if (part->next)
		part->next->prev = part;
	c10_free_insert(part);
}

static void segment_release(struct c10_block *block)
{
	struct c10_expandable *segment = block->expandable;

	if (cuMemAddressFree(segment->base, segment->bytes))
		abort();
	c10_unmapped_remove(block);
	free(block);
	free(segment->handles);
	free(segment);
}

void c10_unmap(struct c10_block *block)
{
	struct c10_expandable *segment = block->expandable;
	struct c10_device_state *device = block->pool->device;
	u64 start = (u64)(uintptr_t)block->pointer - segment->base, end = start + block->bytes;
	u64 first = (start + segment->page_bytes - 1) / segment->page_bytes;
	u64 last = end / segment->page_bytes;
	char *from = (char *)(uintptr_t)(segment->base + first * segment->page_bytes);
	char *to = (char *)(uintptr_t)(segment->base + last * segment->page_bytes);

	if (first >= last)
		return;
	for (u64 page = first; page < last; page++)
		unmap_page(segment, page);
	c10_free_remove(block);
	if (from > block->pointer)
		split_off(block, block->pointer, (u64)(from - block->pointer), true);
	if (to < block->pointer + block->bytes)
		split_off(block, to, (u64)(block->pointer + block->bytes - to), false);
	block->pointer = from;
	block->bytes = (u64)(to - from);
	block->mapped = false;
	c10_merge(block, block->prev);
	c10_merge(block, block->next);
	c10_unmapped_insert(block);
	device->reserved.current -= (u64)(to - from);
	device->n_device_frees++;
	if (!block->prev && !block->next)
		segment_release(block);
}
