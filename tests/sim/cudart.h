/*
 * cudart.h: the inside of the simulated CUDA runtime (libcudart.so.13, libcudart_static.a).
 *
 * It reaches the driver exactly as NVIDIA's runtime does: dlopen of libcuda.so.1, one dlsym of
 * cuGetProcAddress_v2 (of the first version, when a driver has no other), then every entry point by
 * name, version and stream flags. The first call of the API starts it; the device's primary context
 * is made current for each thread that has none.
 *
 *   cudart_core.c    the driver, errors, devices and contexts
 *   cudart_mem.c     memory and pools
 *   cudart_copy.c    copies and memory sets
 *   cudart_array.c   arrays, copies of rectangles and boxes
 *   cudart_stream.c  streams, events, captures
 *   cudart_graph.c   graphs
 *   cudart_share.c   IPC handles, managed memory on the move
 */
#ifndef CUDART_H
#define CUDART_H

#include <stddef.h>
#include <stdlib.h>

/* Every ABI variant is declared, and the plain names are those of the exports. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>
#include <cuda.h>
#include <cudaTypedefs.h>

#pragma GCC visibility push(hidden)

struct rt_driver {
#define ROW(field, name, version, flags, type) type field;
#include "cudart.def"
};
extern struct rt_driver rt_driver;

/* Starts the runtime, once. The error it ended with. */
cudaError_t rt_start(void);
/* Starts it and makes a context current. */
cudaError_t rt_enter(void);
/* Keeps a failure for cudaGetLastError. Returns it. */
cudaError_t rt_result(cudaError_t error);
/* The primary context of a device, for peer copies; NULL: no such device. */
CUcontext rt_primary(int device);

#pragma GCC visibility pop

/* The codes of the two APIs agree. */
static inline cudaError_t rt_error(CUresult result)
{
	return (cudaError_t)(int)result;
}

/* The body of an API call: one call of the driver, with a context current. */
#define RT_CALL(field, ...)                                                                        \
	({                                                                                         \
		cudaError_t error_ = rt_enter();                                                   \
		if (error_ == cudaSuccess)                                                         \
			error_ = rt_error(rt_driver.field(__VA_ARGS__));                           \
		rt_result(error_);                                                                 \
	})

#endif
