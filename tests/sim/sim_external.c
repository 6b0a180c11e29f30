/* Memory of other APIs: external memory and graphics resources. It lies in host memory here, on no
 * device. */
#include "sim.h"

#include <fcntl.h>
#include <unistd.h>

struct CUextMemory_st {
	struct sim_external *memory;
};

struct CUgraphicsResource_st {
	struct sim_external *memory;
	bool mapped;
	struct sim_range *range; /* once its pointer was asked for, until it is unmapped */
};

static CUresult import(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *d)
{
	CUexternalMemory external;

	if (!out || !d || d->size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (d->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (fcntl(d->handle.fd, F_GETFD) < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	external = calloc(1, sizeof(*external));
	if (external)
		external->memory = sim_external_new(d->size);
	if (!external || !external->memory || !sim_handle_insert(&sim.externals, external)) {
		if (external && external->memory)
			sim_external_drop(external->memory);
		free(external);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	close(d->handle.fd); /* it is the driver's from now on */
	*out = external;
	return CUDA_SUCCESS;
}

/* What is mapped of it stays. */
static CUresult destroy(CUexternalMemory external)
{
	if (!sim_handle_known(&sim.externals, external))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_handle_remove(&sim.externals, external);
	sim_external_drop(external->memory);
	free(external);
	return CUDA_SUCCESS;
}

static CUresult mapped_buffer(CUcontext ctx, CUdeviceptr *out, CUexternalMemory external,
	const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *d)
{
	struct sim_piece piece = {.arena = &sim.arena};
	struct sim_range *range;
	CUresult result;

	if (!sim_handle_known(&sim.externals, external))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !d || d->flags)
		return CUDA_ERROR_INVALID_VALUE;
	piece.external = external->memory;
	piece.offset = d->offset;
	piece.bytes = d->size;
	result = sim_share_external(ctx, SIM_SHARE_EXTERNAL, &piece, &range);
	if (result == CUDA_SUCCESS)
		*out = range->base;
	return result;
}

static CUresult mapped_array(CUcontext ctx, CUmipmappedArray *out, CUexternalMemory external,
	const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *d)
{
	struct sim_piece piece = {.arena = &sim.arena};
	struct sim_range *range;
	CUresult result;

	if (!sim_handle_known(&sim.externals, external))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !d)
		return CUDA_ERROR_INVALID_VALUE;
	piece.external = external->memory;
	piece.offset = d->offset;
	piece.bytes = sim_mipmap_bytes(&d->arrayDesc, d->numLevels);
	result = sim_share_external(ctx, SIM_SHARE_EXTERNAL, &piece, &range);
	if (result != CUDA_SUCCESS)
		return result;
	result = sim_mipmap_over(out, range, &d->arrayDesc, d->numLevels);
	if (result != CUDA_SUCCESS)
		sim_range_free(range, false);
	return result;
}

void *cusim_graphics_resource(size_t bytes)
{
	CUgraphicsResource resource = bytes ? calloc(1, sizeof(*resource)) : NULL;

	if (!resource)
		return NULL;
	pthread_mutex_lock(&sim.lock);
	resource->memory = sim_external_new(bytes);
	if (!resource->memory || !sim_handle_insert(&sim.graphics, resource)) {
		if (resource->memory)
			sim_external_drop(resource->memory);
		free(resource);
		resource = NULL;
	}
	pthread_mutex_unlock(&sim.lock);
	return resource;
}

/* Maps or unmaps all of them, or none. */
static CUresult map_all(unsigned int n, CUgraphicsResource *all, CUstream stream, bool map)
{
	if (n == 0 || !all)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_stream_known(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	for (unsigned int i = 0; i < n; i++) {
		if (!sim_handle_known(&sim.graphics, all[i]))
			return CUDA_ERROR_INVALID_HANDLE;
		if (all[i]->mapped == map)
			return map ? CUDA_ERROR_ALREADY_MAPPED : CUDA_ERROR_NOT_MAPPED;
	}
	for (unsigned int i = 0; i < n; i++) {
		all[i]->mapped = map;
		if (all[i]->range)
			sim_range_free(all[i]->range, false);
	}
	return CUDA_SUCCESS;
}

static void end_pointer(struct sim_range *range)
{
	CUgraphicsResource resource = range->object;

	resource->range = NULL;
	sim_external_drop(resource->memory);
}

static CUresult pointer(
	CUcontext ctx, u64 *out, u64 *bytes, CUgraphicsResource resource, struct sim_arena *arena)
{
	CUresult result = CUDA_SUCCESS;

	if (!sim_handle_known(&sim.graphics, resource))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!resource->mapped)
		return CUDA_ERROR_NOT_MAPPED;
	if (!resource->range) {
		struct sim_piece piece = {resource->memory, 0, resource->memory->bytes, arena};

		result = sim_share_external(ctx, SIM_SHARE_GRAPHICS, &piece, &resource->range);
		if (result != CUDA_SUCCESS)
			return result;
		resource->range->object = resource;
		resource->range->end = end_pointer;
	}
	*out = resource->range->base;
	*bytes = resource->range->bytes;
	return CUDA_SUCCESS;
}

/* The first version has 32 bits for the address. */
static CUresult pointer_low(
	CUcontext ctx, CUdeviceptr_v1 *out, unsigned int *bytes, CUgraphicsResource resource)
{
	u64 address, n;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (out && bytes)
		result = pointer(ctx, &address, &n, resource, &sim.low_arena);
	if (result != CUDA_SUCCESS)
		return result;
	if (address + n > UINT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUdeviceptr_v1)address;
	*bytes = (unsigned int)n;
	return CUDA_SUCCESS;
}

static CUresult pointer_high(
	CUcontext ctx, CUdeviceptr *out, size_t *bytes, CUgraphicsResource resource)
{
	u64 address, n;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (out && bytes)
		result = pointer(ctx, &address, &n, resource, &sim.arena);
	if (result == CUDA_SUCCESS) {
		*out = address;
		*bytes = n;
	}
	return result;
}

CUresult cuImportExternalMemory(
	CUexternalMemory *extMem_out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc)
{
	return SIM_CALL(NEED_CONTEXT, import(extMem_out, memHandleDesc));
}

CUresult cuDestroyExternalMemory(CUexternalMemory extMem)
{
	return SIM_CALL(NEED_CONTEXT, destroy(extMem));
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
	const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc)
{
	return SIM_ALLOC(CUSIM_SHARED, mapped_buffer(ctx, devPtr, extMem, bufferDesc));
}

CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *mipmap, CUexternalMemory extMem,
	const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mipmapDesc)
{
	return SIM_ALLOC(CUSIM_SHARED, mapped_array(ctx, mipmap, extMem, mipmapDesc));
}

CUresult cuGraphicsMapResources(unsigned int count, CUgraphicsResource *resources, CUstream hStream)
{
	return SIM_CALL(NEED_CONTEXT, map_all(count, resources, hStream, true));
}

CUresult cuGraphicsMapResources_ptsz(
	unsigned int count, CUgraphicsResource *resources, CUstream hStream)
{
	return SIM_CALL(NEED_CONTEXT, map_all(count, resources, hStream, true));
}

CUresult cuGraphicsUnmapResources(
	unsigned int count, CUgraphicsResource *resources, CUstream hStream)
{
	return SIM_FREE(NEED_CONTEXT, map_all(count, resources, hStream, false));
}

CUresult cuGraphicsUnmapResources_ptsz(
	unsigned int count, CUgraphicsResource *resources, CUstream hStream)
{
	return SIM_FREE(NEED_CONTEXT, map_all(count, resources, hStream, false));
}

CUresult cuGraphicsResourceGetMappedPointer(
	CUdeviceptr_v1 *pDevPtr, unsigned int *pSize, CUgraphicsResource resource)
{
	return SIM_ALLOC(CUSIM_SHARED, pointer_low(ctx, pDevPtr, pSize, resource));
}

CUresult cuGraphicsResourceGetMappedPointer_v2(
	CUdeviceptr *pDevPtr, size_t *pSize, CUgraphicsResource resource)
{
	return SIM_ALLOC(CUSIM_SHARED, pointer_high(ctx, pDevPtr, pSize, resource));
}
