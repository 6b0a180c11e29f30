#include "hooks/wrap.h"

/*
 * Bytes of another process or API that become visible here. They are recorded so that copies to and
 * from them are understood, and never counted: their owner does that. Where the call does not tell
 * how many there are, 0 stands for "not known".
 */

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	FORWARD(cuIpcOpenMemHandle, pdptr, handle, Flags);
	event_alloc(&call, VT_KIND_SHARED, OUT(pdptr), 0, 0, 0);
	return LEAVE();
}

CUresult CUDAAPI cuIpcOpenMemHandle_v2(
	CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	FORWARD(cuIpcOpenMemHandle_v2, pdptr, handle, Flags);
	event_alloc(&call, VT_KIND_SHARED, OUT(pdptr), 0, 0, 0);
	return LEAVE();
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	FORWARD(cuIpcCloseMemHandle, dptr);
	event_free(&call, VT_KIND_SHARED, dptr, 0);
	return LEAVE();
}

/* Given back with cuMemFree. */
CUresult CUDAAPI cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
	const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc)
{
	FORWARD(cuExternalMemoryGetMappedBuffer, devPtr, extMem, bufferDesc);
	event_alloc(&call, VT_KIND_SHARED, OUT(devPtr), bufferDesc ? bufferDesc->size : 0, 0, 0);
	return LEAVE();
}

static void note_mapped(
	const struct call *call, CUgraphicsResource resource, uint64_t address, uint64_t bytes)
{
	if (!call->result)
		contexts_add_mapped(resource, address);
	event_alloc(call, VT_KIND_SHARED, address, bytes, 0, 0);
}

CUresult CUDAAPI cuGraphicsResourceGetMappedPointer(
	CUdeviceptr_v1 *pDevPtr, unsigned int *pSize, CUgraphicsResource resource)
{
	FORWARD(cuGraphicsResourceGetMappedPointer, pDevPtr, pSize, resource);
	note_mapped(&call, resource, OUT(pDevPtr), OUT(pSize));
	return LEAVE();
}

CUresult CUDAAPI cuGraphicsResourceGetMappedPointer_v2(
	CUdeviceptr *pDevPtr, size_t *pSize, CUgraphicsResource resource)
{
	FORWARD(cuGraphicsResourceGetMappedPointer_v2, pDevPtr, pSize, resource);
	note_mapped(&call, resource, OUT(pDevPtr), OUT(pSize));
	return LEAVE();
}

/* Only resources whose address was asked for are known; those of a call that failed are not looked
 * at. */
static void note_unmapped(
	const struct call *call, unsigned int count, CUgraphicsResource *resources)
{
	if (call->result)
		event_free(call, VT_KIND_SHARED, 0, 0);
	for (unsigned int i = 0; !call->result && i < count; i++) {
		uint64_t address = contexts_take_mapped(resources[i]);

		if (address)
			event_free(call, VT_KIND_SHARED, address, 0);
	}
}

CUresult CUDAAPI cuGraphicsUnmapResources(
	unsigned int count, CUgraphicsResource *resources, CUstream hStream)
{
	FORWARD(cuGraphicsUnmapResources, count, resources, hStream);
	note_unmapped(&call, count, resources);
	return LEAVE();
}

CUresult CUDAAPI cuGraphicsUnmapResources_ptsz(
	unsigned int count, CUgraphicsResource *resources, CUstream hStream)
{
	FORWARD(cuGraphicsUnmapResources_ptsz, count, resources, hStream);
	note_unmapped(&call, count, resources);
	return LEAVE();
}
