/* Linear copies. They move the real bytes, and know from the addresses what moved where. */
#include "sim.h"
#include "sim_bytes.h"

#include <string.h>

/* What an entry point says about its two addresses. */
enum copy_kind { COPY_HTOD, COPY_DTOH, COPY_DTOD, COPY_PEER, COPY_UNIFIED };

CUresult sim_range_check(
	u64 address, u64 n, const struct sim_device *accessor, bool write, struct sim_device **dev)
{
	*dev = NULL;
	while (n > 0) {
		struct sim_range *range = sim_range_find(address);
		u64 inside;

		if (!range || range->kind == CUSIM_ARRAY || range->mipmap ||
			!sim_alias_valid(range))
			return CUDA_ERROR_INVALID_VALUE;
		if (range->kind != CUSIM_PINNED && range->kind != CUSIM_REGISTERED)
			*dev = range->dev;
		if (range->kind == SIM_RANGE_MAPPING && !sim_vmm_has_memory(range))
			return CUDA_ERROR_INVALID_VALUE;
		if (range->kind == SIM_RANGE_MAPPING &&
			range->access[accessor->ordinal] <
				(write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
				       : CU_MEM_ACCESS_FLAGS_PROT_READ))
			return CUDA_ERROR_INVALID_VALUE;
		inside = range->base + range->bytes - address;
		if (inside < n && range->kind != SIM_RANGE_MAPPING)
			return CUDA_ERROR_INVALID_VALUE;
		inside = inside < n ? inside : n;
		address += inside;
		n -= inside;
	}
	return CUDA_SUCCESS;
}

char *sim_bytes_at(u64 address, u64 *n_contiguous, bool write)
{
	struct sim_range *range = sim_range_find(address);
	unsigned char *dirty = NULL;
	u64 offset, contiguous;
	char *bytes;

	if (!range)
		return (char *)(uintptr_t)address;
	offset = address - range->base;
	contiguous = range->bytes - offset;
	if (range->target)
		return sim_bytes_at(range->target + offset, n_contiguous, write);
	if (range->handle)
		bytes = sim_vmm_bytes(range, offset, &contiguous, &dirty);
	else if (range->place.heap)
		bytes = sim_place_bytes(&range->place, offset, &contiguous, &dirty);
	else
		bytes = range->host + offset;
	if (dirty && write)
		*dirty = 1;
	if (contiguous < *n_contiguous)
		*n_contiguous = contiguous;
	return bytes;
}

CUresult sim_end_check(struct sim_end *end, u64 n, CUcontext ctx, bool write, bool may_be_host)
{
	struct sim_range *range = sim_range_find(end->address);

	if (!range && may_be_host && end->address && !sim_address_is_device(end->address))
		return CUDA_SUCCESS;
	if (range && range->kind == CUSIM_REGISTERED)
		return CUDA_SUCCESS; /* as good as pageable beyond its end */
	return sim_range_check(end->address, n, ctx->dev, write, &end->dev);
}

static enum cusim_direction direction(
	enum copy_kind kind, const struct sim_end *dst, const struct sim_end *src)
{
	switch (kind) {
	case COPY_HTOD:
		return CUSIM_H2D;
	case COPY_DTOH:
		return CUSIM_D2H;
	case COPY_PEER:
		return CUSIM_P2P;
	default:
		if (kind == COPY_UNIFIED && !dst->dev)
			return src->dev ? CUSIM_D2H : CUSIM_H2H;
		if (kind == COPY_UNIFIED && !src->dev)
			return CUSIM_H2D;
		return dst->dev && src->dev && dst->dev != src->dev ? CUSIM_P2P : CUSIM_D2D;
	}
}

static enum cusim_host host_at(u64 address)
{
	const struct sim_range *range = sim_range_find(address);

	if (!range)
		return CUSIM_HOST_PAGEABLE;
	switch (range->kind) {
	case CUSIM_PINNED:
		return CUSIM_HOST_PINNED;
	case CUSIM_REGISTERED:
		return CUSIM_HOST_REGISTERED;
	case CUSIM_MANAGED:
		return CUSIM_HOST_MANAGED;
	default:
		return CUSIM_HOST_NONE;
	}
}

