#include "hooks/wrap.h"

/* Captures are counted whether or not the call is recorded, and before it is made: while one is
 * open no CUDA call of ours may be made. */
static CUstream beginning(CUstream stream)
{
	sample_capture_begins();
	return stream;
}

static void note_begin(const struct call *call, CUstream stream)
{
	if (call->result)
		sample_capture_ended();
	event_capture(call, true, ADDRESS(stream));
}

/* An invalidated capture ends as well, with an error. */
static void note_end(const struct call *call, CUstream stream)
{
	if (!call->result || call->result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
		sample_capture_ended();
	event_capture(call, false, ADDRESS(stream));
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream hStream)
{
	FORWARD(cuStreamBeginCapture, beginning(hStream));
	note_begin(&call, hStream);
	return LEAVE();
}

CUresult CUDAAPI cuStreamBeginCapture_ptsz(CUstream hStream)
{
	FORWARD(cuStreamBeginCapture_ptsz, beginning(hStream));
	note_begin(&call, hStream);
	return LEAVE();
}

CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
	FORWARD(cuStreamBeginCapture_v2, beginning(hStream), mode);
	note_begin(&call, hStream);
	return LEAVE();
}

CUresult CUDAAPI cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode)
{
	FORWARD(cuStreamBeginCapture_v2_ptsz, beginning(hStream), mode);
	note_begin(&call, hStream);
	return LEAVE();
}

#if CUDA_VERSION >= 12030
CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUstreamCaptureMode mode)
{
	FORWARD(cuStreamBeginCaptureToGraph, beginning(hStream), hGraph, dependencies,
		dependencyData, numDependencies, mode);
	note_begin(&call, hStream);
	return LEAVE();
}

CUresult CUDAAPI cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUstreamCaptureMode mode)
{
	FORWARD(cuStreamBeginCaptureToGraph_ptsz, beginning(hStream), hGraph, dependencies,
		dependencyData, numDependencies, mode);
	note_begin(&call, hStream);
	return LEAVE();
}
#endif

CUresult CUDAAPI cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	FORWARD(cuStreamEndCapture, hStream, phGraph);
	note_end(&call, hStream);
	return LEAVE();
}

CUresult CUDAAPI cuStreamEndCapture_ptsz(CUstream hStream, CUgraph *phGraph)
{
	FORWARD(cuStreamEndCapture_ptsz, hStream, phGraph);
	note_end(&call, hStream);
	return LEAVE();
}
