#include "hooks/wrap.h"

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	FORWARD(cuMemAllocAsync, dptr, bytesize, hStream);
	event_alloc(&call, VT_KIND_POOL, OUT(dptr), bytesize, ADDRESS(hStream), 0);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	FORWARD(cuMemAllocAsync_ptsz, dptr, bytesize, hStream);
	event_alloc(&call, VT_KIND_POOL, OUT(dptr), bytesize, ADDRESS(hStream), 0);
	return LEAVE_SAMPLED();
}

/* The memory is where the pool is, whatever context is current. */
static void note_from_pool(struct call *call, uint64_t address, uint64_t bytes, CUmemoryPool pool, CUstream stream)
{
	call->device = contexts_device_of_pool(pool);
	event_alloc(call, VT_KIND_POOL, address, bytes, ADDRESS(stream), ADDRESS(pool));
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	FORWARD(cuMemAllocFromPoolAsync, dptr, bytesize, pool, hStream);
	note_from_pool(&call, OUT(dptr), bytesize, pool, hStream);
	return LEAVE();
}

CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	FORWARD(cuMemAllocFromPoolAsync_ptsz, dptr, bytesize, pool, hStream);
	note_from_pool(&call, OUT(dptr), bytesize, pool, hStream);
	return LEAVE();
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	FORWARD(cuMemFreeAsync, dptr, hStream);
	event_free(&call, VT_KIND_POOL, dptr, ADDRESS(hStream));
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
	FORWARD(cuMemFreeAsync_ptsz, dptr, hStream);
	event_free(&call, VT_KIND_POOL, dptr, ADDRESS(hStream));
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	FORWARD(cuMemPoolCreate, pool, poolProps);
	if (!call.result && pool && poolProps && poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		contexts_add_pool(*pool, poolProps->location.id);
	return LEAVE();
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
	FORWARD(cuMemPoolDestroy, pool);
	if (!call.result)
		contexts_remove_pool(pool);
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
