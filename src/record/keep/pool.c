/* Pools of stream-ordered memory, see tools/model/pool.c. What waits for a stream is not kept. */
#include "record/keep/internal.h"

static struct keep_pool *pool_get(uint64_t handle, uint64_t variant)
{
	struct keep_pool_key key = {handle, variant};
	struct keep_pool *pool;

	HASH_FIND(hh, keep.pools, &key, sizeof(key), pool);
	return pool;
}

static void pool_add(struct keep_pool *pool, uint64_t handle, uint64_t variant)
{
	struct arena *arena = &keep.arena;
	bool added = true;

	pool->key = (struct keep_pool_key){handle, variant};
	HASH_ADD(hh, keep.pools, key, sizeof(pool->key), pool);
	(void)added; /* without memory it is not found again */
}

static struct keep_pool *pool_new(uint64_t handle, uint64_t variant, struct keep_device *device)
{
	struct keep_pool *pool = keep_alloc(sizeof(*pool));

	if (!pool)
		return NULL;
	pool->device = device;
	pool_add(pool, handle, variant);
	return pool;
}

static void change_key(struct keep_pool *pool, uint64_t handle, uint64_t variant)
{
	struct arena *arena = &keep.arena;

	HASH_DEL(keep.pools, pool);
	pool_add(pool, handle, variant);
}

static struct keep_pool *default_pool(struct keep_device *device)
{
	if (!device->default_pool)
		device->default_pool = pool_new(0, (uint64_t)device->ordinal + 3, device);
	return device->default_pool;
}

/* A pool that was not seen made is the default one of its device, unless that has another name. */
static struct keep_pool *named_pool(uint64_t handle, struct keep_device *device)
{
	struct keep_pool *pool = pool_get(handle, 0);

	if (pool)
		return pool;
	pool = default_pool(device);
	if (!pool)
		return NULL;
	if (pool->key.handle)
		return pool_new(handle, 0, device);
	change_key(pool, handle, 0);
	return pool;
}

struct keep_pool *keep_pool_of(uint64_t handle, struct keep_device *device)
{
	if (handle)
		return named_pool(handle, device);
	return device->current_pool ? device->current_pool : default_pool(device);
}

static void settle(struct keep_pool *pool)
{
	uint64_t bytes = pool->live_bytes;

	if (pool->sampled && !pool->destroyed && pool->reserved_bytes > bytes)
		bytes = pool->reserved_bytes;
	if (pool->imported)
		bytes = 0;
	device_hold(pool->device, VT_KIND_POOL,
		pool->device->held[VT_KIND_POOL] + bytes - pool->held_bytes);
	pool->held_bytes = bytes;
}

static void end_if_empty(struct keep_pool *pool)
{
	struct arena *arena = &keep.arena;

	if (!pool->destroyed || pool->n_live)
		return;
	HASH_DEL(keep.pools, pool);
	kept_free(pool->create);
	kept_free(pool->destroy);
	kept_free(pool->threshold);
	kept_free(pool->memory);
	keep_free(pool, sizeof(*pool));
}

void pool_keep_block(struct keep_block *block, bool add)
{
	struct keep_pool *pool = block->pool;

	if (!pool)
		return;
	pool->live_bytes += add ? block->bytes : -block->bytes;
	pool->n_live += add ? 1 : -UINT64_C(1);
	settle(pool);
	end_if_empty(pool);
}

static void apply_memory(const struct keep_event *event)
{
	const struct vt_rec_pool_memory *given = keep_record(event, pool_memory);
	struct keep_device *device = keep_device_of(given->device);
	struct keep_pool *pool = device ? keep_pool_of(given->pool, device) : NULL;

	if (!pool)
		return;
	pool->sampled = true;
	pool->reserved_bytes = given->reserved_bytes;
	kept_replace(&pool->memory, event);
	settle(pool);
	device_changed(pool->device, event->time_ns);
}

