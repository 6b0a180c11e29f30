/*
 * Arrays: opaque memory. Rows are rounded to 512 bytes, and what is larger than what is packed to
 * whole pages, so that an array takes exactly what its memory requirements say. The levels of a
 * mipmapped array lie one after the other, each half as large in every dimension, layers excepted.
 */
#include "sim.h"

struct CUmipmappedArray_st {
	struct sim_range *range;
	unsigned int n_levels;
	struct CUarray_st levels[];
};

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

static u64 halved(u64 n, unsigned int times)
{
	return n >> times ? n >> times : 1;
}

/* The shape of a level; *end is where it ends. False: too large. */
static bool shape_level(
	struct CUarray_st *array, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int level, u64 *end)
{
	bool layered = d->Flags & CUDA_ARRAY3D_LAYERED;
	u64 bytes;

	array->offset = *end;
	array->description = *d;
	array->description.Width = halved(d->Width, level);
	array->description.Height = d->Height ? halved(d->Height, level) : 0;
	if (d->Depth && !layered)
		array->description.Depth = halved(d->Depth, level);
	array->element = element_bytes(d->Format, d->NumChannels);
	array->height = halved(d->Height ? d->Height : 1, level);
	array->depth = layered ? d->Depth : halved(d->Depth ? d->Depth : 1, level);
	if (__builtin_mul_overflow(halved(d->Width, level), array->element, &array->width) ||
		__builtin_add_overflow(array->width, SIM_UNIT_BYTES - 1, &array->row_bytes))
		return false;
	array->row_bytes -= array->row_bytes % SIM_UNIT_BYTES;
	return !__builtin_mul_overflow(array->row_bytes, array->height, &bytes) &&
	       !__builtin_mul_overflow(bytes, array->depth, &bytes) &&
	       !__builtin_add_overflow(*end, bytes, end);
}

/* The bytes of all levels, which are shaped on the way if there is room for them. 0: not valid. */
static u64 shape(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int n_levels, struct CUarray_st *levels)
{
	struct CUarray_st level = {0};
	u64 bytes = 0;

	if (d->Width == 0 || !element_bytes(d->Format, d->NumChannels) || n_levels == 0 ||
		n_levels > 32 || ((d->Flags & CUDA_ARRAY3D_LAYERED) && d->Depth == 0))
		return 0;
	for (unsigned int i = 0; i < n_levels; i++) {
		if (!shape_level(&level, d, i, &bytes))
			return UINT64_MAX;
		if (levels)
			levels[i] = level;
	}
	if (bytes > SIM_SMALL_BYTES && bytes <= UINT64_MAX - SIM_PAGE_BYTES)
		bytes = (bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES * SIM_PAGE_BYTES;
	return bytes;
}

u64 sim_mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int n_levels)
{
	return shape(d, n_levels, NULL);
}

void sim_arrays_end(struct sim_range *range)
{
	CUmipmappedArray mipmap = range->mipmap;

	if (range->array) {
		sim_handle_remove(&sim.arrays, range->array);
		free(range->array);
	}
	if (!mipmap)
		return;
	for (unsigned int i = 0; i < mipmap->n_levels; i++)
		sim_handle_remove(&sim.arrays, &mipmap->levels[i]);
	sim_handle_remove(&sim.mipmaps, mipmap);
	free(mipmap);
}

