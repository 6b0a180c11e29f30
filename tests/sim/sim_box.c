/* Copies of rectangles and boxes, of memory and arrays; their descriptors say where. */
#include "sim.h"
#include "sim_bytes.h"

struct place { /* a side that has been looked up */
	struct sim_end end;
	u64 pitch, layer;
};

/* The part of an array that the box covers. */
static CUresult locate_array(
	const struct sim_box *box, const struct sim_side *side, struct place *p)
{
	CUarray array = side->array;

	if (!sim_handle_known(&sim.arrays, array))
		return CUDA_ERROR_INVALID_HANDLE;
	if (side->x > array->width || box->width > array->width - side->x ||
		side->y > array->height || box->height > array->height - side->y ||
		side->z > array->depth || box->depth > array->depth - side->z)
		return CUDA_ERROR_INVALID_VALUE;
	p->end.dev = array->range->dev;
	p->pitch = array->row_bytes;
	p->layer = array->row_bytes * array->height;
	p->end.address = array->range->base + array->offset + side->z * p->layer +
			 side->y * p->pitch + side->x;
	return CUDA_SUCCESS;
}

/* The bytes from the first to the last of the box; false: more than there are addresses. */
static bool span(const struct sim_box *box, const struct place *p, u64 *out)
{
	u64 layers, rows;

	return !__builtin_mul_overflow(box->depth - 1, p->layer, &layers) &&
	       !__builtin_mul_overflow(box->height - 1, p->pitch, &rows) &&
	       !__builtin_add_overflow(layers, rows, out) &&
	       !__builtin_add_overflow(*out, box->width, out);
}

static CUresult locate_memory(CUcontext ctx, const struct sim_box *box, const struct sim_side *side,
	bool write, struct place *p)
{
	u64 height = side->height ? side->height : side->y + box->height;
	u64 n;

	p->pitch = side->pitch ? side->pitch : side->x + box->width;
	if (side->x > p->pitch || box->width > p->pitch - side->x || side->y > height ||
		box->height > height - side->y ||
		__builtin_mul_overflow(p->pitch, height, &p->layer) || !span(box, p, &n))
		return CUDA_ERROR_INVALID_VALUE;
	p->end.address = side->address + side->z * p->layer + side->y * p->pitch + side->x;
	if (side->type == CU_MEMORYTYPE_HOST)
		return side->address && !sim_address_is_device(side->address)
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	return sim_end_check(&p->end, n, ctx, write, side->type == CU_MEMORYTYPE_UNIFIED);
}

