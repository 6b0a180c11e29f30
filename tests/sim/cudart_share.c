/* IPC handles, managed memory on the move. */
#include "cudart.h"

#include <string.h>

#define ADDRESS(p) ((CUdeviceptr)(uintptr_t)(p))

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "the same");

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr)
{
	return RT_CALL(cuIpcGetMemHandle, (CUipcMemHandle *)handle, ADDRESS(devPtr));
}

cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle, unsigned int flags)
{
	CUipcMemHandle same;

	memcpy(&same, &handle, sizeof(same));
	return RT_CALL(cuIpcOpenMemHandle, (CUdeviceptr *)devPtr, same, flags);
}

cudaError_t cudaIpcCloseMemHandle(void *devPtr)
{
	return RT_CALL(cuIpcCloseMemHandle, ADDRESS(devPtr));
}

/* The interface changed with version 13. */
#if CUDART_VERSION >= 13000
static CUmemLocation place(struct cudaMemLocation location)
{
	return (CUmemLocation){.type = (CUmemLocationType)location.type, .id = location.id};
}

cudaError_t cudaMemPrefetchAsync(const void *devPtr, size_t count, struct cudaMemLocation location,
	unsigned int flags, cudaStream_t stream)
{
	return RT_CALL(cuMemPrefetchAsync, ADDRESS(devPtr), count, place(location), flags, stream);
}

cudaError_t cudaMemPrefetchAsync_ptsz(const void *devPtr, size_t count,
	struct cudaMemLocation location, unsigned int flags, cudaStream_t stream)
{
	return RT_CALL(
		cuMemPrefetchAsync_pt, ADDRESS(devPtr), count, place(location), flags, stream);
}

cudaError_t cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
	struct cudaMemLocation location)
{
	return RT_CALL(cuMemAdvise, ADDRESS(devPtr), count, (CUmem_advise)advice, place(location));
}
#else
cudaError_t cudaMemPrefetchAsync(
	const void *devPtr, size_t count, int dstDevice, cudaStream_t stream)
{
	return RT_CALL(cuMemPrefetchAsync, ADDRESS(devPtr), count, dstDevice, stream);
}

cudaError_t cudaMemPrefetchAsync_ptsz(
	const void *devPtr, size_t count, int dstDevice, cudaStream_t stream)
{
	return RT_CALL(cuMemPrefetchAsync_pt, ADDRESS(devPtr), count, dstDevice, stream);
}

cudaError_t cudaMemAdvise(
	const void *devPtr, size_t count, enum cudaMemoryAdvise advice, int device)
{
	return RT_CALL(cuMemAdvise, ADDRESS(devPtr), count, (CUmem_advise)advice, device);
}
#endif
