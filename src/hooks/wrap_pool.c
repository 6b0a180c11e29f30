#include "hooks/wrap.h"

/* On a stream that is being captured, memory nodes are added to a graph and nothing is allocated
 * yet. */
static void note_alloc(
	struct call *call, uint64_t address, uint64_t bytes, CUmemoryPool pool, CUstream stream)
{
	CUgraph graph;

	if (sample_is_capturing(call, stream, &graph)) {
		event_graph_alloc(call, ADDRESS(graph), call->device, address, bytes);
		return;
	}
	event_alloc(call, VT_KIND_POOL, address, bytes, ADDRESS(stream), ADDRESS(pool));
	sample_pool(call, pool, call->device);
}

static void note_free(struct call *call, uint64_t address, CUstream stream)
{
	CUgraph graph;

	if (sample_is_capturing(call, stream, &graph)) {
		event_graph_free(call, ADDRESS(graph), address);
		return;
	}
	event_free(call, VT_KIND_POOL, address, ADDRESS(stream));
	sample_pool(call, NULL, call->device);
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	FORWARD(cuMemAllocAsync, dptr, bytesize, hStream);
	note_alloc(&call, OUT(dptr), bytesize, NULL, hStream);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	FORWARD(cuMemAllocAsync_ptsz, dptr, bytesize, hStream);
	note_alloc(&call, OUT(dptr), bytesize, NULL, hStream);
	return LEAVE_SAMPLED();
}

/* The memory is where the pool is, whatever context is current. */
CUresult CUDAAPI cuMemAllocFromPoolAsync(
	CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	FORWARD(cuMemAllocFromPoolAsync, dptr, bytesize, pool, hStream);
	call.device = contexts_device_of_pool(pool);
	note_alloc(&call, OUT(dptr), bytesize, pool, hStream);
	return LEAVE();
}

CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(
	CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	FORWARD(cuMemAllocFromPoolAsync_ptsz, dptr, bytesize, pool, hStream);
	call.device = contexts_device_of_pool(pool);
	note_alloc(&call, OUT(dptr), bytesize, pool, hStream);
	return LEAVE();
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	FORWARD(cuMemFreeAsync, dptr, hStream);
	note_free(&call, dptr, hStream);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
	FORWARD(cuMemFreeAsync_ptsz, dptr, hStream);
	note_free(&call, dptr, hStream);
	return LEAVE_SAMPLED();
}

/* 0: no limit is known. */
static uint64_t most_bytes_of(const CUmemPoolProps *properties)
{
#if CUDA_VERSION >= 12040
	return properties->maxSize;
#else
	(void)properties;
	return 0;
#endif
}

/* Pools of the host and managed pools are of no device. */
CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	int device = -1;

	FORWARD(cuMemPoolCreate, pool, poolProps);
	if (!call.result && poolProps) {
		device = wrap_device_of(&poolProps->location);
		contexts_add_pool(*pool, device);
	}
	event_pool(&call, VT_POOL_CREATE, OUT((uintptr_t *)pool), device,
		poolProps ? most_bytes_of(poolProps) : 0);
	return LEAVE();
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
	int device = contexts_device_of_pool(pool);

	sample_pool_ends(pool);
	FORWARD(cuMemPoolDestroy, pool);
	if (!call.result)
		contexts_remove_pool(pool);
	event_pool(&call, VT_POOL_DESTROY, ADDRESS(pool), device, 0);
	return LEAVE();
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	int device;

	FORWARD(cuMemPoolTrimTo, pool, minBytesToKeep);
	device = contexts_device_of_pool(pool);
	event_pool(&call, VT_POOL_TRIM, ADDRESS(pool), device, minBytesToKeep);
	sample_pool(&call, pool, device);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	FORWARD(cuMemPoolSetAttribute, pool, attr, value);
	if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD && value)
		event_pool(&call, VT_POOL_THRESHOLD, ADDRESS(pool), contexts_device_of_pool(pool),
			*(const cuuint64_t *)value);
	return LEAVE();
}

CUresult CUDAAPI cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
	CUmemAllocationHandleType handleType, unsigned long long flags)
{
	FORWARD(cuMemPoolImportFromShareableHandle, pool_out, handle, handleType, flags);
	event_pool(&call, VT_POOL_IMPORT, OUT((uintptr_t *)pool_out), -1, 0);
	return LEAVE();
}

/* An address inside another process's pool. */
CUresult CUDAAPI cuMemPoolImportPointer(
	CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
	FORWARD(cuMemPoolImportPointer, ptr_out, pool, shareData);
	event_alloc(&call, VT_KIND_SHARED, OUT(ptr_out), 0, 0, ADDRESS(pool));
	return LEAVE();
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	FORWARD(cuDeviceGetDefaultMemPool, pool_out, dev);
	if (!call.result && pool_out)
		contexts_add_pool(*pool_out, dev);
	return LEAVE();
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	FORWARD(cuDeviceGetMemPool, pool, dev);
	if (!call.result && pool)
		contexts_add_pool(*pool, dev);
	return LEAVE();
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	FORWARD(cuDeviceSetMemPool, dev, pool);
	sample_pool_changes(dev);
	event_pool(&call, VT_POOL_SET_CURRENT, ADDRESS(pool), dev, 0);
	return LEAVE();
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI cuMemGetDefaultMemPool(
	CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
	FORWARD(cuMemGetDefaultMemPool, pool_out, location, type);
	if (!call.result && pool_out && location)
		contexts_add_pool(*pool_out, wrap_device_of(location));
	return LEAVE();
}

CUresult CUDAAPI cuMemGetMemPool(
	CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	FORWARD(cuMemGetMemPool, pool, location, type);
	if (!call.result && pool && location)
		contexts_add_pool(*pool, wrap_device_of(location));
	return LEAVE();
}

CUresult CUDAAPI cuMemSetMemPool(
	CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	FORWARD(cuMemSetMemPool, location, type, pool);
	if (location)
		sample_pool_changes(wrap_device_of(location));
	event_pool(&call, VT_POOL_SET_CURRENT, ADDRESS(pool),
		location ? wrap_device_of(location) : -1, 0);
	return LEAVE();
}
#endif
