/* Arrays, and copies of rectangles and boxes. */
#include "cudart.h"

#include <stdbool.h>
#include <string.h>

#define ADDRESS(p) ((CUdeviceptr)(uintptr_t)(p))

/* The format of an element; false: there is no such one. */
static bool format_of(
	const struct cudaChannelFormatDesc *d, CUarray_format *format, unsigned int *n_channels)
{
	static const CUarray_format formats[3][3] = {
		{CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT32},
		{CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16,
			CU_AD_FORMAT_UNSIGNED_INT32},
		{0, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT}};
	int size = d->x == 8 ? 0 : d->x == 16 ? 1 : d->x == 32 ? 2 : -1;

	if (size < 0 || (unsigned int)d->f > cudaChannelFormatKindFloat)
		return false;
	*format = formats[d->f][size];
	*n_channels = d->w ? 4 : d->z ? 3 : d->y ? 2 : 1;
	return *format;
}

static bool describe(const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
	unsigned int flags, CUDA_ARRAY3D_DESCRIPTOR *out)
{
	memset(out, 0, sizeof(*out));
	out->Width = extent.width;
	out->Height = extent.height;
	out->Depth = extent.depth;
	out->Flags = flags;
	return desc && format_of(desc, &out->Format, &out->NumChannels);
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
	size_t width, size_t height, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUDA_ARRAY_DESCRIPTOR plain;

	if (!describe(desc, (struct cudaExtent){width, height, 0}, flags, &d))
		return rt_result(cudaErrorInvalidValue);
	plain = (CUDA_ARRAY_DESCRIPTOR){d.Width, d.Height, d.Format, d.NumChannels};
	return flags ? RT_CALL(cuArray3DCreate, (CUarray *)array, &d)
		     : RT_CALL(cuArrayCreate, (CUarray *)array, &plain);
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
	struct cudaExtent extent, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR d;

	return describe(desc, extent, flags, &d) ? RT_CALL(cuArray3DCreate, (CUarray *)array, &d)
						 : rt_result(cudaErrorInvalidValue);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmappedArray,
	const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned int numLevels,
	unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR d;

	return describe(desc, extent, flags, &d)
		       ? RT_CALL(cuMipmappedArrayCreate, (CUmipmappedArray *)mipmappedArray, &d,
				 numLevels)
		       : rt_result(cudaErrorInvalidValue);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
	return array ? RT_CALL(cuArrayDestroy, (CUarray)array) : rt_result(rt_enter());
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray)
{
	return mipmappedArray ? RT_CALL(cuMipmappedArrayDestroy, (CUmipmappedArray)mipmappedArray)
			      : rt_result(rt_enter());
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
	size_t pitch = 0;
	void *p = NULL;
	cudaError_t error = pitchedDevPtr ? cudaMallocPitch(&p, &pitch, extent.width,
						    extent.height * extent.depth)
					  : rt_result(cudaErrorInvalidValue);

	if (error == cudaSuccess)
		*pitchedDevPtr = (struct cudaPitchedPtr){p, pitch, extent.width, extent.height};
	return error;
}

/* The memory types that a kind of copy promises; false: there is no such kind. */
static bool types_of(enum cudaMemcpyKind kind, CUmemorytype *dst, CUmemorytype *src)
{
	bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
	bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;

	*dst = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	*src = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	if (kind == cudaMemcpyDefault)
		*dst = *src = CU_MEMORYTYPE_UNIFIED;
	return (unsigned int)kind <= cudaMemcpyDefault;
}

struct plane { /* memory, or an array if there is one */
	void *p;
	size_t pitch;
	CUarray array;
	size_t x, y;
};

