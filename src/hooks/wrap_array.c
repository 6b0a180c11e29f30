#include "hooks/wrap.h"

/*
 * What an array takes. The driver tells for arrays whose memory is mapped later; for all others it
 * is counted from the descriptor, without the padding the driver may add.
 */

/* Bits of one texel; 0 for planar formats, whose layout is the driver's own. Block-compressed: a
 * block of 4 x 4 texels. */
static uint64_t texel_bits(unsigned int format, unsigned int channels)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 8u * channels;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 16u * channels;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 32u * channels;
	case CU_AD_FORMAT_NV12:
		return 12;
	case CU_AD_FORMAT_UNORM_INT8X1:
	case CU_AD_FORMAT_SNORM_INT8X1:
		return 8;
	case CU_AD_FORMAT_UNORM_INT8X2:
	case CU_AD_FORMAT_SNORM_INT8X2:
	case CU_AD_FORMAT_UNORM_INT16X1:
	case CU_AD_FORMAT_SNORM_INT16X1:
		return 16;
	case CU_AD_FORMAT_UNORM_INT8X4:
	case CU_AD_FORMAT_SNORM_INT8X4:
	case CU_AD_FORMAT_UNORM_INT16X2:
	case CU_AD_FORMAT_SNORM_INT16X2:
		return 32;
	case CU_AD_FORMAT_UNORM_INT16X4:
	case CU_AD_FORMAT_SNORM_INT16X4:
		return 64;
	case CU_AD_FORMAT_BC1_UNORM:
	case CU_AD_FORMAT_BC1_UNORM_SRGB:
	case CU_AD_FORMAT_BC4_UNORM:
	case CU_AD_FORMAT_BC4_SNORM:
		return 4;
	case CU_AD_FORMAT_BC2_UNORM:
	case CU_AD_FORMAT_BC2_UNORM_SRGB:
	case CU_AD_FORMAT_BC3_UNORM:
	case CU_AD_FORMAT_BC3_UNORM_SRGB:
	case CU_AD_FORMAT_BC5_UNORM:
	case CU_AD_FORMAT_BC5_SNORM:
	case CU_AD_FORMAT_BC6H_UF16:
	case CU_AD_FORMAT_BC6H_SF16:
	case CU_AD_FORMAT_BC7_UNORM:
	case CU_AD_FORMAT_BC7_UNORM_SRGB:
		return 8;
	default:
		return 0;
	}
}

static uint64_t at_least_one(uint64_t n)
{
	return n ? n : 1;
}

/* An extent of 0 in y or z means that the array has no such dimension. */
static uint64_t counted_bytes(const CUDA_ARRAY3D_DESCRIPTOR_v2 *array, unsigned int n_levels)
{
	bool layers = array->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
	uint64_t bits = 0;

	for (unsigned int level = 0; level < n_levels; level++) {
		uint64_t depth = layers ? array->Depth : array->Depth >> level;

		bits += at_least_one(array->Width >> level) * at_least_one(array->Height >> level) *
			at_least_one(depth) * texel_bits(array->Format, array->NumChannels);
	}
	return bits / 8;
}

/* As for free memory: not while a capture is open. */
static bool may_ask(const struct call *call)
{
	return !call->result && call->device >= 0 && !sample_captures_open();
}

static void note_array(
	const struct call *call, CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR_v2 *array)
{
	__typeof__(&cuArrayGetMemoryRequirements) get =
		DRIVER_ORIGINAL(cuArrayGetMemoryRequirements);
	CUDA_ARRAY_MEMORY_REQUIREMENTS told = {0};
	uint64_t bytes = counted_bytes(array, 1);

	if (!call->recorded)
		return;
	if (may_ask(call) && get && !get(&told, *handle, call->device))
		bytes = told.size;
	event_alloc(call, VT_KIND_ARRAY, call->result ? 0 : ADDRESS(*handle), bytes, 0, 0);
}

CUresult CUDAAPI cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray)
{
	CUDA_ARRAY3D_DESCRIPTOR_v2 array = {0};

	FORWARD(cuArrayCreate, pHandle, pAllocateArray);
	if (pAllocateArray)
		array = (CUDA_ARRAY3D_DESCRIPTOR_v2){.Width = pAllocateArray->Width,
			.Height = pAllocateArray->Height,
			.Format = pAllocateArray->Format,
			.NumChannels = pAllocateArray->NumChannels};
	note_array(&call, pHandle, &array);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	CUDA_ARRAY3D_DESCRIPTOR_v2 array = {0};

	FORWARD(cuArrayCreate_v2, pHandle, pAllocateArray);
	if (pAllocateArray)
		array = (CUDA_ARRAY3D_DESCRIPTOR_v2){.Width = pAllocateArray->Width,
			.Height = pAllocateArray->Height,
			.Format = pAllocateArray->Format,
			.NumChannels = pAllocateArray->NumChannels};
	note_array(&call, pHandle, &array);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
{
	CUDA_ARRAY3D_DESCRIPTOR_v2 array = {0};

	FORWARD(cuArray3DCreate, pHandle, pAllocateArray);
	if (pAllocateArray)
		array = (CUDA_ARRAY3D_DESCRIPTOR_v2){.Width = pAllocateArray->Width,
			.Height = pAllocateArray->Height,
			.Depth = pAllocateArray->Depth,
			.Format = pAllocateArray->Format,
			.NumChannels = pAllocateArray->NumChannels,
			.Flags = pAllocateArray->Flags};
	note_array(&call, pHandle, &array);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	FORWARD(cuArray3DCreate_v2, pHandle, pAllocateArray);
	note_array(
		&call, pHandle, pAllocateArray ? pAllocateArray : &(CUDA_ARRAY3D_DESCRIPTOR_v2){0});
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
	const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc, unsigned int numMipmapLevels)
{
	__typeof__(&cuMipmappedArrayGetMemoryRequirements) get;
	CUDA_ARRAY_MEMORY_REQUIREMENTS told = {0};
	uint64_t bytes;

	FORWARD(cuMipmappedArrayCreate, pHandle, pMipmappedArrayDesc, numMipmapLevels);
	if (call.recorded) {
		bytes = pMipmappedArrayDesc && numMipmapLevels <= 64
				? counted_bytes(pMipmappedArrayDesc, numMipmapLevels)
				: 0;
		get = DRIVER_ORIGINAL(cuMipmappedArrayGetMemoryRequirements);
		if (may_ask(&call) && get && !get(&told, *pHandle, call.device))
			bytes = told.size;
		event_alloc(&call, VT_KIND_ARRAY, call.result ? 0 : ADDRESS(*pHandle), bytes, 0, 0);
	}
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuArrayDestroy(CUarray hArray)
{
	FORWARD(cuArrayDestroy, hArray);
	event_free(&call, VT_KIND_ARRAY, ADDRESS(hArray), 0);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	FORWARD(cuMipmappedArrayDestroy, hMipmappedArray);
	event_free(&call, VT_KIND_ARRAY, ADDRESS(hMipmappedArray), 0);
	return LEAVE_SAMPLED();
}
