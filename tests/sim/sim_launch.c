/* Kernel launches: there are no kernels, so a launch checks its arguments and does nothing. */
#include "sim.h"

/* Spelled out in each export, whose name scripted faults go by. */
#define LAUNCH(f) SIM_CALL(NEED_CONTEXT, (f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE)

#define GRID                                                                                       \
	unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,       \
		unsigned int bz, unsigned int shared, CUstream stream, void **params
#define IGNORE_GRID                                                                                \
	((void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream,   \
		(void)params)

#define LAUNCH_GRID(export)                                                                        \
	CUresult export(CUfunction f, GRID, void **extra)                                          \
	{                                                                                          \
		IGNORE_GRID;                                                                       \
		(void)extra;                                                                       \
		return LAUNCH(f);                                                                  \
	}

#define LAUNCH_COOPERATIVE(export)                                                                 \
	CUresult export(CUfunction f, GRID)                                                        \
	{                                                                                          \
		IGNORE_GRID;                                                                       \
		return LAUNCH(f);                                                                  \
	}

#define LAUNCH_EX(export)                                                                          \
	CUresult export(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)   \
	{                                                                                          \
		(void)params;                                                                      \
		(void)extra;                                                                       \
		return LAUNCH(config ? f : NULL);                                                  \
	}

LAUNCH_GRID(cuLaunchKernel)
LAUNCH_GRID(cuLaunchKernel_ptsz)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz)
LAUNCH_EX(cuLaunchKernelEx)
LAUNCH_EX(cuLaunchKernelEx_ptsz)
