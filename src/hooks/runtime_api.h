/* The vendor's declarations of the runtime, twins for the per-thread default stream too, exported
 * as the runtime exports them. */
#ifndef VRAMTRACE_HOOKS_RUNTIME_API_H
#define VRAMTRACE_HOOKS_RUNTIME_API_H

/* With it the plain names are those of the exports, and all twins are declared. */
#define __CUDA_API_VERSION_INTERNAL

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#endif
