/* The vendor's declarations, all ABI variants of them, exported as the driver exports them. The
 * only file with cuda.h. */
#ifndef VRAMTRACE_HOOKS_CUDA_API_H
#define VRAMTRACE_HOOKS_CUDA_API_H

/* Without it cuda.h renames plain names to their newest variant and hides the others. */
#define __CUDA_API_VERSION_INTERNAL

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
#include <cudaTypedefs.h>

#endif