CUresult sim_mipmap_over(CUmipmappedArray *out, struct sim_range *range,
	const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int n_levels)
{
	CUmipmappedArray mipmap = calloc(1, sizeof(*mipmap) + n_levels * sizeof(mipmap->levels[0]));

	if (!mipmap || !sim_handle_insert(&sim.mipmaps, mipmap)) {
		free(mipmap);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	mipmap->range = range;
	mipmap->n_levels = n_levels;
	range->mipmap = mipmap;
	shape(d, n_levels, mipmap->levels);
	for (unsigned int i = 0; i < n_levels; i++) {
		mipmap->levels[i].range = range;
		mipmap->levels[i].is_level = true;
		if (!sim_handle_insert(&sim.arrays, &mipmap->levels[i]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = mipmap;
	return CUDA_SUCCESS;
}

/* Memory for an array; only arrays that have it from the start are simulated. */
static CUresult storage(CUcontext ctx, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int n_levels,
	struct sim_range **out)
{
	if (d->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!sim_capture_allows_unsafe())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return sim_alloc(ctx, &ctx->dev->array_heap, CUSIM_ARRAY, shape(d, n_levels, NULL), out);
}

static CUresult create_3d(CUcontext ctx, CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	struct sim_range *range;
	CUarray array;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (out && d)
		result = storage(ctx, d, 1, &range);
	if (result != CUDA_SUCCESS)
		return result;
	array = calloc(1, sizeof(*array));
	if (!array || !sim_handle_insert(&sim.arrays, array)) {
		free(array);
		sim_range_free(range, false);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	shape(d, 1, array);
	array->range = range;
	range->array = array;
	*out = array;
	return CUDA_SUCCESS;
}

static CUresult create_2d(CUcontext ctx, CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d)
{
	CUDA_ARRAY3D_DESCRIPTOR full = {0};

	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	full.Width = d->Width;
	full.Height = d->Height;
	full.Format = d->Format;
	full.NumChannels = d->NumChannels;
	return create_3d(ctx, out, &full);
}

static CUresult create_2d_low(CUcontext ctx, CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
	CUDA_ARRAY_DESCRIPTOR full = {0};

	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	full.Width = d->Width;
	full.Height = d->Height;
	full.Format = d->Format;
	full.NumChannels = d->NumChannels;
	return create_2d(ctx, out, &full);
}

static CUresult create_3d_low(CUcontext ctx, CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
	CUDA_ARRAY3D_DESCRIPTOR full = {0};

	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	full.Width = d->Width;
	full.Height = d->Height;
	full.Depth = d->Depth;
	full.Format = d->Format;
	full.NumChannels = d->NumChannels;
	full.Flags = d->Flags;
	return create_3d(ctx, out, &full);
}

static CUresult create_mipmap(CUcontext ctx, CUmipmappedArray *out,
	const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int n_levels)
{
	struct sim_range *range;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (out && d)
		result = storage(ctx, d, n_levels, &range);
	if (result != CUDA_SUCCESS)
		return result;
	result = sim_mipmap_over(out, range, d, n_levels);
	if (result != CUDA_SUCCESS)
		sim_range_free(range, false);
	return result;
}

static CUresult destroy(CUarray array)
{
	if (!sim_handle_known(&sim.arrays, array))
		return CUDA_ERROR_INVALID_HANDLE;
	if (array->is_level)
		return CUDA_ERROR_ARRAY_IS_MAPPED;
	if (!sim_capture_allows_unsafe())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	sim_range_free(array->range, false);
	return CUDA_SUCCESS;
}

static CUresult destroy_mipmap(CUmipmappedArray mipmap)
{
	if (!sim_handle_known(&sim.mipmaps, mipmap))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!sim_capture_allows_unsafe())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	sim_range_free(mipmap->range, false);
	return CUDA_SUCCESS;
}

static CUresult description_get(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray array)
{
	if (!sim_handle_known(&sim.arrays, array))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = array->description;
	return CUDA_SUCCESS;
}

static CUresult level_get(CUarray *out, CUmipmappedArray mipmap, unsigned int level)
{
	if (!sim_handle_known(&sim.mipmaps, mipmap))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || level >= mipmap->n_levels)
		return CUDA_ERROR_INVALID_VALUE;
	*out = &mipmap->levels[level];
	return CUDA_SUCCESS;
}

static CUresult requirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *out, const struct sim_range *range, CUdevice ordinal)
{
	if (!out || !range || !sim.array_query)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_get(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = range->bytes,
		.alignment = range->bytes > SIM_SMALL_BYTES ? SIM_PAGE_BYTES : SIM_UNIT_BYTES};
	return CUDA_SUCCESS;
}

CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray)
{
	return SIM_ALLOC(CUSIM_ARRAY, create_2d_low(ctx, pHandle, pAllocateArray));
}

CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	return SIM_ALLOC(CUSIM_ARRAY, create_2d(ctx, pHandle, pAllocateArray));
}

CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
{
	return SIM_ALLOC(CUSIM_ARRAY, create_3d_low(ctx, pHandle, pAllocateArray));
}

CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	return SIM_ALLOC(CUSIM_ARRAY, create_3d(ctx, pHandle, pAllocateArray));
}

CUresult cuArrayDestroy(CUarray hArray)
{
	return SIM_FREE(NEED_CONTEXT, destroy(hArray));
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
	const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc, unsigned int numMipmapLevels)
{
	return SIM_ALLOC(
		CUSIM_ARRAY, create_mipmap(ctx, pHandle, pMipmappedArrayDesc, numMipmapLevels));
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	return SIM_CALL(NEED_CONTEXT, description_get(pArrayDescriptor, hArray));
}

CUresult cuMipmappedArrayGetLevel(
	CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level)
{
	return SIM_CALL(NEED_CONTEXT, level_get(pLevelArray, hMipmappedArray, level));
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	return SIM_FREE(NEED_CONTEXT, destroy_mipmap(hMipmappedArray));
}

CUresult cuArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array, CUdevice device)
{
	return SIM_CALL(NEED_CONTEXT,
		requirements(memoryRequirements,
			sim_handle_known(&sim.arrays, array) && !array->is_level ? array->range
										 : NULL,
			device));
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
	CUmipmappedArray mipmap, CUdevice device)
{
	return SIM_CALL(NEED_CONTEXT,
		requirements(memoryRequirements,
			sim_handle_known(&sim.mipmaps, mipmap) ? mipmap->range : NULL, device));
}

/* There are no sparse arrays to map into. */
CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
	(void)list;
	(void)count;
	(void)stream;
	return SIM_CALL(NEED_CONTEXT, CUDA_ERROR_NOT_SUPPORTED);
}

CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
	(void)list;
	(void)count;
	(void)stream;
	return SIM_CALL(NEED_CONTEXT, CUDA_ERROR_NOT_SUPPORTED);
}
