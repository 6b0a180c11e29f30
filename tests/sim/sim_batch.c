/* Batches of copies: all are checked before the first is made, so a batch that fails does nothing.
 */
#include "sim.h"
#include "sim_bytes.h"

#if CUDA_VERSION >= 12080

/* The index of an operation; SIZE_MAX: the failure is not that of one. */
#define NO_OPERATION SIZE_MAX

struct batch {
	size_t n;
	CUstream stream;
	bool (*box)(const struct batch *batch, size_t i, struct sim_box *out);
	const CUdeviceptr *dsts, *srcs;
	const size_t *sizes;
	const CUDA_MEMCPY3D_BATCH_OP *operations;
};

static bool stream_valid(CUstream stream)
{
	return stream && stream != CU_STREAM_LEGACY;
}

static CUresult check_all(
	CUcontext ctx, const struct batch *batch, struct sim_plan *plans, size_t *failed)
{
	struct sim_box box;
	CUresult result;

	for (size_t i = 0; i < batch->n; i++) {
		box = (struct sim_box){0};
		result = batch->box(batch, i, &box) ? sim_box_check(ctx, &box, &plans[i])
						    : CUDA_ERROR_INVALID_VALUE;
		if (result != CUDA_SUCCESS) {
			*failed = i;
			return result;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult submit(CUcontext ctx, const struct batch *batch, size_t *failed)
{
	struct sim_plan *plans;
	u64 bytes = 0;
	CUresult result;

	if (!stream_valid(batch->stream) || batch->n == 0 || batch->n > UINT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_stream_known(batch->stream))
		return CUDA_ERROR_INVALID_HANDLE;
	plans = malloc(batch->n * sizeof(*plans));
	if (!plans)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = check_all(ctx, batch, plans, failed);
	if (result == CUDA_SUCCESS && !sim_stream_capturing(batch->stream)) {
		for (size_t i = 0; i < batch->n; i++) {
			u64 copied = sim_box_copy(&plans[i]);

			sim_clock_copy(ctx, batch->stream, false, plans[i].host, copied);
			bytes += copied;
		}
		sim_ledger_traffic(&sim.ledger.batches, bytes);
	}
	free(plans);
	return result;
}

static bool order_valid(CUmemcpySrcAccessOrder order)
{
	return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM &&
	       order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

static bool attributes_valid(
	const CUmemcpyAttributes *attributes, const size_t *firsts, size_t n_attributes, size_t n)
{
	if (!attributes || !firsts || n_attributes == 0 || n_attributes > n || firsts[0] != 0)
		return false;
	for (size_t i = 0; i < n_attributes; i++)
		if (!order_valid(attributes[i].srcAccessOrder) || firsts[i] >= n ||
			(i > 0 && firsts[i] <= firsts[i - 1]))
			return false;
	return true;
}

static bool linear_box(const struct batch *batch, size_t i, struct sim_box *out)
{
	out->dst.type = out->src.type = CU_MEMORYTYPE_UNIFIED;
	out->dst.address = batch->dsts[i];
	out->src.address = batch->srcs[i];
	out->width = batch->sizes[i];
	out->height = out->depth = 1;
	return out->width > 0;
}

static CUresult linear(CUcontext ctx, const struct batch *batch,
	const CUmemcpyAttributes *attributes, const size_t *firsts, size_t n_attributes,
	size_t *failed)
{
	if (!batch->dsts || !batch->srcs || !batch->sizes ||
		!attributes_valid(attributes, firsts, n_attributes, batch->n))
		return CUDA_ERROR_INVALID_VALUE;
	return submit(ctx, batch, failed);
}

/* Bytes of an element of an operand; 0: it has no size of its own. */
static u64 element_of(const CUmemcpy3DOperand *operand)
{
	CUarray array = operand->op.array.array;

	if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return 0;
	return sim_handle_known(&sim.arrays, array) ? array->element : 0;
}

static bool side_of(const CUmemcpy3DOperand *operand, u64 element, const CUextent3D *extent,
	struct sim_side *out)
{
	if (operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		out->type = CU_MEMORYTYPE_ARRAY;
		out->array = operand->op.array.array;
		out->x = operand->op.array.offset.x * element;
		out->y = operand->op.array.offset.y;
		out->z = operand->op.array.offset.z;
		return true;
	}
	out->type = CU_MEMORYTYPE_UNIFIED;
	out->address = operand->op.ptr.ptr;
	out->pitch = operand->op.ptr.rowLength * element;
	out->height = operand->op.ptr.layerHeight ? operand->op.ptr.layerHeight : extent->height;
	return operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER;
}

static bool operation_box(const struct batch *batch, size_t i, struct sim_box *out)
{
	const CUDA_MEMCPY3D_BATCH_OP *operation = &batch->operations[i];
	u64 dst = element_of(&operation->dst), src = element_of(&operation->src);
	u64 element = dst ? dst : src ? src : 1;

	if ((dst && src && dst != src) || !order_valid(operation->srcAccessOrder))
		return false;
	out->width = operation->extent.width * element;
	out->height = operation->extent.height;
	out->depth = operation->extent.depth;
	return out->width && out->height && out->depth &&
	       side_of(&operation->dst, element, &operation->extent, &out->dst) &&
	       side_of(&operation->src, element, &operation->extent, &out->src);
}

static CUresult boxes(CUcontext ctx, const struct batch *batch, u64 flags, size_t *failed)
{
	return batch->operations && !flags ? submit(ctx, batch, failed) : CUDA_ERROR_INVALID_VALUE;
}

#define COPY(expr)                                                                                 \
	SIM_CALL_THEN(                                                                             \
		NEED_CONTEXT, expr, if (result != CUDA_SUCCESS) { sim.ledger.failed_copies++; })
#define LINEAR                                                                                     \
	(&(struct batch){.n = count,                                                               \
		.stream = hStream,                                                                 \
		.box = linear_box,                                                                 \
		.dsts = dsts,                                                                      \
		.srcs = srcs,                                                                      \
		.sizes = sizes})
#define BOXES                                                                                      \
	(&(struct batch){                                                                          \
		.n = numOps, .stream = hStream, .box = operation_box, .operations = opList})

/* The first form tells which operation failed. */
static CUresult told(CUresult result, size_t *out, const size_t *failed)
{
	if (out && result != CUDA_SUCCESS)
		*out = *failed;
	return result;
}

#define LINEAR_FORM_1(name)                                                                        \
	CUresult name(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,           \
		CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, size_t *failIdx,    \
		CUstream hStream)                                                                  \
	{                                                                                          \
		size_t failed = NO_OPERATION;                                                      \
                                                                                                   \
		return told(COPY(linear(ctx, LINEAR, attrs, attrsIdxs, numAttrs, &failed)),        \
			failIdx, &failed);                                                         \
	}
#define BOXES_FORM_1(name)                                                                         \
	CUresult name(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,              \
		unsigned long long flags, CUstream hStream)                                        \
	{                                                                                          \
		size_t failed = NO_OPERATION;                                                      \
                                                                                                   \
		return told(COPY(boxes(ctx, BOXES, flags, &failed)), failIdx, &failed);            \
	}
#define LINEAR_FORM_2(name)                                                                        \
	CUresult name(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,           \
		CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, CUstream hStream)   \
	{                                                                                          \
		size_t failed;                                                                     \
                                                                                                   \
		return COPY(linear(ctx, LINEAR, attrs, attrsIdxs, numAttrs, &failed));             \
	}
#define BOXES_FORM_2(name)                                                                         \
	CUresult name(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags,     \
		CUstream hStream)                                                                  \
	{                                                                                          \
		size_t failed;                                                                     \
                                                                                                   \
		return COPY(boxes(ctx, BOXES, flags, &failed));                                    \
	}

LINEAR_FORM_1(cuMemcpyBatchAsync)
LINEAR_FORM_1(cuMemcpyBatchAsync_ptsz)
BOXES_FORM_1(cuMemcpy3DBatchAsync)
BOXES_FORM_1(cuMemcpy3DBatchAsync_ptsz)
#if CUDA_VERSION >= 13000
LINEAR_FORM_2(cuMemcpyBatchAsync_v2)
LINEAR_FORM_2(cuMemcpyBatchAsync_v2_ptsz)
BOXES_FORM_2(cuMemcpy3DBatchAsync_v2)
BOXES_FORM_2(cuMemcpy3DBatchAsync_v2_ptsz)
#endif

#endif

#if CUDA_VERSION >= 12060
/* There is no decompression engine. */
CUresult cuMemBatchDecompressAsync(CUmemDecompressParams *params, size_t count, unsigned int flags,
	size_t *error_index, CUstream stream)
{
	(void)params;
	(void)count;
	(void)flags;
	(void)error_index;
	(void)stream;
	return SIM_CALL(NEED_CONTEXT, CUDA_ERROR_NOT_SUPPORTED);
}

CUresult cuMemBatchDecompressAsync_ptsz(CUmemDecompressParams *params, size_t count,
	unsigned int flags, size_t *error_index, CUstream stream)
{
	(void)params;
	(void)count;
	(void)flags;
	(void)error_index;
	(void)stream;
	return SIM_CALL(NEED_CONTEXT, CUDA_ERROR_NOT_SUPPORTED);
}
#endif
