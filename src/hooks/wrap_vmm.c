#include "hooks/wrap.h"

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
	unsigned long long flags)
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

/* Host and NUMA locations are of no device, whatever their id says. */
static int device_of(const CUmemLocation *location)
{
	return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : -1;
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
	unsigned long long flags)
{
	FORWARD(cuMemCreate, handle, size, prop, flags);
	event_handle_create(&call, OUT(handle), size, prop ? device_of(&prop->location) : -1,
		prop ? prop->location.type : 0);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
	FORWARD(cuMemRelease, handle);
	event_handle_release(&call, handle);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
	unsigned long long flags)
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

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	FORWARD(cuMemSetAccess, ptr, size, desc, count);
	for (size_t i = 0; !call.result && i < count; i++)
		event_access(&call, ptr, size, device_of(&desc[i].location), desc[i].flags);
	return LEAVE();
}