static CUresult locate(CUcontext ctx, const struct sim_box *box, const struct sim_side *side,
	bool write, struct place *p)
{
	*p = (struct place){0};
	switch (side->type) {
	case CU_MEMORYTYPE_ARRAY:
		return locate_array(box, side, p);
	case CU_MEMORYTYPE_HOST:
	case CU_MEMORYTYPE_DEVICE:
	case CU_MEMORYTYPE_UNIFIED:
		return locate_memory(ctx, box, side, write, p);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult sim_box_check(CUcontext ctx, const struct sim_box *box, struct sim_plan *plan)
{
	struct place dst, src;
	CUresult result;

	*plan = (struct sim_plan){.width = box->width, .height = box->height, .depth = box->depth};
	if (!box->width || !box->height || !box->depth)
		return CUDA_SUCCESS;
	result = locate(ctx, box, &box->dst, true, &dst);
	if (result == CUDA_SUCCESS)
		result = locate(ctx, box, &box->src, false, &src);
	if (result != CUDA_SUCCESS)
		return result;
	plan->dst.end = dst.end;
	plan->dst.pitch = dst.pitch;
	plan->dst.layer = dst.layer;
	plan->src.end = src.end;
	plan->src.pitch = src.pitch;
	plan->src.layer = src.layer;
	if (!dst.end.dev)
		plan->direction = src.end.dev ? CUSIM_D2H : CUSIM_H2H;
	else if (!src.end.dev)
		plan->direction = CUSIM_H2D;
	else
		plan->direction = box->peer || dst.end.dev != src.end.dev ? CUSIM_P2P : CUSIM_D2D;
	plan->host = sim_host_of(dst.end.address, src.end.address);
	plan->dev = dst.end.dev ? dst.end.dev : src.end.dev ? src.end.dev : ctx->dev;
	return CUDA_SUCCESS;
}

u64 sim_box_copy(const struct sim_plan *plan)
{
	u64 bytes = plan->width * plan->height * plan->depth;

	if (bytes == 0)
		return 0;
	for (u64 z = 0; z < plan->depth; z++)
		for (u64 y = 0; y < plan->height; y++)
			sim_move(plan->dst.end.address + z * plan->dst.layer + y * plan->dst.pitch,
				plan->src.end.address + z * plan->src.layer + y * plan->src.pitch,
				plan->width);
	sim_ledger_copy(plan->dev, plan->direction, plan->host, bytes);
	return bytes;
}

static CUresult copy(CUcontext ctx, const struct sim_box *box, CUstream stream, bool sync)
{
	struct sim_plan plan;
	CUresult result = sim_box_check(ctx, box, &plan);

	if (result == CUDA_SUCCESS)
		sim_clock_copy(ctx, stream, sync, plan.host, sim_box_copy(&plan));
	return result;
}

static CUresult copy_sync(CUcontext ctx, const struct sim_box *box)
{
	return sim_capture_allows_implicit() ? copy(ctx, box, NULL, true)
					     : CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

static CUresult copy_async(CUcontext ctx, const struct sim_box *box, CUstream stream)
{
	if (!sim_stream_known(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	return sim_stream_capturing(stream) ? CUDA_SUCCESS : copy(ctx, box, stream, false);
}

/* Where memory of the type is, by the fields of a descriptor. */
#define ADDRESS(c, side)                                                                           \
	((c)->side##MemoryType == CU_MEMORYTYPE_HOST ? (u64)(uintptr_t)(c)->side##Host             \
						     : (u64)(c)->side##Device)
#define SIDE_2D(c, side)                                                                           \
	{                                                                                          \
		.type = (c)->side##MemoryType, .address = ADDRESS(c, side),                        \
		.array = (c)->side##Array, .x = (c)->side##XInBytes, .y = (c)->side##Y,            \
		.pitch = (c)->side##Pitch                                                          \
	}
#define SIDE_3D(c, side)                                                                           \
	{                                                                                          \
		.type = (c)->side##MemoryType, .address = ADDRESS(c, side),                        \
		.array = (c)->side##Array, .x = (c)->side##XInBytes, .y = (c)->side##Y,            \
		.z = (c)->side##Z, .pitch = (c)->side##Pitch, .height = (c)->side##Height          \
	}
#define BOX_2D(c)                                                                                  \
	(&(struct sim_box){.dst = SIDE_2D(c, dst),                                                 \
		.src = SIDE_2D(c, src),                                                            \
		.width = (c)->WidthInBytes,                                                        \
		.height = (c)->Height,                                                             \
		.depth = 1})
#define BOX_3D(c, names_two)                                                                       \
	(&(struct sim_box){.dst = SIDE_3D(c, dst),                                                 \
		.src = SIDE_3D(c, src),                                                            \
		.width = (c)->WidthInBytes,                                                        \
		.height = (c)->Height,                                                             \
		.depth = (c)->Depth,                                                               \
		.peer = names_two})

static bool is_device(CUmemorytype type)
{
	return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
}

/* The contexts count where the memory is neither an array nor the host's. */
static bool contexts_known(const CUDA_MEMCPY3D_PEER *c)
{
	return c &&
	       (!is_device(c->dstMemoryType) || sim_handle_known(&sim.contexts, c->dstContext)) &&
	       (!is_device(c->srcMemoryType) || sim_handle_known(&sim.contexts, c->srcContext));
}

#define COPY(expr)                                                                                 \
	SIM_CALL_THEN(                                                                             \
		NEED_CONTEXT, expr, if (result != CUDA_SUCCESS) { sim.ledger.failed_copies++; })
#define IF(condition, expr) ((condition) ? (expr) : CUDA_ERROR_INVALID_VALUE)

/* The exports of one kind differ in their names and descriptors only. */
#define SYNC_2D(name, type)                                                                        \
	CUresult name(const type *pCopy)                                                           \
	{                                                                                          \
		return COPY(IF(pCopy, copy_sync(ctx, BOX_2D(pCopy))));                             \
	}
#define ASYNC_2D(name, type)                                                                       \
	CUresult name(const type *pCopy, CUstream hStream)                                         \
	{                                                                                          \
		return COPY(IF(pCopy, copy_async(ctx, BOX_2D(pCopy), hStream)));                   \
	}
#define SYNC_3D(name, type)                                                                        \
	CUresult name(const type *pCopy)                                                           \
	{                                                                                          \
		return COPY(IF(pCopy, copy_sync(ctx, BOX_3D(pCopy, false))));                      \
	}
#define ASYNC_3D(name, type)                                                                       \
	CUresult name(const type *pCopy, CUstream hStream)                                         \
	{                                                                                          \
		return COPY(IF(pCopy, copy_async(ctx, BOX_3D(pCopy, false), hStream)));            \
	}
#define PEER(name)                                                                                 \
	CUresult name(const CUDA_MEMCPY3D_PEER *pCopy)                                             \
	{                                                                                          \
		return COPY(contexts_known(pCopy) ? copy_sync(ctx, BOX_3D(pCopy, true))            \
						  : CUDA_ERROR_INVALID_CONTEXT);                   \
	}
#define PEER_ASYNC(name)                                                                           \
	CUresult name(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)                           \
	{                                                                                          \
		return COPY(contexts_known(pCopy) ? copy_async(ctx, BOX_3D(pCopy, true), hStream)  \
						  : CUDA_ERROR_INVALID_CONTEXT);                   \
	}

SYNC_2D(cuMemcpy2D, CUDA_MEMCPY2D_v1)
SYNC_2D(cuMemcpy2D_v2, CUDA_MEMCPY2D)
SYNC_2D(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D)
SYNC_2D(cuMemcpy2DUnaligned, CUDA_MEMCPY2D_v1)
SYNC_2D(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D)
SYNC_2D(cuMemcpy2DUnaligned_v2_ptds, CUDA_MEMCPY2D)
SYNC_3D(cuMemcpy3D, CUDA_MEMCPY3D_v1)
SYNC_3D(cuMemcpy3D_v2, CUDA_MEMCPY3D)
SYNC_3D(cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D)
ASYNC_2D(cuMemcpy2DAsync, CUDA_MEMCPY2D_v1)
ASYNC_2D(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D)
ASYNC_2D(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D)
ASYNC_3D(cuMemcpy3DAsync, CUDA_MEMCPY3D_v1)
ASYNC_3D(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D)
ASYNC_3D(cuMemcpy3DAsync_v2_ptsz, CUDA_MEMCPY3D)
PEER(cuMemcpy3DPeer)
PEER(cuMemcpy3DPeer_ptds)
PEER_ASYNC(cuMemcpy3DPeerAsync)
PEER_ASYNC(cuMemcpy3DPeerAsync_ptsz)

/* Copies of a row: from an offset in a one-dimensional array, or an address. */
static bool one_row(const struct sim_side *side)
{
	return side->type != CU_MEMORYTYPE_ARRAY || !sim_handle_known(&sim.arrays, side->array) ||
	       (side->array->height == 1 && side->array->depth == 1);
}

static CUresult row(CUcontext ctx, const struct sim_side *dst, const struct sim_side *src, u64 n)
{
	if (!one_row(dst) || !one_row(src))
		return CUDA_ERROR_INVALID_VALUE;
	return copy_sync(ctx, &(struct sim_box){*dst, *src, n, 1, 1, false});
}

static CUresult row_async(CUcontext ctx, const struct sim_side *dst, const struct sim_side *src,
	u64 n, CUstream stream)
{
	if (!one_row(dst) || !one_row(src))
		return CUDA_ERROR_INVALID_VALUE;
	return copy_async(ctx, &(struct sim_box){*dst, *src, n, 1, 1, false}, stream);
}

#define IN(handle, offset)                                                                         \
	(&(struct sim_side){.type = CU_MEMORYTYPE_ARRAY, .array = handle, .x = offset})
#define DEVICE(at) (&(struct sim_side){.type = CU_MEMORYTYPE_DEVICE, .address = at})
#define HOST(p)	   (&(struct sim_side){.type = CU_MEMORYTYPE_HOST, .address = (u64)(uintptr_t)(p)})

#define DTOA(name, address, count)                                                                 \
	CUresult name(CUarray dstArray, count dstOffset, address srcDevice, count ByteCount)       \
	{                                                                                          \
		return COPY(row(ctx, IN(dstArray, dstOffset), DEVICE(srcDevice), ByteCount));      \
	}
#define ATOD(name, address, count)                                                                 \
	CUresult name(address dstDevice, CUarray srcArray, count srcOffset, count ByteCount)       \
	{                                                                                          \
		return COPY(row(ctx, DEVICE(dstDevice), IN(srcArray, srcOffset), ByteCount));      \
	}
#define HTOA(name, count)                                                                          \
	CUresult name(CUarray dstArray, count dstOffset, const void *srcHost, count ByteCount)     \
	{                                                                                          \
		return COPY(row(ctx, IN(dstArray, dstOffset), HOST(srcHost), ByteCount));          \
	}
#define ATOH(name, count)                                                                          \
	CUresult name(void *dstHost, CUarray srcArray, count srcOffset, count ByteCount)           \
	{                                                                                          \
		return COPY(row(ctx, HOST(dstHost), IN(srcArray, srcOffset), ByteCount));          \
	}
#define ATOA(name, count)                                                                          \
	CUresult name(CUarray dstArray, count dstOffset, CUarray srcArray, count srcOffset,        \
		count ByteCount)                                                                   \
	{                                                                                          \
		return COPY(                                                                       \
			row(ctx, IN(dstArray, dstOffset), IN(srcArray, srcOffset), ByteCount));    \
	}
#define HTOA_ASYNC(name, count)                                                                    \
	CUresult name(CUarray dstArray, count dstOffset, const void *srcHost, count ByteCount,     \
		CUstream hStream)                                                                  \
	{                                                                                          \
		return COPY(row_async(                                                             \
			ctx, IN(dstArray, dstOffset), HOST(srcHost), ByteCount, hStream));         \
	}
#define ATOH_ASYNC(name, count)                                                                    \
	CUresult name(void *dstHost, CUarray srcArray, count srcOffset, count ByteCount,           \
		CUstream hStream)                                                                  \
	{                                                                                          \
		return COPY(row_async(                                                             \
			ctx, HOST(dstHost), IN(srcArray, srcOffset), ByteCount, hStream));         \
	}

DTOA(cuMemcpyDtoA, CUdeviceptr_v1, unsigned int)
DTOA(cuMemcpyDtoA_v2, CUdeviceptr, size_t)
DTOA(cuMemcpyDtoA_v2_ptds, CUdeviceptr, size_t)
ATOD(cuMemcpyAtoD, CUdeviceptr_v1, unsigned int)
ATOD(cuMemcpyAtoD_v2, CUdeviceptr, size_t)
ATOD(cuMemcpyAtoD_v2_ptds, CUdeviceptr, size_t)
HTOA(cuMemcpyHtoA, unsigned int)
HTOA(cuMemcpyHtoA_v2, size_t)
HTOA(cuMemcpyHtoA_v2_ptds, size_t)
ATOH(cuMemcpyAtoH, unsigned int)
ATOH(cuMemcpyAtoH_v2, size_t)
ATOH(cuMemcpyAtoH_v2_ptds, size_t)
ATOA(cuMemcpyAtoA, unsigned int)
ATOA(cuMemcpyAtoA_v2, size_t)
ATOA(cuMemcpyAtoA_v2_ptds, size_t)
HTOA_ASYNC(cuMemcpyHtoAAsync, unsigned int)
HTOA_ASYNC(cuMemcpyHtoAAsync_v2, size_t)
HTOA_ASYNC(cuMemcpyHtoAAsync_v2_ptsz, size_t)
ATOH_ASYNC(cuMemcpyAtoHAsync, unsigned int)
ATOH_ASYNC(cuMemcpyAtoHAsync_v2, size_t)
ATOH_ASYNC(cuMemcpyAtoHAsync_v2_ptsz, size_t)
