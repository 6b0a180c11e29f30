/* Blocks: the sets of free ones, splitting, merging, and waiting for events. */
#include <stdlib.h>
#include <string.h>

#include "c10_cuda.h"

void c10_stat_add(struct c10_stat *stat, u64 bytes)
{
	stat->current += bytes;
	if (stat->current > stat->peak)
		stat->peak = stat->current;
}

struct c10_block *c10_block_new(struct c10_pool *pool, int64_t stream, char *pointer, u64 bytes)
{
	struct c10_block *block = calloc(1, sizeof(*block));

	if (!block)
		abort();
	block->pool = pool;
	block->stream = stream;
	block->pointer = pointer;
	block->bytes = bytes;
	block->mapped = true;
	return block;
}

static void insert(struct c10_block **head, struct c10_block *block)
{
	block->free_prev = NULL;
	block->free_next = *head;
	if (*head)
		(*head)->free_prev = block;
	*head = block;
}

static void take_out(struct c10_block **head, struct c10_block *block)
{
	if (block->free_prev)
		block->free_prev->free_next = block->free_next;
	else
		*head = block->free_next;
	if (block->free_next)
		block->free_next->free_prev = block->free_prev;
}

void c10_free_insert(struct c10_block *block)
{
	insert(&block->pool->free, block);
}

void c10_free_remove(struct c10_block *block)
{
	take_out(&block->pool->free, block);
}

void c10_unmapped_insert(struct c10_block *block)
{
	insert(&block->pool->unmapped, block);
}

void c10_unmapped_remove(struct c10_block *block)
{
	take_out(&block->pool->unmapped, block);
}

bool c10_is_split(const struct c10_block *block)
{
	return block->prev || block->next;
}

u64 c10_merge(struct c10_block *block, struct c10_block *neighbour)
{
	u64 bytes;

	if (!neighbour || neighbour->allocated || neighbour->n_events ||
		neighbour->mapped != block->mapped)
		return 0;
	bytes = neighbour->bytes;
	if (block->prev == neighbour) {
		block->pointer = neighbour->pointer;
		block->prev = neighbour->prev;
		if (block->prev)
			block->prev->next = block;
	} else {
		block->next = neighbour->next;
		if (block->next)
			block->next->prev = block;
	}
	block->bytes += bytes;
	if (neighbour->mapped)
		c10_free_remove(neighbour);
	else
		c10_unmapped_remove(neighbour);
	free(neighbour);
	return bytes;
}

/* With what could be mapped behind it. */
static u64 expandable_bytes(const struct c10_block *block)
{
	return block->bytes + (block->next && !block->next->mapped ? block->next->bytes : 0);
}

static bool is_before(const struct c10_block *a, const struct c10_block *b)
{
	return a->bytes < b->bytes || (a->bytes == b->bytes && a->pointer < b->pointer);
}

/* The first in the order of size and address, of those behind `after` or of at least `bytes`. */
static struct c10_block *first_free(
	const struct c10_pool *pool, int64_t stream, u64 bytes, const struct c10_block *after)
{
	struct c10_block *best = NULL;

	for (struct c10_block *block = pool->free; block; block = block->free_next)
		if (block->stream == stream && block->bytes >= bytes &&
			(!after || is_before(after, block)) && (!best || is_before(block, best)))
			best = block;
	return best;
}

struct c10_block *c10_find_free(struct c10_pool *pool, int64_t stream, u64 bytes)
{
	const u64 max_split = c10_settings()->max_split_bytes;
	struct c10_block *block = first_free(pool, stream, bytes, NULL), *next;

	if (!block)
		return NULL;
	if (c10_settings()->expandable && block->expandable)
		while ((next = first_free(pool, stream, 0, block)) &&
			expandable_bytes(next) < expandable_bytes(block))
			block = next;
	if ((bytes < max_split && block->bytes >= max_split) ||
		(bytes >= max_split && block->bytes >= bytes + LARGE_SEGMENT))
		return NULL;
	return block;
}