static bool rectangle(const struct plane *dst, const struct plane *src, size_t width, size_t height,
	enum cudaMemcpyKind kind, CUDA_MEMCPY2D *out)
{
	memset(out, 0, sizeof(*out));
	if (!types_of(kind, &out->dstMemoryType, &out->srcMemoryType))
		return false;
	out->dstHost = dst->p;
	out->dstDevice = ADDRESS(dst->p);
	out->dstPitch = dst->pitch;
	out->dstArray = dst->array;
	out->dstXInBytes = dst->x;
	out->dstY = dst->y;
	out->srcHost = src->p;
	out->srcDevice = ADDRESS(src->p);
	out->srcPitch = src->pitch;
	out->srcArray = src->array;
	out->srcXInBytes = src->x;
	out->srcY = src->y;
	if (dst->array)
		out->dstMemoryType = CU_MEMORYTYPE_ARRAY;
	if (src->array)
		out->srcMemoryType = CU_MEMORYTYPE_ARRAY;
	out->WidthInBytes = width;
	out->Height = height;
	return true;
}

/* One call of the driver for a rectangle; the arguments after its name are those of the call. */
#define COPY_2D(field, to, from, ...)                                                              \
	CUDA_MEMCPY2D c;                                                                           \
                                                                                                   \
	return rectangle(&(to), &(from), width, height, kind, &c)                                  \
		       ? RT_CALL(field, &c __VA_OPT__(, ) __VA_ARGS__)                             \
		       : rt_result(cudaErrorInvalidMemcpyDirection)
#define TO_MEMORY   ((struct plane){.p = dst, .pitch = dpitch})
#define FROM_MEMORY ((struct plane){.p = (void *)(uintptr_t)src, .pitch = spitch})
#define TO_ARRAY    ((struct plane){.array = (CUarray)dst, .x = wOffset, .y = hOffset})
#define FROM_ARRAY  ((struct plane){.array = (CUarray)(uintptr_t)src, .x = wOffset, .y = hOffset})

/* Each call has a twin for the per-thread default stream. */
#define MEMORY_2D(name, field)                                                                     \
	cudaError_t name(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,   \
		size_t height, enum cudaMemcpyKind kind)                                           \
	{                                                                                          \
		COPY_2D(field, TO_MEMORY, FROM_MEMORY);                                            \
	}
#define MEMORY_2D_ASYNC(name, field)                                                               \
	cudaError_t name(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,   \
		size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)                      \
	{                                                                                          \
		COPY_2D(field, TO_MEMORY, FROM_MEMORY, stream);                                    \
	}
#define TO_ARRAY_2D(name, field)                                                                   \
	cudaError_t name(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src,         \
		size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind)              \
	{                                                                                          \
		COPY_2D(field, TO_ARRAY, FROM_MEMORY);                                             \
	}
#define TO_ARRAY_2D_ASYNC(name, field)                                                             \
	cudaError_t name(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src,         \
		size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind,              \
		cudaStream_t stream)                                                               \
	{                                                                                          \
		COPY_2D(field, TO_ARRAY, FROM_MEMORY, stream);                                     \
	}
#define FROM_ARRAY_2D(name, field)                                                                 \
	cudaError_t name(void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset,          \
		size_t hOffset, size_t width, size_t height, enum cudaMemcpyKind kind)             \
	{                                                                                          \
		COPY_2D(field, TO_MEMORY, FROM_ARRAY);                                             \
	}
#define FROM_ARRAY_2D_ASYNC(name, field)                                                           \
	cudaError_t name(void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset,          \
		size_t hOffset, size_t width, size_t height, enum cudaMemcpyKind kind,             \
		cudaStream_t stream)                                                               \
	{                                                                                          \
		COPY_2D(field, TO_MEMORY, FROM_ARRAY, stream);                                     \
	}

MEMORY_2D(cudaMemcpy2D, cuMemcpy2D)
MEMORY_2D(cudaMemcpy2D_ptds, cuMemcpy2D_pt)
MEMORY_2D_ASYNC(cudaMemcpy2DAsync, cuMemcpy2DAsync)
MEMORY_2D_ASYNC(cudaMemcpy2DAsync_ptsz, cuMemcpy2DAsync_pt)
TO_ARRAY_2D(cudaMemcpy2DToArray, cuMemcpy2D)
TO_ARRAY_2D(cudaMemcpy2DToArray_ptds, cuMemcpy2D_pt)
TO_ARRAY_2D_ASYNC(cudaMemcpy2DToArrayAsync, cuMemcpy2DAsync)
TO_ARRAY_2D_ASYNC(cudaMemcpy2DToArrayAsync_ptsz, cuMemcpy2DAsync_pt)
FROM_ARRAY_2D(cudaMemcpy2DFromArray, cuMemcpy2D)
FROM_ARRAY_2D(cudaMemcpy2DFromArray_ptds, cuMemcpy2D_pt)
FROM_ARRAY_2D_ASYNC(cudaMemcpy2DFromArrayAsync, cuMemcpy2DAsync)
FROM_ARRAY_2D_ASYNC(cudaMemcpy2DFromArrayAsync_ptsz, cuMemcpy2DAsync_pt)

