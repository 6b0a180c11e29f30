/* Arrays: opaque memory, as large as their elements. */
#include "sim.h"

static u64 element_bytes(CUarray_format format, unsigned int n_channels)
{
	u64 bytes;

	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		bytes = 1;
		break;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		bytes = 2;
		break;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		bytes = 4;
		break;
	default:
		return 0;
	}
	return n_channels == 1 || n_channels == 2 || n_channels == 4 ? bytes * n_channels : 0;
}

static CUresult create(CUcontext ctx, CUarray *out, u64 width, u64 height, u64 depth, u64 element)
{
	struct sim_range *range;
	u64 bytes = width;
	CUresult result;

	if (!out || width == 0 || element == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(bytes, element, &bytes) ||
		__builtin_mul_overflow(bytes, height ? height : 1, &bytes) ||
		__builtin_mul_overflow(bytes, depth ? depth : 1, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!sim_capture_allows_unsafe())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	result = sim_alloc(ctx, &ctx->dev->heap, CUSIM_ARRAY, bytes, &range);
	if (result == CUDA_SUCCESS)
		*out = (CUarray)(uintptr_t)range->base;
	return result;
}

static CUresult create_2d(CUcontext ctx, CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d)
{
	return d ? create(ctx, out, d->Width, d->Height, 0,
			   element_bytes(d->Format, d->NumChannels))
		 : CUDA_ERROR_INVALID_VALUE;
}

static CUresult create_3d(CUcontext ctx, CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	return d ? create(ctx, out, d->Width, d->Height, d->Depth,
			   element_bytes(d->Format, d->NumChannels))
		 : CUDA_ERROR_INVALID_VALUE;
}

static CUresult destroy(CUarray array)
{
	struct sim_range *range = sim_index_get(&sim.ranges, (u64)(uintptr_t)array);

	if (!range || range->kind != CUSIM_ARRAY)
		return CUDA_ERROR_INVALID_HANDLE;
	sim_range_free(range, false);
	return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	return SIM_ALLOC(CUSIM_ARRAY, create_2d(ctx, pHandle, pAllocateArray));
}

CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	return SIM_ALLOC(CUSIM_ARRAY, create_3d(ctx, pHandle, pAllocateArray));
}

CUresult cuArrayDestroy(CUarray hArray)
{
	return SIM_FREE(NEED_CONTEXT, destroy(hArray));
}
