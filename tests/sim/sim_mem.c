/* Ranges of addresses that mean something; linear, managed and host memory. */
#include "sim.h"

#include <stdlib.h>
#include <sys/mman.h>

static struct sim_index *index_of(int kind)
{
	return kind == SIM_RANGE_RESERVATION ? &sim.reservations : &sim.ranges;
}

struct sim_range *sim_range_new(
	int kind, struct sim_device *dev, CUcontext ctx, u64 base, u64 bytes)
{
	struct sim_range *range = calloc(1, sizeof(*range));

	if (!range)
		return NULL;
	*range = (struct sim_range){.base = base,
		.bytes = bytes,
		.kind = kind,
		.dev = dev,
		.ctx = ctx,
		.id = ++sim.last_id};
	if (!sim_index_insert(index_of(kind), base, range)) {
		free(range);
		return NULL;
	}
	if (kind < CUSIM_N_KINDS)
		sim_ledger_alloc(dev, kind, bytes);
	return range;
}

void sim_range_free(struct sim_range *range, bool implicit)
{
	sim_index_remove(index_of(range->kind), range->base, range);
	if (range->kind < CUSIM_N_KINDS)
		sim_ledger_free(range->dev, range->kind, range->bytes, implicit);
	if (sim_share_is_told(range))
		sim.ledger.devices[range->dev->ordinal].shared_told_bytes -= range->bytes;
	sim_arrays_end(range);
	if (range->end)
		range->end(range);
	if (range->n_addresses)
		sim_address_give(range->arena, range->base, range->n_addresses);
	if (range->place.heap)
		sim_place_give(&range->place);
	if (range->pool)
		sim_pool_used(range->pool, range->bytes, false);
	if (range->handle)
		sim_vmm_unmap(range);
	if (range->host_bytes)
		munmap(range->host, range->host_bytes);
	free(range);
}

struct sim_range *sim_range_find(u64 address)
{
	struct sim_range *range = sim_index_floor(&sim.ranges, address);

	return range && address - range->base < range->bytes ? range : NULL;
}

void sim_ranges_end_with(CUcontext ctx)
{
	for (size_t i = sim.ranges.n_entries; i > 0; i--) {
		struct sim_range *range = sim.ranges.entries[i - 1].value;

		if (range->ctx == ctx)
			sim_range_free(range, true);
	}
}