/* Bytes of an element of an array, which widths and positions are counted in; 1 of memory. */
static size_t element_of(cudaArray_t array)
{
	CUDA_ARRAY3D_DESCRIPTOR d;

	if (!array || rt_driver.cuArray3DGetDescriptor(&d, (CUarray)array) != CUDA_SUCCESS)
		return 1;
	switch (d.Format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return d.NumChannels;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4 * d.NumChannels;
	default:
		return 2 * d.NumChannels;
	}
}

static cudaError_t box(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out)
{
	cudaError_t error = p ? rt_enter() : cudaErrorInvalidValue;
	size_t element;

	memset(out, 0, sizeof(*out));
	if (error != cudaSuccess)
		return error;
	if (!types_of(p->kind, &out->dstMemoryType, &out->srcMemoryType))
		return cudaErrorInvalidMemcpyDirection;
	if (!p->dstArray == !p->dstPtr.ptr || !p->srcArray == !p->srcPtr.ptr)
		return cudaErrorInvalidValue;
	element = element_of(p->dstArray ? p->dstArray : p->srcArray);
	out->dstArray = (CUarray)p->dstArray;
	out->dstHost = p->dstPtr.ptr;
	out->dstDevice = ADDRESS(p->dstPtr.ptr);
	out->dstPitch = p->dstPtr.pitch;
	out->dstHeight = p->dstPtr.ysize;
	out->dstXInBytes = p->dstPos.x * element;
	out->dstY = p->dstPos.y;
	out->dstZ = p->dstPos.z;
	out->srcArray = (CUarray)p->srcArray;
	out->srcHost = p->srcPtr.ptr;
	out->srcDevice = ADDRESS(p->srcPtr.ptr);
	out->srcPitch = p->srcPtr.pitch;
	out->srcHeight = p->srcPtr.ysize;
	out->srcXInBytes = p->srcPos.x * element;
	out->srcY = p->srcPos.y;
	out->srcZ = p->srcPos.z;
	if (p->dstArray)
		out->dstMemoryType = CU_MEMORYTYPE_ARRAY;
	if (p->srcArray)
		out->srcMemoryType = CU_MEMORYTYPE_ARRAY;
	out->WidthInBytes = p->extent.width * element;
	out->Height = p->extent.height;
	out->Depth = p->extent.depth;
	return cudaSuccess;
}

#define BOX(name, field)                                                                           \
	cudaError_t name(const struct cudaMemcpy3DParms *p)                                        \
	{                                                                                          \
		CUDA_MEMCPY3D c;                                                                   \
		cudaError_t error = box(p, &c);                                                    \
                                                                                                   \
		return error == cudaSuccess ? RT_CALL(field, &c) : rt_result(error);               \
	}
#define BOX_ASYNC(name, field)                                                                     \
	cudaError_t name(const struct cudaMemcpy3DParms *p, cudaStream_t stream)                   \
	{                                                                                          \
		CUDA_MEMCPY3D c;                                                                   \
		cudaError_t error = box(p, &c);                                                    \
                                                                                                   \
		return error == cudaSuccess ? RT_CALL(field, &c, stream) : rt_result(error);       \
	}

BOX(cudaMemcpy3D, cuMemcpy3D)
BOX(cudaMemcpy3D_ptds, cuMemcpy3D_pt)
BOX_ASYNC(cudaMemcpy3DAsync, cuMemcpy3DAsync)
BOX_ASYNC(cudaMemcpy3DAsync_ptsz, cuMemcpy3DAsync_pt)
