#include "hooks/wrap.h"

/* Calls that wait for the device. What matters is how long the host waits for a copy to it. */

CUresult CUDAAPI cuStreamSynchronize(CUstream hStream)
{
	FORWARD(cuStreamSynchronize, hStream);
	event_wait(&call, ADDRESS(hStream), false);
	return LEAVE();
}

CUresult CUDAAPI cuStreamSynchronize_ptsz(CUstream hStream)
{
	FORWARD(cuStreamSynchronize_ptsz, hStream);
	event_wait(&call, ADDRESS(hStream), false);
	return LEAVE();
}

CUresult CUDAAPI cuEventSynchronize(CUevent hEvent)
{
	FORWARD(cuEventSynchronize, hEvent);
	event_wait(&call, 0, true);
	return LEAVE();
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
	FORWARD(cuCtxSynchronize);
	event_wait(&call, 0, true);
	return LEAVE();
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext ctx)
{
	FORWARD(cuCtxSynchronize_v2, ctx);
	event_wait(&call, 0, true);
	return LEAVE();
}
#endif
