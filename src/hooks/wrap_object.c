#include "hooks/wrap.h"

/* Streams and events are only counted: memory that they take shows as growth that nobody allocated,
 * and their counts beside it. */

CUresult CUDAAPI cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	FORWARD(cuStreamCreate, phStream, Flags);
	objects_created(&call, VT_OBJECT_STREAM);
	return LEAVE();
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	FORWARD(cuStreamCreateWithPriority, phStream, flags, priority);
	objects_created(&call, VT_OBJECT_STREAM);
	return LEAVE();
}

#if CUDA_VERSION >= 12050
CUresult CUDAAPI cuGreenCtxStreamCreate(
	CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
{
	FORWARD(cuGreenCtxStreamCreate, phStream, greenCtx, flags, priority);
	objects_created(&call, VT_OBJECT_STREAM);
	return LEAVE();
}
#endif

CUresult CUDAAPI cuStreamDestroy(CUstream hStream)
{
	FORWARD(cuStreamDestroy, hStream);
	objects_destroyed(&call, VT_OBJECT_STREAM);
	return LEAVE();
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream hStream)
{
	FORWARD(cuStreamDestroy_v2, hStream);
	objects_destroyed(&call, VT_OBJECT_STREAM);
	return LEAVE();
}

CUresult CUDAAPI cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	FORWARD(cuEventCreate, phEvent, Flags);
	objects_created(&call, VT_OBJECT_EVENT);
	return LEAVE();
}

CUresult CUDAAPI cuEventDestroy(CUevent hEvent)
{
	FORWARD(cuEventDestroy, hEvent);
	objects_destroyed(&call, VT_OBJECT_EVENT);
	return LEAVE();
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent hEvent)
{
	FORWARD(cuEventDestroy_v2, hEvent);
	objects_destroyed(&call, VT_OBJECT_EVENT);
	return LEAVE();
}