enum cusim_host sim_host_of(u64 dst, u64 src)
{
	enum cusim_host a = host_at(dst), b = host_at(src);

	return a < b ? a : b;
}

void sim_move(u64 dst, u64 src, u64 n)
{
	while (n > 0) {
		u64 part = n;
		char *to = sim_bytes_at(dst, &part, true);
		const char *from = sim_bytes_at(src, &part, false);

		memmove(to, from, part);
		dst += part;
		src += part;
		n -= part;
	}
}

static CUresult copy(CUcontext ctx, enum copy_kind kind, u64 dst_address, u64 src_address, u64 n,
	CUstream stream, bool sync)
{
	enum cusim_host host = sim_host_of(dst_address, src_address);
	struct sim_end dst = {dst_address, NULL}, src = {src_address, NULL};
	struct sim_device *dev;
	CUresult result = CUDA_SUCCESS;

	if (n > 0)
		result = sim_end_check(
			&dst, n, ctx, true, kind == COPY_DTOH || kind == COPY_UNIFIED);
	if (n > 0 && result == CUDA_SUCCESS)
		result = sim_end_check(
			&src, n, ctx, false, kind == COPY_HTOD || kind == COPY_UNIFIED);
	if (result != CUDA_SUCCESS)
		return result;
	sim_move(dst.address, src.address, n);
	dev = dst.dev ? dst.dev : src.dev ? src.dev : ctx->dev;
	sim_ledger_copy(dev, direction(kind, &dst, &src), host, n);
	sim_clock_copy(ctx, stream, sync, host, n);
	return CUDA_SUCCESS;
}

static CUresult copy_sync(CUcontext ctx, enum copy_kind kind, u64 dst, u64 src, u64 n)
{
	if (!sim_capture_allows_implicit())
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	return copy(ctx, kind, dst, src, n, NULL, true);
}

