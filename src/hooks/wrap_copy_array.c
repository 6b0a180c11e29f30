#include "hooks/wrap.h"

/* Linear copies from and to one-dimensional arrays. The array's side is recorded by its handle. */

static void note(const struct call *call, enum vt_direction direction, unsigned int flags,
	uint64_t dst, uint64_t src, uint64_t bytes, CUstream stream)
{
	event_copy(call, &(struct event_copy){.direction = direction,
				 .flags = flags,
				 .dst = dst,
				 .src = src,
				 .bytes = bytes,
				 .stream = ADDRESS(stream)});
}

#define TO_ARRAY(export, direction, src_type, as_src, size_type)                                   \
	CUresult CUDAAPI export(CUarray dst, size_type offset, src_type src, size_type bytes)      \
	{                                                                                          \
		FORWARD(export, dst, offset, src, bytes);                                          \
		note(&call, direction, VT_COPY_DST_ARRAY, ADDRESS(dst), as_src(src), bytes, NULL); \
		return LEAVE();                                                                    \
	}

#define FROM_ARRAY(export, direction, dst_type, as_dst, size_type)                                 \
	CUresult CUDAAPI export(dst_type dst, CUarray src, size_type offset, size_type bytes)      \
	{                                                                                          \
		FORWARD(export, dst, src, offset, bytes);                                          \
		note(&call, direction, VT_COPY_SRC_ARRAY, as_dst(dst), ADDRESS(src), bytes, NULL); \
		return LEAVE();                                                                    \
	}

#define ARRAY_TO_ARRAY(export, size_type)                                                          \
	CUresult CUDAAPI export(CUarray dst, size_type dst_offset, CUarray src,                    \
		size_type src_offset, size_type bytes)                                             \
	{                                                                                          \
		FORWARD(export, dst, dst_offset, src, src_offset, bytes);                          \
		note(&call, VT_DIR_D2D, VT_COPY_DST_ARRAY | VT_COPY_SRC_ARRAY, ADDRESS(dst),       \
			ADDRESS(src), bytes, NULL);                                                \
		return LEAVE();                                                                    \
	}

#define HOST_TO_ARRAY_ASYNC(export, size_type)                                                     \
	CUresult CUDAAPI export(                                                                   \
		CUarray dst, size_type offset, const void *src, size_type bytes, CUstream stream)  \
	{                                                                                          \
		FORWARD_TIMED(export, stream, dst, offset, src, bytes, stream);                    \
		note(&call, VT_DIR_H2D, wrap_flags_of_copy(&call, stream) | VT_COPY_DST_ARRAY,     \
			ADDRESS(dst), ADDRESS(src), bytes, stream);                                \
		return LEAVE();                                                                    \
	}

#define ARRAY_TO_HOST_ASYNC(export, size_type)                                                     \
	CUresult CUDAAPI export(                                                                   \
		void *dst, CUarray src, size_type offset, size_type bytes, CUstream stream)        \
	{                                                                                          \
		FORWARD_TIMED(export, stream, dst, src, offset, bytes, stream);                    \
		note(&call, VT_DIR_D2H, wrap_flags_of_copy(&call, stream) | VT_COPY_SRC_ARRAY,     \
			ADDRESS(dst), ADDRESS(src), bytes, stream);                                \
		return LEAVE();                                                                    \
	}

#define SELF(address) (address)

TO_ARRAY(cuMemcpyDtoA, VT_DIR_D2D, CUdeviceptr_v1, SELF, unsigned int)
TO_ARRAY(cuMemcpyDtoA_v2, VT_DIR_D2D, CUdeviceptr, SELF, size_t)
TO_ARRAY(cuMemcpyDtoA_v2_ptds, VT_DIR_D2D, CUdeviceptr, SELF, size_t)
TO_ARRAY(cuMemcpyHtoA, VT_DIR_H2D, const void *, ADDRESS, unsigned int)
TO_ARRAY(cuMemcpyHtoA_v2, VT_DIR_H2D, const void *, ADDRESS, size_t)
TO_ARRAY(cuMemcpyHtoA_v2_ptds, VT_DIR_H2D, const void *, ADDRESS, size_t)
FROM_ARRAY(cuMemcpyAtoD, VT_DIR_D2D, CUdeviceptr_v1, SELF, unsigned int)
FROM_ARRAY(cuMemcpyAtoD_v2, VT_DIR_D2D, CUdeviceptr, SELF, size_t)
FROM_ARRAY(cuMemcpyAtoD_v2_ptds, VT_DIR_D2D, CUdeviceptr, SELF, size_t)
FROM_ARRAY(cuMemcpyAtoH, VT_DIR_D2H, void *, ADDRESS, unsigned int)
FROM_ARRAY(cuMemcpyAtoH_v2, VT_DIR_D2H, void *, ADDRESS, size_t)
FROM_ARRAY(cuMemcpyAtoH_v2_ptds, VT_DIR_D2H, void *, ADDRESS, size_t)
ARRAY_TO_ARRAY(cuMemcpyAtoA, unsigned int)
ARRAY_TO_ARRAY(cuMemcpyAtoA_v2, size_t)
ARRAY_TO_ARRAY(cuMemcpyAtoA_v2_ptds, size_t)
HOST_TO_ARRAY_ASYNC(cuMemcpyHtoAAsync, unsigned int)
HOST_TO_ARRAY_ASYNC(cuMemcpyHtoAAsync_v2, size_t)
HOST_TO_ARRAY_ASYNC(cuMemcpyHtoAAsync_v2_ptsz, size_t)
ARRAY_TO_HOST_ASYNC(cuMemcpyAtoHAsync, unsigned int)
ARRAY_TO_HOST_ASYNC(cuMemcpyAtoHAsync_v2, size_t)
ARRAY_TO_HOST_ASYNC(cuMemcpyAtoHAsync_v2_ptsz, size_t)
