#include "hooks/wrap.h"

static void note_copy(const struct call *call, enum vt_direction direction, unsigned int flags,
	uint64_t dst, uint64_t src, uint64_t bytes, CUstream stream)
{
	event_copy(call, &(struct event_copy){.direction = direction,
				 .flags = flags,
				 .dst = dst,
				 .src = src,
				 .bytes = bytes,
				 .stream = ADDRESS(stream)});
}

/*
 * All linear copies have one of four shapes, in a synchronous and an asynchronous form. as_dst and
 * as_src turn the arguments into addresses; the compiler checks each definition against the
 * vendor's declaration.
 */
#define COPY(export, direction, dst_type, as_dst, src_type, as_src, size_type)                     \
	CUresult CUDAAPI export(dst_type dst, src_type src, size_type bytes)                       \
	{                                                                                          \
		FORWARD(export, dst, src, bytes);                                                  \
		note_copy(&call, direction, 0, as_dst(dst), as_src(src), bytes, NULL);             \
		return LEAVE();                                                                    \
	}

#define COPY_ASYNC(export, direction, dst_type, as_dst, src_type, as_src, size_type)               \
	CUresult CUDAAPI export(dst_type dst, src_type src, size_type bytes, CUstream stream)      \
	{                                                                                          \
		FORWARD_TIMED(export, stream, dst, src, bytes, stream);                            \
		note_copy(&call, direction, wrap_flags_of_copy(&call, stream), as_dst(dst),        \
			as_src(src), bytes, stream);                                               \
		return LEAVE();                                                                    \
	}

#define SELF(address) (address)

#define UNIFIED(form, export)                                                                      \
	form(export, VT_DIR_UNIFIED, CUdeviceptr, SELF, CUdeviceptr, SELF, size_t)
#define H2D(form, export, pointer, size)                                                           \
	form(export, VT_DIR_H2D, pointer, SELF, const void *, ADDRESS, size)
#define D2H(form, export, pointer, size)                                                           \
	form(export, VT_DIR_D2H, void *, ADDRESS, pointer, SELF, size)
#define D2D(form, export, pointer, size)                                                           \
	form(export, VT_DIR_D2D, pointer, SELF, pointer, SELF, size)

UNIFIED(COPY, cuMemcpy)
UNIFIED(COPY, cuMemcpy_ptds)
UNIFIED(COPY_ASYNC, cuMemcpyAsync)
UNIFIED(COPY_ASYNC, cuMemcpyAsync_ptsz)

H2D(COPY, cuMemcpyHtoD, CUdeviceptr_v1, unsigned int)
H2D(COPY, cuMemcpyHtoD_v2, CUdeviceptr, size_t)
H2D(COPY, cuMemcpyHtoD_v2_ptds, CUdeviceptr, size_t)
H2D(COPY_ASYNC, cuMemcpyHtoDAsync, CUdeviceptr_v1, unsigned int)
H2D(COPY_ASYNC, cuMemcpyHtoDAsync_v2, CUdeviceptr, size_t)
H2D(COPY_ASYNC, cuMemcpyHtoDAsync_v2_ptsz, CUdeviceptr, size_t)

D2H(COPY, cuMemcpyDtoH, CUdeviceptr_v1, unsigned int)
D2H(COPY, cuMemcpyDtoH_v2, CUdeviceptr, size_t)
D2H(COPY, cuMemcpyDtoH_v2_ptds, CUdeviceptr, size_t)
D2H(COPY_ASYNC, cuMemcpyDtoHAsync, CUdeviceptr_v1, unsigned int)
D2H(COPY_ASYNC, cuMemcpyDtoHAsync_v2, CUdeviceptr, size_t)
D2H(COPY_ASYNC, cuMemcpyDtoHAsync_v2_ptsz, CUdeviceptr, size_t)

D2D(COPY, cuMemcpyDtoD, CUdeviceptr_v1, unsigned int)
D2D(COPY, cuMemcpyDtoD_v2, CUdeviceptr, size_t)
D2D(COPY, cuMemcpyDtoD_v2_ptds, CUdeviceptr, size_t)
D2D(COPY_ASYNC, cuMemcpyDtoDAsync, CUdeviceptr_v1, unsigned int)
D2D(COPY_ASYNC, cuMemcpyDtoDAsync_v2, CUdeviceptr, size_t)
D2D(COPY_ASYNC, cuMemcpyDtoDAsync_v2_ptsz, CUdeviceptr, size_t)

/* Between contexts, named in the call. */
#define PEER(export)                                                                               \
	CUresult CUDAAPI export(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,           \
		CUcontext src_context, size_t bytes)                                               \
	{                                                                                          \
		FORWARD(export, dst, dst_context, src, src_context, bytes);                        \
		note_copy(&call, VT_DIR_P2P, 0, dst, src, bytes, NULL);                            \
		return LEAVE();                                                                    \
	}

#define PEER_ASYNC(export)                                                                         \
	CUresult CUDAAPI export(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,           \
		CUcontext src_context, size_t bytes, CUstream stream)                              \
	{                                                                                          \
		FORWARD_TIMED(export, stream, dst, dst_context, src, src_context, bytes, stream);  \
		note_copy(&call, VT_DIR_P2P, wrap_flags_of_copy(&call, stream), dst, src, bytes,   \
			stream);                                                                   \
		return LEAVE();                                                                    \
	}

PEER(cuMemcpyPeer)
PEER(cuMemcpyPeer_ptds)
PEER_ASYNC(cuMemcpyPeerAsync)
PEER_ASYNC(cuMemcpyPeerAsync_ptsz)
