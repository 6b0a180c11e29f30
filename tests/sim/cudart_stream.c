/* Streams, events, captures. */
#include "cudart.h"

cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
	return RT_CALL(cuStreamCreate, pStream, CU_STREAM_DEFAULT);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
	return RT_CALL(cuStreamCreate, pStream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	return RT_CALL(cuStreamDestroy, stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return RT_CALL(cuStreamSynchronize, stream);
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream)
{
	return RT_CALL(cuStreamSynchronize_pt, stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	return RT_CALL(cuStreamQuery, stream);
}

cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream)
{
	return RT_CALL(cuStreamQuery_pt, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	return RT_CALL(cuStreamWaitEvent, stream, event, flags);
}

cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	return RT_CALL(cuStreamWaitEvent_pt, stream, event, flags);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	return RT_CALL(cuStreamBeginCapture, stream, (CUstreamCaptureMode)mode);
}

cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	return RT_CALL(cuStreamBeginCapture_pt, stream, (CUstreamCaptureMode)mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
	return RT_CALL(cuStreamEndCapture, stream, pGraph);
}

cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t *pGraph)
{
	return RT_CALL(cuStreamEndCapture_pt, stream, pGraph);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus)
{
	return RT_CALL(cuStreamIsCapturing, stream, (CUstreamCaptureStatus *)pCaptureStatus);
}

cudaError_t cudaStreamIsCapturing_ptsz(
	cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus)
{
	return RT_CALL(cuStreamIsCapturing_pt, stream, (CUstreamCaptureStatus *)pCaptureStatus);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	return RT_CALL(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)mode);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return RT_CALL(cuEventCreate, event, CU_EVENT_DEFAULT);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	return RT_CALL(cuEventCreate, event, flags);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return RT_CALL(cuEventRecord, event, stream);
}

cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream)
{
	return RT_CALL(cuEventRecord_pt, event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	return RT_CALL(cuEventRecordWithFlags, event, stream, flags);
}

cudaError_t cudaEventRecordWithFlags_ptsz(
	cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	return RT_CALL(cuEventRecordWithFlags_pt, event, stream, flags);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	return RT_CALL(cuEventQuery, event);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return RT_CALL(cuEventSynchronize, event);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return RT_CALL(cuEventElapsedTime, ms, start, end);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	return RT_CALL(cuEventDestroy, event);
}
