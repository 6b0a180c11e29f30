/* Memory and pools. */
#include "cudart.h"

#include <string.h>

#define ADDRESS(p) ((CUdeviceptr)(uintptr_t)(p))

/* Asks for no bytes: an address of nothing, without a call of the driver. */
static cudaError_t nothing(void **out)
{
	cudaError_t error = rt_enter();

	*out = NULL;
	return rt_result(error);
}

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
	if (!devPtr)
		return rt_result(cudaErrorInvalidValue);
	return size ? RT_CALL(cuMemAlloc, (CUdeviceptr *)devPtr, size) : nothing(devPtr);
}

cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
	return RT_CALL(cuMemAllocPitch, (CUdeviceptr *)devPtr, pitch, width, height, 4);
}

cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
	return RT_CALL(cuMemAllocManaged, (CUdeviceptr *)devPtr, size, flags);
}

static cudaError_t host_alloc(void **out, size_t size, unsigned int flags)
{
	if (!out)
		return rt_result(cudaErrorInvalidValue);
	return size ? RT_CALL(cuMemHostAlloc, out, size, flags) : nothing(out);
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	return host_alloc(ptr, size, 0);
}

cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
	return host_alloc(pHost, size, flags);
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	return RT_CALL(cuMemHostRegister, ptr, size, flags);
}

cudaError_t cudaHostUnregister(void *ptr)
{
	return RT_CALL(cuMemHostUnregister, ptr);
}

cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
	return RT_CALL(cuMemHostGetDevicePointer, (CUdeviceptr *)pDevice, pHost, flags);
}

cudaError_t cudaFree(void *devPtr)
{
	return RT_CALL(cuMemFree, ADDRESS(devPtr));
}

cudaError_t cudaFreeHost(void *ptr)
{
	return ptr ? RT_CALL(cuMemFreeHost, ptr) : nothing(&ptr);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
	return RT_CALL(cuMemGetInfo, free, total);
}

/* Each call with a stream has a twin for the per-thread default stream. */
cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
	return RT_CALL(cuMemAllocAsync, (CUdeviceptr *)devPtr, size, hStream);
}

cudaError_t cudaMallocAsync_ptsz(void **devPtr, size_t size, cudaStream_t hStream)
{
	return RT_CALL(cuMemAllocAsync_pt, (CUdeviceptr *)devPtr, size, hStream);
}

cudaError_t cudaMallocFromPoolAsync(
	void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream)
{
	return RT_CALL(cuMemAllocFromPoolAsync, (CUdeviceptr *)ptr, size, memPool, stream);
}

cudaError_t cudaMallocFromPoolAsync_ptsz(
	void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream)
{
	return RT_CALL(cuMemAllocFromPoolAsync_pt, (CUdeviceptr *)ptr, size, memPool, stream);
}

cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
	return RT_CALL(cuMemFreeAsync, ADDRESS(devPtr), hStream);
}

cudaError_t cudaFreeAsync_ptsz(void *devPtr, cudaStream_t hStream)
{
	return RT_CALL(cuMemFreeAsync_pt, ADDRESS(devPtr), hStream);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device)
{
	return RT_CALL(cuDeviceGetDefaultMemPool, memPool, device);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device)
{
	return RT_CALL(cuDeviceGetMemPool, memPool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool)
{
	return RT_CALL(cuDeviceSetMemPool, device, memPool);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *memPool, const struct cudaMemPoolProps *poolProps)
{
	CUmemPoolProps props = {0};

	if (!poolProps)
		return rt_result(cudaErrorInvalidValue);
	props.allocType = (CUmemAllocationType)poolProps->allocType;
	props.handleTypes = (CUmemAllocationHandleType)poolProps->handleTypes;
	props.location.type = (CUmemLocationType)poolProps->location.type;
	props.location.id = poolProps->location.id;
	return RT_CALL(cuMemPoolCreate, memPool, &props);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool)
{
	return RT_CALL(cuMemPoolDestroy, memPool);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep)
{
	return RT_CALL(cuMemPoolTrimTo, memPool, minBytesToKeep);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value)
{
	return RT_CALL(cuMemPoolGetAttribute, memPool, (CUmemPool_attribute)attr, value);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value)
{
	return RT_CALL(cuMemPoolSetAttribute, memPool, (CUmemPool_attribute)attr, value);
}

/* What the driver does not know is ordinary host memory, and no error. */
static cudaError_t pointer_attributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
	CUmemorytype type;
	unsigned int is_managed = 0;
	cudaError_t error = attributes ? rt_enter() : cudaErrorInvalidValue;

	if (error != cudaSuccess)
		return error;
	memset(attributes, 0, sizeof(*attributes));
	attributes->type = cudaMemoryTypeUnregistered;
	attributes->device = -2;
	attributes->hostPointer = (void *)(uintptr_t)ptr;
	if (rt_driver.cuPointerGetAttribute(
		    &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ADDRESS(ptr)) != CUDA_SUCCESS)
		return cudaSuccess;
	rt_driver.cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, ADDRESS(ptr));
	rt_driver.cuPointerGetAttribute(
		&attributes->device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ADDRESS(ptr));
	attributes->devicePointer = (void *)(uintptr_t)ptr;
	if (is_managed) {
		attributes->type = cudaMemoryTypeManaged;
	} else if (type == CU_MEMORYTYPE_HOST) {
		attributes->type = cudaMemoryTypeHost;
	} else {
		attributes->type = cudaMemoryTypeDevice;
		attributes->hostPointer = NULL;
	}
	return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
	return rt_result(pointer_attributes(attributes, ptr));
}
