/* Pools of stream-ordered memory: which one an allocation comes from, what it reserves, and what of
 * it may still be waiting for a stream. */
#include <stdlib.h>

#include "model/internal.h"
#include "model/memory.h"

static struct model_pool *pool_get(struct model *model, uint64_t handle, uint64_t variant)
{
	struct model_pool_key key = {handle, variant};
	struct model_pool *pool;

	HASH_FIND(hh, model->pools, &key, sizeof(key), pool);
	return pool;
}

static struct model_pool *pool_new(
	struct model *model, uint64_t handle, uint64_t variant, struct model_device *device)
{
	struct model_pool *pool = memory_new(1, sizeof(*pool));

	pool->key = (struct model_pool_key){handle, variant};
	pool->device = device;
	HASH_ADD(hh, model->pools, key, sizeof(pool->key), pool);
	return pool;
}

static void change_key(
	struct model *model, struct model_pool *pool, uint64_t handle, uint64_t variant)
{
	HASH_DEL(model->pools, pool);
	pool->key = (struct model_pool_key){handle, variant};
	HASH_ADD(hh, model->pools, key, sizeof(pool->key), pool);
}

/* The device's default pool, which may have no name yet. */
static struct model_pool *default_pool(struct model *model, struct model_device *device)
{
	if (!device->default_pool)
		device->default_pool = pool_new(model, 0, (uint64_t)device->ordinal + 3, device);
	return device->default_pool;
}

/* A pool that was not seen made is the default one of its device, unless that has another name. */
static struct model_pool *named_pool(
	struct model *model, uint64_t handle, struct model_device *device)
{
	struct model_pool *pool = pool_get(model, handle, 0);

	if (pool)
		return pool;
	pool = default_pool(model, device);
	if (pool->key.handle)
		return pool_new(model, handle, 0, device);
	change_key(model, pool, handle, 0);
	return pool;
}

struct model_pool *pool_of(struct model *model, uint64_t handle, struct model_device *device)
{
	if (handle)
		return named_pool(model, handle, device);
	return device->current_pool ? device->current_pool : default_pool(model, device);
}

/* The driver tells what a pool reserves only now and then: what is live is part of it at any time.
 */
static void settle(struct model_pool *pool)
{
	struct model_held *held = &pool->device->held;
	uint64_t bytes = pool->live_bytes;

	if (pool->sampled && !pool->destroyed && pool->reserved_bytes > bytes)
		bytes = pool->reserved_bytes;
	if (pool->imported)
		bytes = 0;
	if (bytes > pool->peak_reserved_bytes)
		pool->peak_reserved_bytes = bytes;
	ledger_hold(pool->device, &held->pool_bytes, held->pool_bytes + bytes - pool->held_bytes);
	pool->held_bytes = bytes;
}

void pool_release(struct model_pool *pool)
{
	free(pool->pending);
	free(pool);
}

static void end_if_empty(struct model *model, struct model_pool *pool)
{
	if (!pool->destroyed || pool->n_live)
		return;
	HASH_DEL(model->pools, pool);
	pool_release(pool);
}

void pool_book(struct model *model, struct model_block *block, bool add)
{
	struct model_pool *pool = block->pool;

	pool->live_bytes += add ? block->bytes : -block->bytes;
	pool->n_live += add ? 1 : -UINT64_C(1);
	settle(pool);
	end_if_empty(model, pool);
}

void pool_note_pending(struct model_pool *pool, uint64_t stream, uint64_t bytes)
{
	pool->pending_bytes = add_capped(pool->pending_bytes, bytes);
	for (size_t i = 0; i < pool->n_pending; i++) {
		if (pool->pending[i].stream != stream)
			continue;
		pool->pending[i].bytes = add_capped(pool->pending[i].bytes, bytes);
		return;
	}
	pool->pending = memory_grow(
		pool->pending, pool->n_pending, &pool->pending_room, sizeof(*pool->pending));
	pool->pending[pool->n_pending++] = (struct model_pending){stream, bytes};
}

/* No more than this can be waiting, on any stream and in all. */
static void bound_pending(struct model_pool *pool, uint64_t most_bytes)
{
	size_t kept = 0;

	if (pool->pending_bytes > most_bytes)
		pool->pending_bytes = most_bytes;
	for (size_t i = 0; most_bytes && i < pool->n_pending; i++) {
		struct model_pending pending = pool->pending[i];

		if (pending.bytes > most_bytes)
			pending.bytes = most_bytes;
		pool->pending[kept++] = pending;
	}
	pool->n_pending = kept;
}

