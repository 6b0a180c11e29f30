#include "hooks/wrap.h"

/*
 * Copies of rectangles and boxes: the descriptor names the memory types, and with them the
 * direction. The old and the new descriptors have members of equal names, so each rule is written
 * once, as a macro over the descriptor's type.
 */

static enum vt_direction direction_of(CUmemorytype dst, CUmemorytype src)
{
	bool to_host = dst == CU_MEMORYTYPE_HOST, from_host = src == CU_MEMORYTYPE_HOST;

	if (dst == CU_MEMORYTYPE_UNIFIED || src == CU_MEMORYTYPE_UNIFIED)
		return VT_DIR_UNIFIED;
	if (to_host)
		return from_host ? VT_DIR_H2H : VT_DIR_D2H;
	return from_host ? VT_DIR_H2D : VT_DIR_D2D;
}

/* Start of one side: of an array its handle, else the first byte that is touched. slice: rows of
 * one layer. */
#define START(box, side, z, slice)                                                                 \
	((box)->side##MemoryType == CU_MEMORYTYPE_ARRAY                                            \
			? ADDRESS((box)->side##Array)                                              \
			: ((box)->side##MemoryType == CU_MEMORYTYPE_HOST                           \
					  ? ADDRESS((box)->side##Host)                             \
					  : (uint64_t)(box)->side##Device) +                       \
				  ((uint64_t)(z) * (slice) + (box)->side##Y) *                     \
					  (box)->side##Pitch +                                     \
				  (box)->side##XInBytes)

#define ARRAY_FLAGS(box)                                                                           \
	(((box)->dstMemoryType == CU_MEMORYTYPE_ARRAY ? VT_COPY_DST_ARRAY : 0) |                   \
		((box)->srcMemoryType == CU_MEMORYTYPE_ARRAY ? VT_COPY_SRC_ARRAY : 0))

/* Bytes from row to row of a side; arrays do not tell. */
#define PITCH(box, side)                                                                           \
	((box)->side##MemoryType == CU_MEMORYTYPE_ARRAY ? 0 : (uint64_t)(box)->side##Pitch)
#define WIDER_PITCH(box) (PITCH(box, dst) > PITCH(box, src) ? PITCH(box, dst) : PITCH(box, src))

#define NOTE_2D(box, more_flags, stream_)                                                          \
	do {                                                                                       \
		if (box)                                                                           \
			event_copy(&call,                                                          \
				&(struct event_copy){                                              \
					.direction = direction_of(                                 \
						(box)->dstMemoryType, (box)->srcMemoryType),       \
					.flags = ARRAY_FLAGS(box) | (more_flags),                  \
					.dst = START(box, dst, 0, 0),                              \
					.src = START(box, src, 0, 0),                              \
					.bytes = (uint64_t)(box)->WidthInBytes * (box)->Height,    \
					.rows = (box)->Height,                                     \
					.pitch = WIDER_PITCH(box),                                 \
					.stream = ADDRESS(stream_)});                              \
	} while (0)

#define NOTE_3D(box, direction_, more_flags, stream_)                                              \
	do {                                                                                       \
		if (box)                                                                           \
			event_copy(&call,                                                          \
				&(struct event_copy){.direction = direction_,                      \
					.flags = ARRAY_FLAGS(box) | (more_flags),                  \
					.dst = START(box, dst, (box)->dstZ, (box)->dstHeight),     \
					.src = START(box, src, (box)->srcZ, (box)->srcHeight),     \
					.bytes = (uint64_t)(box)->WidthInBytes * (box)->Height *   \
						 (box)->Depth,                                     \
					.rows = (uint64_t)(box)->Height * (box)->Depth,            \
					.pitch = WIDER_PITCH(box),                                 \
					.stream = ADDRESS(stream_)});                              \
	} while (0)

#define BOX_2D(export, box_type)                                                                   \
	CUresult CUDAAPI export(const box_type *box)                                               \
	{                                                                                          \
		FORWARD(export, box);                                                              \
		NOTE_2D(box, 0, NULL);                                                             \
		return LEAVE();                                                                    \
	}

#define BOX_2D_ASYNC(export, box_type)                                                             \
	CUresult CUDAAPI export(const box_type *box, CUstream stream)                              \
	{                                                                                          \
		FORWARD_TIMED(export, stream, box, stream);                                        \
		NOTE_2D(box, wrap_flags_of_copy(&call, stream), stream);                           \
		return LEAVE();                                                                    \
	}

#define BOX_3D(export, box_type)                                                                   \
	CUresult CUDAAPI export(const box_type *box)                                               \
	{                                                                                          \
		FORWARD(export, box);                                                              \
		NOTE_3D(box, direction_of(box->dstMemoryType, box->srcMemoryType), 0, NULL);       \
		return LEAVE();                                                                    \
	}

#define BOX_3D_ASYNC(export, box_type)                                                             \
	CUresult CUDAAPI export(const box_type *box, CUstream stream)                              \
	{                                                                                          \
		FORWARD_TIMED(export, stream, box, stream);                                        \
		NOTE_3D(box, direction_of(box->dstMemoryType, box->srcMemoryType),                 \
			wrap_flags_of_copy(&call, stream), stream);                                \
		return LEAVE();                                                                    \
	}

BOX_2D(cuMemcpy2D, CUDA_MEMCPY2D_v1)
BOX_2D(cuMemcpy2D_v2, CUDA_MEMCPY2D)
BOX_2D(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D)
BOX_2D(cuMemcpy2DUnaligned, CUDA_MEMCPY2D_v1)
BOX_2D(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D)
BOX_2D(cuMemcpy2DUnaligned_v2_ptds, CUDA_MEMCPY2D)
BOX_2D_ASYNC(cuMemcpy2DAsync, CUDA_MEMCPY2D_v1)
BOX_2D_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D)
BOX_2D_ASYNC(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D)
BOX_3D(cuMemcpy3D, CUDA_MEMCPY3D_v1)
BOX_3D(cuMemcpy3D_v2, CUDA_MEMCPY3D)
BOX_3D(cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D)
BOX_3D_ASYNC(cuMemcpy3DAsync, CUDA_MEMCPY3D_v1)
BOX_3D_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D)
BOX_3D_ASYNC(cuMemcpy3DAsync_v2_ptsz, CUDA_MEMCPY3D)

/* Between contexts; from device to device it is a peer copy, and the host may still be one side. */
static enum vt_direction peer_direction_of(CUmemorytype dst, CUmemorytype src)
{
	enum vt_direction direction = direction_of(dst, src);

	return direction == VT_DIR_D2D ? VT_DIR_P2P : direction;
}

#define PEER_3D(export)                                                                            \
	CUresult CUDAAPI export(const CUDA_MEMCPY3D_PEER *box)                                     \
	{                                                                                          \
		FORWARD(export, box);                                                              \
		NOTE_3D(box, peer_direction_of(box->dstMemoryType, box->srcMemoryType),            \
			VT_COPY_PEER, NULL);                                                       \
		return LEAVE();                                                                    \
	}

#define PEER_3D_ASYNC(export)                                                                      \
	CUresult CUDAAPI export(const CUDA_MEMCPY3D_PEER *box, CUstream stream)                    \
	{                                                                                          \
		FORWARD_TIMED(export, stream, box, stream);                                        \
		NOTE_3D(box, peer_direction_of(box->dstMemoryType, box->srcMemoryType),            \
			VT_COPY_PEER | wrap_flags_of_copy(&call, stream), stream);                 \
		return LEAVE();                                                                    \
	}

PEER_3D(cuMemcpy3DPeer)
PEER_3D(cuMemcpy3DPeer_ptds)
PEER_3D_ASYNC(cuMemcpy3DPeerAsync)
PEER_3D_ASYNC(cuMemcpy3DPeerAsync_ptsz)