static CUresult copy_async(
	CUcontext ctx, enum copy_kind kind, u64 dst, u64 src, u64 n, CUstream stream)
{
	if (!sim_stream_known(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (sim_stream_capturing(stream))
		return CUDA_SUCCESS; /* recorded, not executed */
	return copy(ctx, kind, dst, src, n, stream, false);
}

static bool contexts_known(CUcontext a, CUcontext b)
{
	return sim_handle_known(&sim.contexts, a) && sim_handle_known(&sim.contexts, b);
}

#define HOST(p) ((u64)(uintptr_t)(p))
#define COPY(expr)                                                                                 \
	SIM_CALL_THEN(                                                                             \
		NEED_CONTEXT, expr, if (result != CUDA_SUCCESS) { sim.ledger.failed_copies++; })
#define SYNC(kind, dst, src, n)	     COPY(copy_sync(ctx, kind, dst, src, n))
#define ASYNC(kind, dst, src, n, st) COPY(copy_async(ctx, kind, dst, src, n, st))

/* The exports of one direction differ in their argument types and names only: first version,
 * second, per-thread. */
#define HTOD(name, address, count)                                                                 \
	CUresult name(address dstDevice, const void *srcHost, count ByteCount)                     \
	{                                                                                          \
		return SYNC(COPY_HTOD, dstDevice, HOST(srcHost), ByteCount);                       \
	}
#define HTOD_ASYNC(name, address, count)                                                           \
	CUresult name(address dstDevice, const void *srcHost, count ByteCount, CUstream hStream)   \
	{                                                                                          \
		return ASYNC(COPY_HTOD, dstDevice, HOST(srcHost), ByteCount, hStream);             \
	}
#define DTOH(name, address, count)                                                                 \
	CUresult name(void *dstHost, address srcDevice, count ByteCount)                           \
	{                                                                                          \
		return SYNC(COPY_DTOH, HOST(dstHost), srcDevice, ByteCount);                       \
	}
#define DTOH_ASYNC(name, address, count)                                                           \
	CUresult name(void *dstHost, address srcDevice, count ByteCount, CUstream hStream)         \
	{                                                                                          \
		return ASYNC(COPY_DTOH, HOST(dstHost), srcDevice, ByteCount, hStream);             \
	}
#define DTOD(name, address, count)                                                                 \
	CUresult name(address dstDevice, address srcDevice, count ByteCount)                       \
	{                                                                                          \
		return SYNC(COPY_DTOD, dstDevice, srcDevice, ByteCount);                           \
	}
#define DTOD_ASYNC(name, address, count)                                                           \
	CUresult name(address dstDevice, address srcDevice, count ByteCount, CUstream hStream)     \
	{                                                                                          \
		return ASYNC(COPY_DTOD, dstDevice, srcDevice, ByteCount, hStream);                 \
	}
#define UNIFIED(name)                                                                              \
	CUresult name(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)                          \
	{                                                                                          \
		return SYNC(COPY_UNIFIED, dst, src, ByteCount);                                    \
	}
#define UNIFIED_ASYNC(name)                                                                        \
	CUresult name(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)        \
	{                                                                                          \
		return ASYNC(COPY_UNIFIED, dst, src, ByteCount, hStream);                          \
	}
#define PEER(name)                                                                                 \
	CUresult name(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,          \
		CUcontext srcContext, size_t ByteCount)                                            \
	{                                                                                          \
		return COPY(contexts_known(dstContext, srcContext)                                 \
				    ? copy_sync(ctx, COPY_PEER, dstDevice, srcDevice, ByteCount)   \
				    : CUDA_ERROR_INVALID_CONTEXT);                                 \
	}
#define PEER_ASYNC(name)                                                                           \
	CUresult name(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,          \
		CUcontext srcContext, size_t ByteCount, CUstream hStream)                          \
	{                                                                                          \
		return COPY(contexts_known(dstContext, srcContext)                                 \
				    ? copy_async(ctx, COPY_PEER, dstDevice, srcDevice, ByteCount,  \
					      hStream)                                             \
				    : CUDA_ERROR_INVALID_CONTEXT);                                 \
	}

HTOD(cuMemcpyHtoD, CUdeviceptr_v1, unsigned int)
HTOD(cuMemcpyHtoD_v2, CUdeviceptr, size_t)
HTOD(cuMemcpyHtoD_v2_ptds, CUdeviceptr, size_t)
HTOD_ASYNC(cuMemcpyHtoDAsync, CUdeviceptr_v1, unsigned int)
HTOD_ASYNC(cuMemcpyHtoDAsync_v2, CUdeviceptr, size_t)
HTOD_ASYNC(cuMemcpyHtoDAsync_v2_ptsz, CUdeviceptr, size_t)
DTOH(cuMemcpyDtoH, CUdeviceptr_v1, unsigned int)
DTOH(cuMemcpyDtoH_v2, CUdeviceptr, size_t)
DTOH(cuMemcpyDtoH_v2_ptds, CUdeviceptr, size_t)
DTOH_ASYNC(cuMemcpyDtoHAsync, CUdeviceptr_v1, unsigned int)
DTOH_ASYNC(cuMemcpyDtoHAsync_v2, CUdeviceptr, size_t)
DTOH_ASYNC(cuMemcpyDtoHAsync_v2_ptsz, CUdeviceptr, size_t)
DTOD(cuMemcpyDtoD, CUdeviceptr_v1, unsigned int)
DTOD(cuMemcpyDtoD_v2, CUdeviceptr, size_t)
DTOD(cuMemcpyDtoD_v2_ptds, CUdeviceptr, size_t)
DTOD_ASYNC(cuMemcpyDtoDAsync, CUdeviceptr_v1, unsigned int)
DTOD_ASYNC(cuMemcpyDtoDAsync_v2, CUdeviceptr, size_t)
DTOD_ASYNC(cuMemcpyDtoDAsync_v2_ptsz, CUdeviceptr, size_t)
UNIFIED(cuMemcpy)
UNIFIED(cuMemcpy_ptds)
UNIFIED_ASYNC(cuMemcpyAsync)
UNIFIED_ASYNC(cuMemcpyAsync_ptsz)
PEER(cuMemcpyPeer)
PEER(cuMemcpyPeer_ptds)
PEER_ASYNC(cuMemcpyPeerAsync)
PEER_ASYNC(cuMemcpyPeerAsync_ptsz)
