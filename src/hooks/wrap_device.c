#include "hooks/wrap.h"

CUresult CUDAAPI cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
	FORWARD(cuMemAlloc, dptr, bytesize);
	event_alloc(&call, VT_KIND_LINEAR, OUT(dptr), bytesize, 0, 0);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	FORWARD(cuMemAlloc_v2, dptr, bytesize);
	event_alloc(&call, VT_KIND_LINEAR, OUT(dptr), bytesize, 0, 0);
	return LEAVE_SAMPLED();
}

/* What was asked for is known only once the driver has chosen the pitch. */
static uint64_t pitched_bytes(
	const struct call *call, uint64_t pitch, uint64_t width, uint64_t height)
{
	return (call->result ? width : pitch) * height;
}

CUresult CUDAAPI cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch,
	unsigned int WidthInBytes, unsigned int Height, unsigned int ElementSizeBytes)
{
	FORWARD(cuMemAllocPitch, dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
	event_alloc(&call, VT_KIND_LINEAR, OUT(dptr),
		pitched_bytes(&call, OUT(pPitch), WidthInBytes, Height), 0, 0);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
	size_t Height, unsigned int ElementSizeBytes)
{
	FORWARD(cuMemAllocPitch_v2, dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
	event_alloc(&call, VT_KIND_LINEAR, OUT(dptr),
		pitched_bytes(&call, OUT(pPitch), WidthInBytes, Height), 0, 0);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	FORWARD(cuMemAllocManaged, dptr, bytesize, flags);
	event_alloc(&call, VT_KIND_MANAGED, OUT(dptr), bytesize, 0, 0);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemFree(CUdeviceptr_v1 dptr)
{
	FORWARD(cuMemFree, dptr);
	event_free(&call, VT_KIND_LINEAR, dptr, 0);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr dptr)
{
	FORWARD(cuMemFree_v2, dptr);
	event_free(&call, VT_KIND_LINEAR, dptr, 0);
	return LEAVE_SAMPLED();
}