static size_t active_place(const struct c10_device_state *device, const char *pointer)
{
	size_t low = 0, high = device->n_active;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (device->active[middle]->pointer < pointer)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct c10_block *c10_active_find(struct c10_device_state *device, const void *pointer, size_t *at)
{
	*at = active_place(device, pointer);
	return *at < device->n_active && device->active[*at]->pointer == pointer
		       ? device->active[*at]
		       : NULL;
}

static void active_insert(struct c10_block *block)
{
	struct c10_device_state *device = block->pool->device;
	size_t at = active_place(device, block->pointer);

	if (device->n_active == device->active_room) {
		device->active_room = device->active_room ? 2 * device->active_room : 64;
		device->active =
			realloc(device->active, device->active_room * sizeof(*device->active));
		if (!device->active)
			abort();
	}
	memmove(&device->active[at + 1], &device->active[at],
		(device->n_active++ - at) * sizeof(*device->active));
	device->active[at] = block;
}

static bool should_split(const struct c10_block *block, u64 bytes)
{
	u64 rest = block->bytes - bytes;

	if (block->pool->small || c10_settings()->expandable)
		return rest >= MIN_BLOCK;
	return bytes < c10_settings()->max_split_bytes && rest > SMALL_MOST;
}

struct c10_block *c10_hand_out(struct c10_block *block, u64 bytes)
{
	struct c10_device_state *device = block->pool->device;
	bool already_split = c10_is_split(block);
	struct c10_block *rest = NULL;

	if (should_split(block, bytes)) {
		rest = block;
		block = c10_block_new(rest->pool, rest->stream, rest->pointer, bytes);
		block->expandable = rest->expandable;
		block->prev = rest->prev;
		if (block->prev)
			block->prev->next = block;
		block->next = rest;
		rest->prev = block;
		rest->pointer += bytes;
		rest->bytes -= bytes;
		c10_free_insert(rest);
	}
	if (!block->expandable) {
		if (already_split)
			device->inactive_split.current -= block->bytes;
		else if (rest)
			c10_stat_add(&device->inactive_split, rest->bytes);
	}
	block->allocated = true;
	active_insert(block);
	c10_stat_add(&device->allocated, block->bytes);
	c10_stat_add(&device->live, block->bytes);
	device->n_allocations++;
	return block;
}

/* Nobody needs it any more. */
static void make_free(struct c10_block *block)
{
	struct c10_device_state *device = block->pool->device;
	u64 bytes = block->bytes, merged = 0;
	size_t at;

	if (c10_active_find(device, block->pointer, &at) != block)
		abort();
	memmove(&device->active[at], &device->active[at + 1],
		(--device->n_active - at) * sizeof(*device->active));
	merged += c10_merge(block, block->prev);
	merged += c10_merge(block, block->next);
	c10_free_insert(block);
	if (!block->expandable) {
		device->inactive_split.current -= merged;
		if (c10_is_split(block))
			c10_stat_add(&device->inactive_split, block->bytes);
	}
	device->live.current -= bytes;
}

static cudaEvent_t event_take(struct c10_device_state *device)
{
	cudaEvent_t event;

	if (device->n_spare_events)
		return device->spare_events[--device->n_spare_events];
	if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming))
		abort();
	return event;
}

static void event_keep(struct c10_device_state *device, cudaEvent_t event)
{
	if (device->n_spare_events < sizeof(device->spare_events) / sizeof(cudaEvent_t))
		device->spare_events[device->n_spare_events++] = event;
	else
		cudaEventDestroy(event);
}

static bool record(cudaEvent_t event, cudaStream_t stream)
{
	return !(c10_settings()->names == NAMES_1_13
			 ? cudaEventRecord(event, stream)
			 : cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault));
}

/* One event on each stream that uses the block. */
static void record_events(struct c10_block *block)
{
	struct c10_device_state *device = block->pool->device;

	for (int64_t stream = 0; stream < C10SIM_MAX_STREAMS; stream++) {
		struct c10_wait *wait;

		if (!(block->uses & 1u << stream))
			continue;
		wait = calloc(1, sizeof(*wait));
		if (!wait)
			abort();
		wait->event = event_take(device);
		wait->stream = stream;
		wait->block = block;
		if (!record(wait->event, c10_stream_handle(device->ordinal, stream)))
			abort();
		*device->last_wait = wait;
		device->last_wait = &wait->next;
		block->n_events++;
	}
	block->uses = 0;
}

/* As PyTorch does during a capture, the uses are forgotten here. */
void c10_give_back(struct c10_block *block)
{
	struct c10_device_state *device = block->pool->device;

	block->allocated = false;
	device->allocated.current -= block->bytes;
	device->n_frees++;
	if (block->uses && !c10_captures_open(device)) {
		record_events(block);
		device->pending_bytes += block->bytes;
	} else {
		block->uses = 0;
		make_free(block);
	}
}

static void done(struct c10_device_state *device, struct c10_wait **link)
{
	struct c10_wait *wait = *link;
	struct c10_block *block = wait->block;

	*link = wait->next;
	if (!*link)
		device->last_wait = link;
	event_keep(device, wait->event);
	free(wait);
	if (!--block->n_events) {
		device->pending_bytes -= block->bytes;
		make_free(block);
	}
}

/* Of each stream in order, up to the first event that is not done. */
void c10_process_events(struct c10_device_state *device, bool wait)
{
	struct c10_wait **link = &device->waits;
	uint32_t unfinished = 0;

	while (*link) {
		bool finished = !(unfinished & 1u << (*link)->stream);

		if (finished && wait)
			finished = !cudaEventSynchronize((*link)->event);
		else if (finished)
			finished = !cudaEventQuery((*link)->event);
		if (finished) {
			done(device, link);
		} else {
			unfinished |= 1u << (*link)->stream;
			link = &(*link)->next;
		}
	}
}

bool c10_captures_open(const struct c10_device_state *device)
{
	for (const struct c10_private *p = device->privates; p; p = p->next)
		if (p->open)
			return true;
	return false;
}
