#include "hooks/wrap.h"
#include "record/notes.h"

CUresult CUDAAPI cuMemAddressReserve(
	CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	FORWARD(cuMemAddressReserve, ptr, size, alignment, addr, flags);
	event_reserve(&call, OUT(ptr), size);
	return LEAVE();
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	FORWARD(cuMemAddressFree, ptr, size);
	event_unreserve(&call, ptr, size);
	return LEAVE();
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	FORWARD(cuMemCreate, handle, size, prop, flags);
	event_handle_create(&call, OUT(handle), size, prop ? wrap_device_of(&prop->location) : -1,
		prop ? prop->location.type : 0, VT_SHARING_OWN);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
	FORWARD(cuMemRelease, handle);
	event_handle_release(&call, handle);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	FORWARD(cuMemMap, ptr, size, offset, handle, flags);
	event_map(&call, ptr, size, offset, handle);
	return LEAVE();
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	FORWARD(cuMemUnmap, ptr, size);
	event_unmap(&call, ptr, size);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemSetAccess(
	CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	FORWARD(cuMemSetAccess, ptr, size, desc, count);
	for (size_t i = 0; !call.result && i < count; i++)
		event_access(&call, ptr, size, wrap_device_of(&desc[i].location), desc[i].flags);
	return LEAVE();
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	FORWARD(cuMemRetainAllocationHandle, handle, addr);
	event_handle_retain(&call, OUT(handle), ADDRESS(addr));
	return LEAVE();
}

/* Neither the device nor the size is told; both belong to whoever made the memory. */
CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
	void *osHandle, CUmemAllocationHandleType shHandleType)
{
	FORWARD(cuMemImportFromShareableHandle, handle, osHandle, shHandleType);
	event_handle_create(&call, OUT(handle), 0, -1, 0, VT_SHARING_IMPORTED);
	return LEAVE();
}

#if CUDA_VERSION >= 12010
CUresult CUDAAPI cuMulticastCreate(
	CUmemGenericAllocationHandle *mcHandle, const CUmulticastObjectProp *prop)
{
	FORWARD(cuMulticastCreate, mcHandle, prop);
	event_handle_create(
		&call, OUT(mcHandle), prop ? prop->size : 0, -1, 0, VT_SHARING_MULTICAST);
	return LEAVE();
}
#endif

/* The descriptors name tiles, not bytes, and an unmapping does not name the memory: what such a
 * mapping keeps alive cannot be followed, and the report says so. */
CUresult CUDAAPI cuMemMapArrayAsync(
	CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream)
{
	FORWARD(cuMemMapArrayAsync, mapInfoList, count, hStream);
	if (!call.result)
		notes_say(NOTE_SPARSE);
	return LEAVE();
}

CUresult CUDAAPI cuMemMapArrayAsync_ptsz(
	CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream)
{
	FORWARD(cuMemMapArrayAsync_ptsz, mapInfoList, count, hStream);
	if (!call.result)
		notes_say(NOTE_SPARSE);
	return LEAVE();
}
