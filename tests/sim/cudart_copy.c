/* Copies and memory sets. */
#include "cudart.h"

#define ADDRESS(p) ((CUdeviceptr)(uintptr_t)(p))

/* An explicit kind picks the entry point of that direction; the others leave it to the driver to
 * find out. */
#define COPY_BY_KIND(twin)                                                                         \
	switch (kind) {                                                                            \
	case cudaMemcpyHostToDevice:                                                               \
		return RT_CALL(cuMemcpyHtoD##twin, ADDRESS(dst), src, count);                      \
	case cudaMemcpyDeviceToHost:                                                               \
		return RT_CALL(cuMemcpyDtoH##twin, dst, ADDRESS(src), count);                      \
	case cudaMemcpyDeviceToDevice:                                                             \
		return RT_CALL(cuMemcpyDtoD##twin, ADDRESS(dst), ADDRESS(src), count);             \
	case cudaMemcpyHostToHost:                                                                 \
	case cudaMemcpyDefault:                                                                    \
		return RT_CALL(cuMemcpy##twin, ADDRESS(dst), ADDRESS(src), count);                 \
	}                                                                                          \
	return rt_result(cudaErrorInvalidMemcpyDirection)

#define COPY_ASYNC_BY_KIND(twin)                                                                   \
	switch (kind) {                                                                            \
	case cudaMemcpyHostToDevice:                                                               \
		return RT_CALL(cuMemcpyHtoDAsync##twin, ADDRESS(dst), src, count, stream);         \
	case cudaMemcpyDeviceToHost:                                                               \
		return RT_CALL(cuMemcpyDtoHAsync##twin, dst, ADDRESS(src), count, stream);         \
	case cudaMemcpyDeviceToDevice:                                                             \
		return RT_CALL(                                                                    \
			cuMemcpyDtoDAsync##twin, ADDRESS(dst), ADDRESS(src), count, stream);       \
	case cudaMemcpyHostToHost:                                                                 \
	case cudaMemcpyDefault:                                                                    \
		return RT_CALL(cuMemcpyAsync##twin, ADDRESS(dst), ADDRESS(src), count, stream);    \
	}                                                                                          \
	return rt_result(cudaErrorInvalidMemcpyDirection)

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	COPY_BY_KIND();
}

cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	COPY_BY_KIND(_pt);
}

cudaError_t cudaMemcpyAsync(
	void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	COPY_ASYNC_BY_KIND();
}

cudaError_t cudaMemcpyAsync_ptsz(
	void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	COPY_ASYNC_BY_KIND(_pt);
}

cudaError_t cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice, size_t count)
{
	CUcontext from, to;

	if (rt_start() != cudaSuccess)
		return rt_result(rt_start());
	from = rt_primary(srcDevice);
	to = rt_primary(dstDevice);
	return from && to ? RT_CALL(cuMemcpyPeer, ADDRESS(dst), to, ADDRESS(src), from, count)
			  : rt_result(cudaErrorInvalidDevice);
}

cudaError_t cudaMemcpyPeerAsync(
	void *dst, int dstDevice, const void *src, int srcDevice, size_t count, cudaStream_t stream)
{
	CUcontext from, to;

	if (rt_start() != cudaSuccess)
		return rt_result(rt_start());
	from = rt_primary(srcDevice);
	to = rt_primary(dstDevice);
	return from && to ? RT_CALL(cuMemcpyPeerAsync, ADDRESS(dst), to, ADDRESS(src), from, count,
				    stream)
			  : rt_result(cudaErrorInvalidDevice);
}

cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
	return RT_CALL(cuMemsetD8, ADDRESS(devPtr), (unsigned char)value, count);
}

cudaError_t cudaMemset_ptds(void *devPtr, int value, size_t count)
{
	return RT_CALL(cuMemsetD8_pt, ADDRESS(devPtr), (unsigned char)value, count);
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
	return RT_CALL(cuMemsetD8Async, ADDRESS(devPtr), (unsigned char)value, count, stream);
}

cudaError_t cudaMemsetAsync_ptsz(void *devPtr, int value, size_t count, cudaStream_t stream)
{
	return RT_CALL(cuMemsetD8Async_pt, ADDRESS(devPtr), (unsigned char)value, count, stream);
}

cudaError_t cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height)
{
	return RT_CALL(cuMemsetD2D8, ADDRESS(devPtr), pitch, (unsigned char)value, width, height);
}

cudaError_t cudaMemset2D_ptds(void *devPtr, size_t pitch, int value, size_t width, size_t height)
{
	return RT_CALL(
		cuMemsetD2D8_pt, ADDRESS(devPtr), pitch, (unsigned char)value, width, height);
}

cudaError_t cudaMemset2DAsync(
	void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
	return RT_CALL(cuMemsetD2D8Async, ADDRESS(devPtr), pitch, (unsigned char)value, width,
		height, stream);
}

cudaError_t cudaMemset2DAsync_ptsz(
	void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
	return RT_CALL(cuMemsetD2D8Async_pt, ADDRESS(devPtr), pitch, (unsigned char)value, width,
		height, stream);
}
