/* Stream-ordered memory: pools reserve device memory in chunks and keep it until they have reason
 * not to. */
#include "sim.h"

#include <stdlib.h>

struct sim_chunk { /* pages that were reserved, and will be returned, together */
	struct sim_chunk *next;
	u32 *pages, n_pages;
	u32 *unused, n_unused;
};

CUmemoryPool sim_pool_new(struct sim_device *dev, enum cusim_owner owner)
{
	CUmemoryPool pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->dev = dev;
	pool->id = ++sim.last_id;
	pool->heap =
		(struct sim_heap){.dev = dev, .owner = owner, .pool = pool, .arena = &sim.arena};
	for (int i = 0; i < 3; i++)
		pool->reuse[i] = 1;
	if (owner != CUSIM_BY_POOLS || sim_handle_insert(&sim.pools, pool))
		return pool;
	free(pool);
	return NULL;
}

CUresult sim_pools_init(void)
{
	for (u32 i = 0; i < sim.n_devices; i++) {
		struct sim_device *dev = &sim.devices[i];

		dev->default_pool = sim_pool_new(dev, CUSIM_BY_POOLS);
		dev->pool = dev->default_pool;
		dev->graph_pool = sim_pool_new(dev, CUSIM_BY_GRAPHS);
		if (!dev->pool || !dev->graph_pool)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

static void reserved_changed(CUmemoryPool pool, u32 n_pages, bool more)
{
	u64 bytes = (more ? n_pages : -(u64)n_pages) * SIM_PAGE_BYTES;

	pool->reserved_bytes += bytes;
	if (pool->reserved_bytes > pool->reserved_high)
		pool->reserved_high = pool->reserved_bytes;
}

static bool over_most(CUmemoryPool pool, u32 n_pages)
{
	return pool->most_bytes &&
	       pool->reserved_bytes + n_pages * SIM_PAGE_BYTES > pool->most_bytes;
}

/* Reserves at least n pages more: a multiple of the step, or just so many when the device has no
 * more to give. */
static bool grow(CUmemoryPool pool, u32 n)
{
	const u32 step = SIM_POOL_STEP / SIM_PAGE_BYTES;
	u32 n_pages = (n + step - 1) / step * step;
	struct sim_chunk *chunk;

	if (n_pages > pool->dev->n_free || over_most(pool, n_pages))
		n_pages = n;
	if (over_most(pool, n_pages))
		return false;
	chunk = calloc(1, sizeof(*chunk));
	if (!chunk)
		return false;
	chunk->pages = sim_pages_new(pool->dev, pool->heap.owner, n_pages);
	chunk->unused = malloc(n_pages * sizeof(*chunk->unused));
	if (!chunk->pages || !chunk->unused) {
		sim_pages_free(pool->dev, pool->heap.owner, chunk->pages, n_pages);
		free(chunk->unused);
		free(chunk);
		return false;
	}
	for (u32 i = 0; i < n_pages; i++) {
		chunk->unused[i] = chunk->pages[i];
		pool->dev->chunk_of[chunk->pages[i]] = chunk;
	}
	chunk->n_pages = chunk->n_unused = n_pages;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	reserved_changed(pool, n_pages, true);
	return true;
}

static u32 n_unused(CUmemoryPool pool)
{
	u32 n = 0;

	for (struct sim_chunk *chunk = pool->chunks; chunk; chunk = chunk->next)
		n += chunk->n_unused;
	return n;
}

bool sim_pool_has(CUmemoryPool pool, u32 n)
{
	return n <= n_unused(pool) + pool->dev->n_free;
}

bool sim_pool_take(CUmemoryPool pool, u32 n, u32 *pages)
{
	u32 n_there = n_unused(pool), n_taken = 0;

	if (n_there < n && !grow(pool, n - n_there))
		return false;
	for (struct sim_chunk *chunk = pool->chunks; chunk; chunk = chunk->next)
		while (chunk->n_unused > 0 && n_taken < n)
			pages[n_taken++] = chunk->unused[--chunk->n_unused];
	return true;
}

void sim_pool_give(CUmemoryPool pool, const u32 *pages, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		struct sim_chunk *chunk = pool->dev->chunk_of[pages[i]];

		chunk->unused[chunk->n_unused++] = pages[i];
	}
}

void sim_pool_trim(CUmemoryPool pool, u64 keep_bytes)
{
	for (struct sim_chunk **at = &pool->chunks; *at;) {
		struct sim_chunk *chunk = *at;

		if (chunk->n_unused < chunk->n_pages ||
			pool->reserved_bytes - chunk->n_pages * SIM_PAGE_BYTES < keep_bytes) {
			at = &chunk->next;
			continue;
		}
		*at = chunk->next;
		reserved_changed(pool, chunk->n_pages, false);
		sim_pages_free(pool->dev, pool->heap.owner, chunk->pages, chunk->n_pages);
		free(chunk->unused);
		free(chunk);
	}
}

static void end_if_unused(CUmemoryPool pool)
{
	if (!pool->destroyed || pool->n_live > 0)
		return;
	sim_pool_trim(pool, 0);
	free(pool);
}

void sim_pool_used(CUmemoryPool pool, u64 bytes, bool more)
{
	bool packed = bytes <= SIM_SMALL_BYTES && pool->heap.owner == CUSIM_BY_POOLS;
	u64 rounding = packed ? SIM_UNIT_BYTES : SIM_PAGE_BYTES;
	u64 rounded = (bytes + rounding - 1) / rounding * rounding;

	pool->used_bytes += more ? rounded : -rounded;
	pool->n_live += more ? 1 : -1ull;
	if (pool->used_bytes > pool->used_high)
		pool->used_high = pool->used_bytes;
	if (!more)
		end_if_unused(pool);
}

void sim_pools_settle(const struct sim_device *dev)
{
	for (size_t i = 0; i < sim.pools.n_entries; i++) {
		CUmemoryPool pool = sim.pools.entries[i].value;

		if (pool->dev != dev)
			continue;
		sim_pending_end(pool, NULL, true);
		sim_pool_trim(pool, pool->threshold);
	}
}

void sim_pools_end(struct sim_device *dev)
{
	for (size_t i = 0; i < sim.pools.n_entries; i++) {
		CUmemoryPool pool = sim.pools.entries[i].value;

		if (pool->dev != dev)
			continue;
		sim_pending_end(pool, NULL, true);
		sim_pool_trim(pool, 0);
	}
	sim_pool_trim(dev->graph_pool, 0);
}

/* What a capture records: a node of the graph, whose memory comes with its launch. */
static CUresult alloc_captured(CUdeviceptr *out, u64 bytes, CUmemoryPool pool, CUstream stream)
{
	CUgraph graph = sim_capture_graph(stream);
	CUgraphNode node;
	u64 address;
	CUresult result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

	if (graph)
		result = sim_graph_add_alloc(graph, pool->dev, bytes, &node, &address);
	if (result == CUDA_SUCCESS)
		*out = address;
	return result;
}

static CUresult alloc_async(
	CUcontext ctx, CUdeviceptr *out, u64 bytes, CUmemoryPool pool, CUstream stream)
{
	struct sim_range *range;
	CUresult result;

	if (!out || bytes == 0 || !sim_handle_known(&sim.pools, pool) || pool->imported)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_stream_known(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (sim_stream_capturing(stream))
		return alloc_captured(out, bytes, pool, stream);
	/* On the same stream it comes behind what freed it. */
	sim_pending_end(pool, stream, false);
	result = sim_alloc(ctx, &pool->heap, CUSIM_POOL, bytes, &range);
	if (result != CUDA_SUCCESS)
		return result;
	range->pool = pool;
	sim_pool_used(pool, bytes, true);
	*out = range->base;
	return CUDA_SUCCESS;
}

/* A failure counts for the device of the pool, if it is one. */
static void from_pool_failed(CUcontext ctx, CUmemoryPool pool)
{
	if (sim_handle_known(&sim.pools, pool))
		sim.ledger.devices[pool->dev->ordinal].kinds[CUSIM_POOL].failed++;
	else
		sim_ledger_failed(ctx, CUSIM_POOL);
}

static CUresult pool_create(CUmemoryPool *out, const CUmemPoolProps *props)
{
	struct sim_device *dev;

	if (!out || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	dev = sim_device_get(props->location.id);
	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (props->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	*out = sim_pool_new(dev, CUSIM_BY_POOLS);
	if (!*out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*out)->handle_types = (int)props->handleTypes;
#if CUDA_VERSION >= 12040
	(*out)->most_bytes = props->maxSize;
#endif
	return CUDA_SUCCESS;
}

static CUresult pool_destroy(CUmemoryPool pool)
{
	if (!sim_handle_known(&sim.pools, pool) || pool == pool->dev->default_pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (pool->dev->pool == pool)
		pool->dev->pool = pool->dev->default_pool;
	sim_handle_remove(&sim.pools, pool);
	sim_pending_end(pool, NULL, true);
	pool->destroyed = true;
	end_if_unused(pool);
	return CUDA_SUCCESS;
}

/* The switches of a pool, or NULL if the attribute is not one. */
static int *switch_of(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
		return &pool->reuse[0];
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
		return &pool->reuse[1];
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		return &pool->reuse[2];
	default:
		return NULL;
	}
}

static u64 *number_of(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return &pool->threshold;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		return &pool->reserved_bytes;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return &pool->reserved_high;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return &pool->used_bytes;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return &pool->used_high;
	default:
		return NULL;
	}
}

static CUresult attribute_get(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	if (!sim_handle_known(&sim.pools, pool) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_capture_allows_unsafe())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (switch_of(pool, attribute))
		*(int *)value = *switch_of(pool, attribute);
	else if (number_of(pool, attribute))
		*(cuuint64_t *)value = *number_of(pool, attribute);
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* The threshold and the switches can be set to anything, the high water marks to zero. */
static CUresult attribute_set(CUmemoryPool pool, CUmemPool_attribute attribute, const void *value)
{
	if (!sim_handle_known(&sim.pools, pool) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	if (switch_of(pool, attribute))
		*switch_of(pool, attribute) = *(const int *)value;
	else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		pool->threshold = *(const cuuint64_t *)value;
	else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && *(const cuuint64_t *)value == 0)
		pool->reserved_high = pool->reserved_bytes;
	else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH && *(const cuuint64_t *)value == 0)
		pool->used_high = pool->used_bytes;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult pool_trim(CUmemoryPool pool, u64 keep_bytes)
{
	if (!sim_handle_known(&sim.pools, pool))
		return CUDA_ERROR_INVALID_VALUE;
	sim_pool_trim(pool, keep_bytes);
	return CUDA_SUCCESS;
}

static CUresult device_pool(CUmemoryPool *out, CUdevice ordinal, bool standard)
{
	struct sim_device *dev = sim_device_get(ordinal);

	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = standard ? dev->default_pool : dev->pool;
	return CUDA_SUCCESS;
}

static CUresult device_set_pool(CUdevice ordinal, CUmemoryPool pool)
{
	struct sim_device *dev = sim_device_get(ordinal);

	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!sim_handle_known(&sim.pools, pool) || pool->dev != dev || pool->imported)
		return CUDA_ERROR_INVALID_VALUE;
	dev->pool = pool;
	return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 13000
/* Pools by place and type: only those of device memory are simulated. */
static CUresult place_check(const CUmemLocation *location, CUmemAllocationType type)
{
	if (!location)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_ALLOCATION_TYPE_PINNED || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

static CUresult place_pool(
	CUmemoryPool *out, const CUmemLocation *location, CUmemAllocationType type, bool standard)
{
	CUresult result = place_check(location, type);

	return result == CUDA_SUCCESS ? device_pool(out, location->id, standard) : result;
}

static CUresult place_set_pool(
	const CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	CUresult result = place_check(location, type);

	return result == CUDA_SUCCESS ? device_set_pool(location->id, pool) : result;
}

CUresult cuMemGetDefaultMemPool(
	CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
	return SIM_CALL(NEED_INIT, place_pool(pool_out, location, type, true));
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	return SIM_CALL(NEED_INIT, place_pool(pool, location, type, false));
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	return SIM_CALL(NEED_INIT, place_set_pool(location, type, pool));
}
#endif

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	return SIM_ALLOC(CUSIM_POOL, alloc_async(ctx, dptr, bytesize, ctx->dev->pool, hStream));
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	return SIM_ALLOC(CUSIM_POOL, alloc_async(ctx, dptr, bytesize, ctx->dev->pool, hStream));
}

CUresult cuMemAllocFromPoolAsync(
	CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	return SIM_CALL_THEN(NEED_CONTEXT, alloc_async(ctx, dptr, bytesize, pool, hStream),
		if (result != CUDA_SUCCESS) from_pool_failed(ctx, pool));
}

CUresult cuMemAllocFromPoolAsync_ptsz(
	CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	return SIM_CALL_THEN(NEED_CONTEXT, alloc_async(ctx, dptr, bytesize, pool, hStream),
		if (result != CUDA_SUCCESS) from_pool_failed(ctx, pool));
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	return SIM_CALL(NEED_INIT, pool_create(pool, poolProps));
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	return SIM_CALL(NEED_INIT, pool_destroy(pool));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	return SIM_CALL(NEED_INIT, pool_trim(pool, minBytesToKeep));
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	return SIM_CALL(NEED_INIT, attribute_get(pool, attr, value));
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	return SIM_CALL(NEED_INIT, attribute_set(pool, attr, value));
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	return SIM_CALL(NEED_INIT, device_pool(pool_out, dev, true));
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	return SIM_CALL(NEED_INIT, device_pool(pool, dev, false));
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	return SIM_CALL(NEED_INIT, device_set_pool(dev, pool));
}