static void apply_memory(struct model *model, const struct vt_rec_pool_memory *given)
{
	struct model_device *device = model_device_of(model, given->device);
	struct model_pool *pool = pool_of(model, given->pool, device);

	pool->sampled = true;
	pool->sampled_ns = given->time_ns;
	pool->reserved_bytes = given->reserved_bytes;
	bound_pending(pool,
		given->used_bytes > pool->live_bytes ? given->used_bytes - pool->live_bytes : 0);
	settle(pool);
	ledger_note_peak(pool->device, given->time_ns);
}

/* Until the driver tells: what is kept at most, whole pages of what is live or may be waiting. */
static void trim(struct model_pool *pool, uint64_t keep_bytes)
{
	uint64_t busy_bytes = rounded_up(
		add_capped(pool->live_bytes, pool->pending_bytes), pool->device->page_bytes);

	if (keep_bytes < busy_bytes)
		keep_bytes = busy_bytes;
	if (pool->reserved_bytes > keep_bytes)
		pool->reserved_bytes = keep_bytes;
	settle(pool);
}

/* Its handle may be given out again while its last allocations live. */
static void destroy(struct model *model, struct model_pool *pool)
{
	struct model_device *device = pool->device;

	/* The driver refuses to destroy a default pool. */
	if (device->default_pool == pool)
		return;
	for (size_t i = 0; i < model->n_devices; i++)
		if (model->devices[i]->current_pool == pool)
			model->devices[i]->current_pool = NULL;
	if (model->unknown.current_pool == pool)
		model->unknown.current_pool = NULL;
	pool->destroyed = true;
	bound_pending(pool, 0);
	settle(pool);
	change_key(model, pool, pool->key.handle, ++model->n_ended_pools);
	end_if_empty(model, pool);
}

/* A handle that is given out is nobody's any more: an older pool of that handle was destroyed. */
static struct model_pool *made(struct model *model, const struct vt_rec_pool *given)
{
	struct model_pool *pool = pool_get(model, given->pool, 0);

	if (pool) {
		destroy(model, pool);
		pool = pool_get(model, given->pool, 0);
	}
	/* Pools of the host and managed ones are of no device: not of the only one there is,
	 * either.
	 */
	return pool ? pool
		    : pool_new(model, given->pool, 0,
			      given->device < 0 ? &model->unknown
						: model_device_of(model, given->device));
}

static void note_refused(struct model *model, const struct vt_rec_pool *given)
{
	struct model_failure_key key = {
		.stack_id = given->stack_id,
		.api_id = given->api_id,
		.result = given->result,
		.device = model_device_of(model, given->device)->ordinal,
		.refusal = MODEL_REFUSED_POOL,
		.kind = VT_KIND_POOL,
	};

	model_note_failure(model, &key, given->value, given->time_ns);
}

static void apply_action(struct model *model, const struct vt_rec_pool *given)
{
	struct model_device *device;
	struct model_pool *pool;

	if (!given->pool)
		return;
	if (given->action == VT_POOL_CREATE || given->action == VT_POOL_IMPORT) {
		pool = made(model, given);
		pool->imported = given->action == VT_POOL_IMPORT;
		pool->most_bytes = given->value;
		settle(pool);
		return;
	}
	device = model_device_of(model, given->device);
	pool = named_pool(model, given->pool, device);
	switch (given->action) {
	case VT_POOL_DESTROY:
		destroy(model, pool);
		break;
	case VT_POOL_TRIM:
		trim(pool, given->value);
		break;
	case VT_POOL_SET_CURRENT:
		device->current_pool = pool;
		break;
	case VT_POOL_THRESHOLD:
		pool->threshold_known = true;
		pool->threshold_bytes = given->value;
		break;
	default:
		break;
	}
}

void pool_apply(struct model *model, const struct vt_record *record)
{
	if (record->kind == VT_REC_pool_memory)
		apply_memory(model, &record->pool_memory);
	else if (record->pool.result)
		note_refused(model, &record->pool);
	else
		apply_action(model, &record->pool);
}