CUresult sim_alloc(
	CUcontext ctx, struct sim_heap *heap, int kind, u64 bytes, struct sim_range **out)
{
	struct sim_place place;
	CUresult result = bytes ? sim_place_take(heap, bytes, &place) : CUDA_ERROR_INVALID_VALUE;

	if (result != CUDA_SUCCESS)
		return result;
	*out = sim_range_new(kind, heap->dev, ctx, place.address, bytes);
	if (!*out) {
		sim_place_give(&place);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(*out)->place = place;
	return CUDA_SUCCESS;
}

/* Memory the host reads directly: a mapping of its own. */
static CUresult alloc_host(
	CUcontext ctx, int kind, u64 bytes, unsigned int flags, struct sim_range **out)
{
	u64 host_bytes = (bytes + 4095) & ~4095ull;
	char *host;

	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (host_bytes < bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!sim_capture_allows_unsafe())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	host = mmap(NULL, host_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (host == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = sim_range_new(kind, ctx->dev, ctx, (u64)(uintptr_t)host, bytes);
	if (!*out) {
		munmap(host, host_bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(*out)->host = host;
	(*out)->host_bytes = host_bytes;
	(*out)->flags = flags;
	return CUDA_SUCCESS;
}

static CUresult alloc_linear(CUcontext ctx, struct sim_heap *heap, u64 bytes, u64 *out)
{
	struct sim_range *range;
	CUresult result;

	if (!sim_capture_allows_unsafe())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	result = sim_alloc(ctx, heap, CUSIM_LINEAR, bytes, &range);
	if (result == CUDA_SUCCESS)
		*out = range->base;
	return result;
}

/* The first version of the API has addresses of 32 bits. */
static CUresult alloc_low(CUcontext ctx, CUdeviceptr_v1 *out, unsigned int bytes)
{
	u64 address;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (out)
		result = alloc_linear(ctx, &ctx->dev->low_heap, bytes, &address);
	if (result == CUDA_SUCCESS)
		*out = (CUdeviceptr_v1)address;
	return result;
}

static CUresult alloc_high(CUcontext ctx, CUdeviceptr *out, u64 bytes)
{
	u64 address;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (out)
		result = alloc_linear(ctx, &ctx->dev->heap, bytes, &address);
	if (result == CUDA_SUCCESS)
		*out = address;
	return result;
}

static CUresult alloc_pitch(CUcontext ctx, struct sim_heap *heap, u64 width, u64 height,
	unsigned int element, u64 *pitch, u64 *out)
{
	u64 bytes;

	if (width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = (width + SIM_PITCH_BYTES - 1) / SIM_PITCH_BYTES * SIM_PITCH_BYTES;
	if (*pitch < width || __builtin_mul_overflow(*pitch, height, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return alloc_linear(ctx, heap, bytes, out);
}

static CUresult alloc_pitch_low(CUcontext ctx, CUdeviceptr_v1 *out, unsigned int *out_pitch,
	u64 width, u64 height, unsigned int element)
{
	u64 address, pitch;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (out && out_pitch)
		result = alloc_pitch(
			ctx, &ctx->dev->low_heap, width, height, element, &pitch, &address);
	if (result == CUDA_SUCCESS) {
		*out = (CUdeviceptr_v1)address;
		*out_pitch = (unsigned int)pitch;
	}
	return result;
}

static CUresult alloc_pitch_high(CUcontext ctx, CUdeviceptr *out, size_t *out_pitch, u64 width,
	u64 height, unsigned int element)
{
	u64 address, pitch;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (out && out_pitch)
		result =
			alloc_pitch(ctx, &ctx->dev->heap, width, height, element, &pitch, &address);
	if (result == CUDA_SUCCESS) {
		*out = address;
		*out_pitch = pitch;
	}
	return result;
}

static CUresult alloc_managed(CUcontext ctx, CUdeviceptr *out, u64 bytes, unsigned int flags)
{
	struct sim_range *range;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (out && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST))
		result = alloc_host(ctx, CUSIM_MANAGED, bytes, flags, &range);
	if (result == CUDA_SUCCESS)
		*out = range->base;
	return result;
}

static CUresult alloc_pinned(CUcontext ctx, void **out, u64 bytes, unsigned int flags)
{
	struct sim_range *range;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (out && flags < 8)
		result = alloc_host(ctx, CUSIM_PINNED, bytes, flags, &range);
	if (result == CUDA_SUCCESS)
		*out = range->host;
	return result;
}

static bool may_free(const struct sim_range *range)
{
	switch (range->kind) {
	case CUSIM_LINEAR:
	case CUSIM_MANAGED:
	case CUSIM_POOL:
		return true;
	case CUSIM_GRAPH:
		return sim_block_may_free(range);
	case CUSIM_SHARED:
		return !range->mipmap &&
		       (range->share == SIM_SHARE_EXTERNAL || range->share == SIM_SHARE_POOL);
	default:
		return false;
	}
}

CUresult sim_free(u64 address)
{
	struct sim_range *range;

	if (address == 0)
		return CUDA_SUCCESS;
	range = sim_index_get(&sim.ranges, address);
	if (!range || !may_free(range))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_capture_allows_unsafe())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	sim_range_free(range, false);
	return CUDA_SUCCESS;
}

static CUresult free_host(void *p, int kind, CUresult otherwise)
{
	struct sim_range *range = sim_index_get(&sim.ranges, (u64)(uintptr_t)p);

	if (!range || range->kind != kind)
		return otherwise;
	if (!sim_capture_allows_unsafe())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	sim_range_free(range, false);
	return CUDA_SUCCESS;
}

static CUresult register_host(CUcontext ctx, void *p, u64 bytes, unsigned int flags)
{
	u64 base = (u64)(uintptr_t)p;
	struct sim_range *before, *range;

	if (!p || bytes == 0 || base + bytes < base || sim_address_is_device(base))
		return CUDA_ERROR_INVALID_VALUE;
	before = sim_index_floor(&sim.ranges, base + bytes - 1);
	if (before && before->base + before->bytes > base)
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	range = sim_range_new(CUSIM_REGISTERED, ctx->dev, ctx, base, bytes);
	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range->host = p;
	range->flags = flags;
	return CUDA_SUCCESS;
}

/* The address a device uses for host memory: the same one. */
static CUresult device_pointer(void *p, u64 *out)
{
	struct sim_range *range = sim_range_find((u64)(uintptr_t)p);

	if (!range || (range->kind != CUSIM_PINNED && range->kind != CUSIM_REGISTERED))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (u64)(uintptr_t)p;
	return CUDA_SUCCESS;
}

static CUresult host_flags(unsigned int *out, void *p)
{
	struct sim_range *range = sim_range_find((u64)(uintptr_t)p);

	if (!out || !range || range->kind != CUSIM_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	*out = range->flags | CU_MEMHOSTALLOC_DEVICEMAP;
	return CUDA_SUCCESS;
}

static CUresult address_range(CUdeviceptr *base, size_t *bytes, u64 address)
{
	struct sim_range *range = sim_range_find(address);

	if (!range || range->kind == CUSIM_REGISTERED)
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = range->base;
	if (bytes)
		*bytes = range->bytes;
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
	return SIM_ALLOC(CUSIM_LINEAR, alloc_low(ctx, dptr, bytesize));
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	return SIM_ALLOC(CUSIM_LINEAR, alloc_high(ctx, dptr, bytesize));
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes,
	unsigned int Height, unsigned int ElementSizeBytes)
{
	return SIM_ALLOC(CUSIM_LINEAR,
		alloc_pitch_low(ctx, dptr, pPitch, WidthInBytes, Height, ElementSizeBytes));
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
	unsigned int ElementSizeBytes)
{
	return SIM_ALLOC(CUSIM_LINEAR,
		alloc_pitch_high(ctx, dptr, pPitch, WidthInBytes, Height, ElementSizeBytes));
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	return SIM_ALLOC(CUSIM_MANAGED, alloc_managed(ctx, dptr, bytesize, flags));
}

CUresult cuMemFree(CUdeviceptr_v1 dptr)
{
	return SIM_FREE(NEED_CONTEXT, sim_free(dptr));
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	return SIM_FREE(NEED_CONTEXT, sim_free(dptr));
}

CUresult cuMemAllocHost(void **pp, unsigned int bytesize)
{
	return SIM_ALLOC(CUSIM_PINNED, alloc_pinned(ctx, pp, bytesize, 0));
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return SIM_ALLOC(CUSIM_PINNED, alloc_pinned(ctx, pp, bytesize, 0));
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	return SIM_ALLOC(CUSIM_PINNED, alloc_pinned(ctx, pp, bytesize, Flags));
}

CUresult cuMemFreeHost(void *p)
{
	return SIM_FREE(NEED_CONTEXT, free_host(p, CUSIM_PINNED, CUDA_ERROR_INVALID_VALUE));
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	return SIM_ALLOC(CUSIM_REGISTERED, register_host(ctx, p, bytesize, Flags));
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	return SIM_ALLOC(CUSIM_REGISTERED, register_host(ctx, p, bytesize, Flags));
}

CUresult cuMemHostUnregister(void *p)
{
	return SIM_FREE(NEED_CONTEXT,
		free_host(p, CUSIM_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED));
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	u64 address = 0;

	return SIM_CALL_THEN(NEED_CONTEXT,
		pdptr && !Flags ? device_pointer(p, &address) : CUDA_ERROR_INVALID_VALUE,
		if (result == CUDA_SUCCESS) * pdptr = address);
}

CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	return SIM_CALL(NEED_CONTEXT, host_flags(pFlags, p));
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	return SIM_CALL(NEED_CONTEXT, address_range(pbase, psize, dptr));
}
