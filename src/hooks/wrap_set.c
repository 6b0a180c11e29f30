#include "hooks/wrap.h"

/* Sets of one and two dimensions, with the width of an element in bytes, in a synchronous and an
 * asynchronous form. */
#define SET_1D(export, pointer, value_type, size_type, width)                                      \
	CUresult CUDAAPI export(pointer dst, value_type value, size_type n)                        \
	{                                                                                          \
		FORWARD(export, dst, value, n);                                                    \
		event_set(&call, 0, dst, (uint64_t)n *(width), 0);                                 \
		return LEAVE();                                                                    \
	}

#define SET_1D_ASYNC(export, value_type, width)                                                    \
	CUresult CUDAAPI export(CUdeviceptr dst, value_type value, size_t n, CUstream stream)      \
	{                                                                                          \
		FORWARD(export, dst, value, n, stream);                                            \
		event_set(&call, wrap_flags_on(&call, stream), dst, (uint64_t)n *(width),          \
			ADDRESS(stream));                                                          \
		return LEAVE();                                                                    \
	}

#define SET_2D(export, pointer, value_type, size_type, width)                                      \
	CUresult CUDAAPI export(                                                                   \
		pointer dst, size_type pitch, value_type value, size_type columns, size_type rows) \
	{                                                                                          \
		FORWARD(export, dst, pitch, value, columns, rows);                                 \
		event_set(&call, 0, dst, (uint64_t)columns *rows *(width), 0);                     \
		return LEAVE();                                                                    \
	}

#define SET_2D_ASYNC(export, value_type, width)                                                    \
	CUresult CUDAAPI export(CUdeviceptr dst, size_t pitch, value_type value, size_t columns,   \
		size_t rows, CUstream stream)                                                      \
	{                                                                                          \
		FORWARD(export, dst, pitch, value, columns, rows, stream);                         \
		event_set(&call, wrap_flags_on(&call, stream), dst,                                \
			(uint64_t)columns *rows *(width), ADDRESS(stream));                        \
		return LEAVE();                                                                    \
	}

#define SETS(name, value_type, width)                                                              \
	SET_1D(cuMemset##name, CUdeviceptr_v1, value_type, unsigned int, width)                    \
	SET_1D(cuMemset##name##_v2, CUdeviceptr, value_type, size_t, width)                        \
	SET_1D(cuMemset##name##_v2_ptds, CUdeviceptr, value_type, size_t, width)                   \
	SET_1D_ASYNC(cuMemset##name##Async, value_type, width)                                     \
	SET_1D_ASYNC(cuMemset##name##Async_ptsz, value_type, width)

#define SETS_2D(name, value_type, width)                                                           \
	SET_2D(cuMemset##name, CUdeviceptr_v1, value_type, unsigned int, width)                    \
	SET_2D(cuMemset##name##_v2, CUdeviceptr, value_type, size_t, width)                        \
	SET_2D(cuMemset##name##_v2_ptds, CUdeviceptr, value_type, size_t, width)                   \
	SET_2D_ASYNC(cuMemset##name##Async, value_type, width)                                     \
	SET_2D_ASYNC(cuMemset##name##Async_ptsz, value_type, width)

SETS(D8, unsigned char, 1)
SETS(D16, unsigned short, 2)
SETS(D32, unsigned int, 4)
SETS_2D(D2D8, unsigned char, 1)
SETS_2D(D2D16, unsigned short, 2)
SETS_2D(D2D32, unsigned int, 4)
