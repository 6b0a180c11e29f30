#include "hooks/wrap.h"
#include "record/notes.h"

/* One submission of many copies: each descriptor is a record, all but the first marked as of the
 * same call. */

#if CUDA_VERSION >= 12080
/* Its descriptors may be what is wrong with it: they are not looked at. */
static void note_refused(const struct call *call, CUstream stream)
{
	event_copy(call, &(struct event_copy){.direction = VT_DIR_UNIFIED,
				 .flags = VT_COPY_ASYNC,
				 .stream = ADDRESS(stream)});
}

static void note_batch(const struct call *call, const CUdeviceptr *dsts, const CUdeviceptr *srcs,
	const size_t *sizes, size_t count, CUstream stream)
{
	unsigned int flags = wrap_flags_of_copy(call, stream);

	if (call->result) {
		note_refused(call, stream);
		return;
	}
	for (size_t i = 0; i < count; i++)
		event_copy(call, &(struct event_copy){.direction = VT_DIR_UNIFIED,
					 .flags = flags | (i ? VT_COPY_SAME_CALL : 0),
					 .dst = dsts[i],
					 .src = srcs[i],
					 .bytes = sizes[i],
					 .stream = ADDRESS(stream)});
}

/* The size of an array's texel is not in the descriptor, so for arrays the bytes are not known
 * here: the pointer side's row length and the extents are in texels too. They are counted as 0
 * bytes, one copy. */
static void note_boxes(
	const struct call *call, const CUDA_MEMCPY3D_BATCH_OP *boxes, size_t count, CUstream stream)
{
	unsigned int flags = wrap_flags_of_copy(call, stream);

	if (call->result) {
		note_refused(call, stream);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		bool to_array = boxes[i].dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
		bool from_array = boxes[i].src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
		const CUextent3D *extent = &boxes[i].extent;

		event_copy(call,
			&(struct event_copy){
				.direction = to_array && from_array ? VT_DIR_D2D : VT_DIR_UNIFIED,
				.flags = flags | (i ? VT_COPY_SAME_CALL : 0) |
					 (to_array ? VT_COPY_DST_ARRAY : 0) |
					 (from_array ? VT_COPY_SRC_ARRAY : 0),
				.dst = to_array ? ADDRESS(boxes[i].dst.op.array.array)
						: boxes[i].dst.op.ptr.ptr,
				.src = from_array ? ADDRESS(boxes[i].src.op.array.array)
						  : boxes[i].src.op.ptr.ptr,
				.bytes = to_array || from_array
						 ? 0
						 : (uint64_t)extent->width * extent->height *
							   extent->depth,
				.rows = (uint64_t)extent->height * extent->depth,
				.stream = ADDRESS(stream)});
	}
}

#define BATCH_WITH_FAIL_INDEX(export)                                                              \
	CUresult CUDAAPI export(CUdeviceptr * dsts, CUdeviceptr * srcs, size_t * sizes,            \
		size_t count, CUmemcpyAttributes * attrs, size_t * attrIdxs, size_t numAttrs,      \
		size_t * failIdx, CUstream hStream)                                                \
	{                                                                                          \
		FORWARD_TIMED(export, hStream, dsts, srcs, sizes, count, attrs, attrIdxs,          \
			numAttrs, failIdx, hStream);                                               \
		note_batch(&call, dsts, srcs, sizes, count, hStream);                              \
		return LEAVE();                                                                    \
	}

#define BOXES_WITH_FAIL_INDEX(export)                                                              \
	CUresult CUDAAPI export(size_t numOps, CUDA_MEMCPY3D_BATCH_OP * opList, size_t * failIdx,  \
		unsigned long long flags, CUstream hStream)                                        \
	{                                                                                          \
		FORWARD_TIMED(export, hStream, numOps, opList, failIdx, flags, hStream);           \
		note_boxes(&call, opList, numOps, hStream);                                        \
		return LEAVE();                                                                    \
	}

BATCH_WITH_FAIL_INDEX(cuMemcpyBatchAsync)
BATCH_WITH_FAIL_INDEX(cuMemcpyBatchAsync_ptsz)
BOXES_WITH_FAIL_INDEX(cuMemcpy3DBatchAsync)
BOXES_WITH_FAIL_INDEX(cuMemcpy3DBatchAsync_ptsz)
#endif

#if CUDA_VERSION >= 13000
#define BATCH(export)                                                                              \
	CUresult CUDAAPI export(CUdeviceptr * dsts, CUdeviceptr * srcs, size_t * sizes,            \
		size_t count, CUmemcpyAttributes * attrs, size_t * attrsIdxs, size_t numAttrs,     \
		CUstream hStream)                                                                  \
	{                                                                                          \
		FORWARD_TIMED(export, hStream, dsts, srcs, sizes, count, attrs, attrsIdxs,         \
			numAttrs, hStream);                                                        \
		note_batch(&call, dsts, srcs, sizes, count, hStream);                              \
		return LEAVE();                                                                    \
	}

#define BOXES(export)                                                                              \
	CUresult CUDAAPI export(size_t numOps, CUDA_MEMCPY3D_BATCH_OP * opList,                    \
		unsigned long long flags, CUstream hStream)                                        \
	{                                                                                          \
		FORWARD_TIMED(export, hStream, numOps, opList, flags, hStream);                    \
		note_boxes(&call, opList, numOps, hStream);                                        \
		return LEAVE();                                                                    \
	}

BATCH(cuMemcpyBatchAsync_v2)
BATCH(cuMemcpyBatchAsync_v2_ptsz)
BOXES(cuMemcpy3DBatchAsync_v2)
BOXES(cuMemcpy3DBatchAsync_v2_ptsz)
#endif

#if CUDA_VERSION >= 12060
/* How much is written is known to the device alone, when it is done. */
#define DECOMPRESS(export)                                                                         \
	CUresult CUDAAPI export(CUmemDecompressParams * paramsArray, size_t count,                 \
		unsigned int flags, size_t *errorIndex, CUstream stream)                           \
	{                                                                                          \
		FORWARD(export, paramsArray, count, flags, errorIndex, stream);                    \
		if (!call.result)                                                                  \
			notes_say(NOTE_DECOMPRESSED);                                              \
		return LEAVE();                                                                    \
	}

DECOMPRESS(cuMemBatchDecompressAsync)
DECOMPRESS(cuMemBatchDecompressAsync_ptsz)
#endif
