#include "hooks/wrap.h"

/* What the driver found is replaced by the wrapper of the same entry point; what it did not find
 * stays as it is. */
static void substitute(const struct call *call, const char *symbol, void **pfn)
{
	if (!call->result && symbol && pfn && *pfn)
		*pfn = driver_substitute(symbol, *pfn);
}

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	FORWARD(cuGetProcAddress, symbol, pfn, cudaVersion, flags);
	substitute(&call, symbol, pfn);
	return LEAVE();
}

#if CUDA_VERSION >= 12000
CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
	cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
	FORWARD(cuGetProcAddress_v2, symbol, pfn, cudaVersion, flags, symbolStatus);
	substitute(&call, symbol, pfn);
	return LEAVE();
}
#endif