static void trim(struct keep_pool *pool, uint64_t keep_bytes, uint64_t time_ns)
{
	uint64_t busy_bytes = keep_rounded(pool->live_bytes, pool->device->page_bytes);

	if (keep_bytes < busy_bytes)
		keep_bytes = busy_bytes;
	if (pool->reserved_bytes > keep_bytes)
		pool->reserved_bytes = keep_bytes;
	settle(pool);
	device_changed(pool->device, time_ns);
}

static void forget_current(struct keep_device *device, const struct keep_pool *pool)
{
	if (!device || device->current_pool != pool)
		return;
	device->current_pool = NULL;
	kept_free(device->set_current);
	device->set_current = NULL;
}

/* Its handle may be given out again while its last allocations live. event: NULL when that was not
 * seen. */
static void destroy(struct keep_pool *pool, const struct keep_event *event, uint64_t time_ns)
{
	if (pool->device->default_pool == pool)
		return;
	for (struct keep_device *device = keep.devices; device; device = device->next)
		forget_current(device, pool);
	forget_current(keep.unknown, pool);
	pool->destroyed = true;
	if (event)
		kept_replace(&pool->destroy, event);
	settle(pool);
	device_changed(pool->device, time_ns);
	change_key(pool, pool->key.handle, ++keep.n_ended_pools);
	end_if_empty(pool);
}

static void made(const struct keep_event *event)
{
	const struct vt_rec_pool *given = keep_record(event, pool);
	struct keep_pool *pool = pool_get(given->pool, 0);
	struct keep_device *device =
		keep_device_of(given->device < 0 ? VT_DEVICE_UNKNOWN : given->device);

	if (pool) {
		destroy(pool, NULL, event->time_ns);
		pool = pool_get(given->pool, 0);
	}
	if (!pool && device)
		pool = pool_new(given->pool, 0, device);
	if (!pool)
		return;
	pool->imported = given->action == VT_POOL_IMPORT;
	kept_replace(&pool->create, event);
	settle(pool);
}

static void apply_action(const struct keep_event *event)
{
	const struct vt_rec_pool *given = keep_record(event, pool);
	struct keep_device *device;
	struct keep_pool *pool;

	if (given->action == VT_POOL_CREATE || given->action == VT_POOL_IMPORT) {
		made(event);
		return;
	}
	device = keep_device_of(given->device);
	pool = device ? named_pool(given->pool, device) : NULL;
	if (!pool)
		return;
	switch (given->action) {
	case VT_POOL_DESTROY:
		/* Of a younger one of the same handle its end was taken for granted. */
		if (!pool->create || pool->create->time_ns <= event->time_ns)
			destroy(pool, event, event->time_ns);
		break;
	case VT_POOL_TRIM:
		trim(pool, given->value, event->time_ns);
		break;
	case VT_POOL_SET_CURRENT:
		device->current_pool = pool;
		kept_replace(&device->set_current, event);
		break;
	case VT_POOL_THRESHOLD:
		kept_replace(&pool->threshold, event);
		break;
	default:
		break;
	}
}

void pool_keep(const struct keep_event *event)
{
	const struct vt_rec_pool *given = keep_record(event, pool);
	const struct keep_device *device;

	if (event->kind == VT_REC_pool_memory) {
		apply_memory(event);
	} else if (given->result) {
		device = keep_device_of(given->device);
		keep_refused(&(struct keep_refusal_key){given->stack_id, given->api_id, 0,
				     given->result, device ? device->ordinal : VT_DEVICE_UNKNOWN,
				     VT_REFUSED_POOL, VT_KIND_POOL},
			given->value, given->time_ns);
	} else if (given->pool) {
		apply_action(event);
	}
}

void pool_checkpoint(void)
{
	for (struct keep_pool *pool = keep.pools; pool; pool = pool->hh.next) {
		checkpoint_put(pool->create);
		checkpoint_put(pool->threshold);
		if (pool->memory)
			kept_as(pool->memory, pool_memory)->reserved_bytes = pool->reserved_bytes;
		checkpoint_put(pool->memory);
		checkpoint_put(pool->destroy);
	}
}
