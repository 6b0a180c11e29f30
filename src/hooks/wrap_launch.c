#include "hooks/wrap.h"

/*
 * With lazy loading, the default since CUDA 12, a kernel's code takes device memory when it is
 * first launched. Only that first launch is measured; all others go straight through, for a few
 * nanoseconds.
 */

/* More kernels than this are taken for launched: their code is then unexplained memory. */
#define N_SLOTS 16384u
#define N_TRIES 16u

static _Atomic(CUfunction) launched[N_SLOTS];

static size_t slot_of(CUfunction function)
{
	return (ADDRESS(function) * 0x9e3779b97f4a7c15u) >> 50;
}

_Static_assert(N_SLOTS == 1u << (64 - 50), "slot_of gives fourteen bits");

static _Atomic(CUfunction) *recent_of(CUfunction function)
{
	return &driver.launched[slot_of(function) % DRIVER_N_LAUNCHED];
}

static bool is_in_table(CUfunction function)
{
	size_t slot = slot_of(function);

	for (unsigned int i = 0; i < N_TRIES; i++) {
		CUfunction there =
			atomic_load_explicit(&launched[(slot + i) % N_SLOTS], memory_order_relaxed);

		if (there == function)
			return true;
		if (!there)
			return false;
	}
	return true;
}

static bool was_launched(CUfunction function)
{
	_Atomic(CUfunction) *recent = recent_of(function);

	if (__builtin_expect(atomic_load_explicit(recent, memory_order_relaxed) == function, 1))
		return true;
	if (!is_in_table(function))
		return false;
	atomic_store_explicit(recent, function, memory_order_relaxed);
	return true;
}

static void note_launched(CUfunction function)
{
	size_t slot = slot_of(function);

	for (unsigned int i = 0; i < N_TRIES; i++) {
		CUfunction there = NULL;

		if (atomic_compare_exchange_strong(
			    &launched[(slot + i) % N_SLOTS], &there, function) ||
			there == function)
			return;
	}
}

#define LAUNCH(export, function, params, ...)                                                      \
	CUresult CUDAAPI export params                                                             \
	{                                                                                          \
		if (was_launched(function)) {                                                      \
			__typeof__(&(export)) launch = DRIVER_ORIGINAL(export);                    \
			return launch ? launch(__VA_ARGS__) : CUDA_ERROR_NOT_INITIALIZED;          \
		}                                                                                  \
		FORWARD_MEASURED(export, __VA_ARGS__);                                             \
		if (!call.result)                                                                  \
			note_launched(function);                                                   \
		return LEAVE_MEASURED(VT_CAUSE_MODULES);                                           \
	}

#define GRID                                                                                       \
	unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,                       \
		unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,            \
		unsigned int sharedMemBytes, CUstream hStream, void **kernelParams
#define GRID_ARGUMENTS                                                                             \
	gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,    \
		kernelParams

LAUNCH(cuLaunchKernel, f, (CUfunction f, GRID, void **extra), f, GRID_ARGUMENTS, extra)
LAUNCH(cuLaunchKernel_ptsz, f, (CUfunction f, GRID, void **extra), f, GRID_ARGUMENTS, extra)
LAUNCH(cuLaunchCooperativeKernel, f, (CUfunction f, GRID), f, GRID_ARGUMENTS)
LAUNCH(cuLaunchCooperativeKernel_ptsz, f, (CUfunction f, GRID), f, GRID_ARGUMENTS)
LAUNCH(cuLaunchKernelEx, f,
	(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra), config, f,
	kernelParams, extra)
LAUNCH(cuLaunchKernelEx_ptsz, f,
	(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra), config, f,
	kernelParams, extra)
