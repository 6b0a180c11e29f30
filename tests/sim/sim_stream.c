/* Streams, events and captures. Without CUSIM_LINK streams are always idle, and recorded events
 * have happened. */
#include "sim.h"

#include <stdlib.h>

struct CUstream_st {
	struct sim_device *dev;
	unsigned int flags;
	CUstreamCaptureStatus status;
	CUstreamCaptureMode mode;
	const void *owner; /* the thread that began the capture */
	CUgraph graph;
	u64 capture_id;
	u64 busy_ns;
};

struct CUevent_st {
	unsigned int flags;
	u64 held_since; /* which holding, 0: none */
	u64 happens_ns; /* 0: never recorded */
};

static u64 holding; /* 0: events happen at once */
static u64 n_holdings;

/* Its address names the thread. */
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static bool is_special(CUstream stream)
{
	return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

bool sim_stream_known(CUstream stream)
{
	return is_special(stream) || sim_handle_known(&sim.streams, stream);
}

u64 *sim_stream_clock(CUcontext ctx, CUstream stream)
{
	return is_special(stream) ? &ctx->dev->busy_ns : &stream->busy_ns;
}

bool sim_stream_capturing(CUstream stream)
{
	return !is_special(stream) && stream->status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void sim_capture_invalidate(CUstream stream)
{
	stream->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

CUgraph sim_capture_graph(CUstream stream)
{
	return stream->status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? stream->graph : NULL;
}

/* Does this capture forbid the calling thread what is unsafe. */
static bool forbids(const struct CUstream_st *stream)
{
	bool mine = stream->owner == &thread_mode;

	if (stream->status == CU_STREAM_CAPTURE_STATUS_NONE ||
		thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (mine)
		return stream->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
	return stream->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
	       thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

bool sim_capture_allows_unsafe(void)
{
	bool allowed = true;

	for (size_t i = 0; i < sim.streams.n_entries; i++) {
		CUstream stream = sim.streams.entries[i].value;

		if (!forbids(stream))
			continue;
		sim_capture_invalidate(stream);
		allowed = false;
	}
	return allowed;
}

bool sim_capture_allows_implicit(void)
{
	bool allowed = true;

	for (size_t i = 0; i < sim.streams.n_entries; i++) {
		CUstream stream = sim.streams.entries[i].value;

		if (!sim_stream_capturing(stream) || (stream->flags & CU_STREAM_NON_BLOCKING))
			continue;
		sim_capture_invalidate(stream);
		allowed = false;
	}
	return allowed;
}

static CUresult stream_create(CUcontext ctx, CUstream *out, unsigned int flags)
{
	CUstream stream;

	if (!out || flags > CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	stream = calloc(1, sizeof(*stream));
	if (!stream || !sim_handle_insert(&sim.streams, stream)) {
		free(stream);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	stream->dev = ctx->dev;
	stream->flags = flags;
	*out = stream;
	return CUDA_SUCCESS;
}

static CUresult stream_destroy(CUstream stream)
{
	if (!sim_handle_known(&sim.streams, stream))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_handle_remove(&sim.streams, stream);
	free(stream);
	return CUDA_SUCCESS;
}

/* Waiting for a stream, or asking it, is what a capture cannot record. */
static CUresult stream_wait(CUcontext ctx, CUstream stream, bool settle)
{
	u64 busy_ns;

	if (!sim_stream_known(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (sim_stream_capturing(stream)) {
		sim_capture_invalidate(stream);
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	busy_ns = *sim_stream_clock(ctx, stream);
	if (!settle)
		return busy_ns > sim_clock_now() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
	sim_clock_wait(busy_ns);
	sim_pools_settle(is_special(stream) ? ctx->dev : stream->dev);
	return CUDA_SUCCESS;
}

static CUresult synchronize(CUcontext ctx)
{
	if (!sim_capture_allows_unsafe())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	sim_clock_wait(ctx->dev->busy_ns);
	for (size_t i = 0; i < sim.streams.n_entries; i++) {
		CUstream stream = sim.streams.entries[i].value;

		if (stream->dev == ctx->dev)
			sim_clock_wait(stream->busy_ns);
	}
	sim_pools_settle(ctx->dev);
	return CUDA_SUCCESS;
}

static CUresult wait_event(CUstream stream, CUevent event)
{
	if (!sim_stream_known(stream) || !sim_handle_known(&sim.events, event))
		return CUDA_ERROR_INVALID_HANDLE;
	return CUDA_SUCCESS;
}

static CUresult capture_begin(CUstream stream, CUgraph graph, CUstreamCaptureMode mode)
{
	if ((unsigned int)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_stream_known(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (is_special(stream))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (sim_stream_capturing(stream))
		return CUDA_ERROR_ILLEGAL_STATE;
	if (!graph)
		graph = sim_graph_new();
	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream->status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	stream->mode = mode;
	stream->owner = &thread_mode;
	stream->graph = graph;
	stream->capture_id = ++sim.last_id;
	return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 12030
static CUresult capture_begin_to(CUstream stream, CUgraph graph, CUstreamCaptureMode mode)
{
	return sim_handle_known(&sim.graphs, graph) ? capture_begin(stream, graph, mode)
						    : CUDA_ERROR_INVALID_VALUE;
}
#endif

static CUresult capture_end(CUstream stream, CUgraph *out)
{
	bool invalid, other_thread;
	CUgraph graph;

	if (!out || !sim_stream_known(stream))
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	if (!sim_stream_capturing(stream))
		return CUDA_ERROR_ILLEGAL_STATE;
	other_thread =
		stream->owner != &thread_mode && stream->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
	if (other_thread)
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	invalid = stream->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
	graph = stream->graph;
	stream->status = CU_STREAM_CAPTURE_STATUS_NONE;
	if (!invalid &&
		(sim_handle_known(&sim.graphs, graph) || sim_handle_insert(&sim.graphs, graph))) {
		*out = graph;
		return CUDA_SUCCESS;
	}
	if (!sim_handle_known(&sim.graphs, graph))
		sim_graph_free(graph);
	return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

static CUresult get_flags(CUstream stream, unsigned int *out)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_stream_known(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	*out = is_special(stream) ? CU_STREAM_DEFAULT : stream->flags;
	return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *out)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_stream_known(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	*out = is_special(stream) ? CU_STREAM_CAPTURE_STATUS_NONE : stream->status;
	return CUDA_SUCCESS;
}

static CUresult capture_info(
	CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph)
{
	CUresult result = is_capturing(stream, status);

	if (result != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return result;
	if (id)
		*id = stream->capture_id;
	if (graph)
		*graph = stream->graph;
	return CUDA_SUCCESS;
}

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode before = thread_mode;

	if (!mode || (unsigned int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *out, unsigned int flags)
{
	CUevent event;

	if (!out || flags > 7)
		return CUDA_ERROR_INVALID_VALUE;
	event = calloc(1, sizeof(*event));
	if (!event || !sim_handle_insert(&sim.events, event)) {
		free(event);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	event->flags = flags;
	*out = event;
	return CUDA_SUCCESS;
}

bool sim_work_is_held(void)
{
	return holding != 0;
}

/* What a capture records has no time. */
static CUresult event_record(CUcontext ctx, CUevent event, CUstream stream)
{
	u64 now = sim_clock_now(), busy_ns;

	if (!sim_handle_known(&sim.events, event) || !sim_stream_known(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	event->held_since = holding;
	if (is_special(stream) && !sim_capture_allows_implicit())
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	busy_ns = *sim_stream_clock(ctx, stream);
	event->happens_ns = sim_stream_capturing(stream) ? 0 : busy_ns > now ? busy_ns : now;
	return CUDA_SUCCESS;
}

static CUresult event_query(CUevent event)
{
	if (!sim_handle_known(&sim.events, event))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!sim_capture_allows_unsafe())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (event->held_since && event->held_since == holding)
		return CUDA_ERROR_NOT_READY;
	return event->happens_ns > sim_clock_now() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult event_wait(CUcontext ctx, CUevent event)
{
	if (!sim_handle_known(&sim.events, event))
		return CUDA_ERROR_INVALID_HANDLE;
	event->held_since = 0;
	sim_clock_wait(event->happens_ns);
	sim_pools_settle(ctx->dev);
	return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent event)
{
	if (!sim_handle_known(&sim.events, event))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_handle_remove(&sim.events, event);
	free(event);
	return CUDA_SUCCESS;
}

static CUresult elapsed(float *out, CUevent start, CUevent end)
{
	u64 now = sim_clock_now();

	if (!sim_handle_known(&sim.events, start) || !sim_handle_known(&sim.events, end))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) || !start->happens_ns ||
		!end->happens_ns)
		return CUDA_ERROR_INVALID_HANDLE;
	if (start->happens_ns > now || end->happens_ns > now)
		return CUDA_ERROR_NOT_READY;
	*out = (float)((double)(int64_t)(end->happens_ns - start->happens_ns) / 1e6);
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	return SIM_CALL(NEED_CONTEXT, synchronize(ctx));
}

#if CUDA_VERSION >= 13000
CUresult cuCtxSynchronize_v2(CUcontext hcontext)
{
	return SIM_CALL(NEED_INIT, sim_handle_known(&sim.contexts, hcontext)
					   ? synchronize(hcontext)
					   : CUDA_ERROR_INVALID_CONTEXT);
}
#endif

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return SIM_CALL(NEED_CONTEXT, stream_create(ctx, phStream, Flags));
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	(void)priority;
	return SIM_CALL(NEED_CONTEXT, stream_create(ctx, phStream, flags));
}

#if CUDA_VERSION >= 12050
/* Of the context that is current: which multiprocessors it uses is nothing that is simulated. */
CUresult cuGreenCtxStreamCreate(
	CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
{
	(void)priority;
	return SIM_CALL(NEED_CONTEXT, greenCtx && (flags & CU_STREAM_NON_BLOCKING)
					      ? stream_create(ctx, phStream, flags)
					      : CUDA_ERROR_INVALID_VALUE);
}
#endif

CUresult cuStreamDestroy(CUstream hStream)
{
	return SIM_CALL(NEED_CONTEXT, stream_destroy(hStream));
}

CUresult cuStreamDestroy_v2(CUstream hStream)
{
	return SIM_CALL(NEED_CONTEXT, stream_destroy(hStream));
}

CUresult cuStreamSynchronize(CUstream hStream)
{
	return SIM_CALL(NEED_CONTEXT, stream_wait(ctx, hStream, true));
}

CUresult cuStreamSynchronize_ptsz(CUstream hStream)
{
	return SIM_CALL(NEED_CONTEXT, stream_wait(ctx, hStream, true));
}

CUresult cuStreamQuery(CUstream hStream)
{
	return SIM_CALL(NEED_CONTEXT, stream_wait(ctx, hStream, false));
}

CUresult cuStreamQuery_ptsz(CUstream hStream)
{
	return SIM_CALL(NEED_CONTEXT, stream_wait(ctx, hStream, false));
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	(void)Flags;
	return SIM_CALL(NEED_CONTEXT, wait_event(hStream, hEvent));
}

CUresult cuStreamWaitEvent_ptsz(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	(void)Flags;
	return SIM_CALL(NEED_CONTEXT, wait_event(hStream, hEvent));
}

CUresult cuStreamBeginCapture(CUstream hStream)
{
	return SIM_CALL(NEED_CONTEXT, capture_begin(hStream, NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

CUresult cuStreamBeginCapture_ptsz(CUstream hStream)
{
	return SIM_CALL(NEED_CONTEXT, capture_begin(hStream, NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
	return SIM_CALL(NEED_CONTEXT, capture_begin(hStream, NULL, mode));
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode)
{
	return SIM_CALL(NEED_CONTEXT, capture_begin(hStream, NULL, mode));
}

#if CUDA_VERSION >= 12030
CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUstreamCaptureMode mode)
{
	(void)dependencies, (void)dependencyData, (void)numDependencies;
	return SIM_CALL(NEED_CONTEXT, capture_begin_to(hStream, hGraph, mode));
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUstreamCaptureMode mode)
{
	(void)dependencies, (void)dependencyData, (void)numDependencies;
	return SIM_CALL(NEED_CONTEXT, capture_begin_to(hStream, hGraph, mode));
}
#endif

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	return SIM_CALL(NEED_CONTEXT, capture_end(hStream, phGraph));
}

CUresult cuStreamEndCapture_ptsz(CUstream hStream, CUgraph *phGraph)
{
	return SIM_CALL(NEED_CONTEXT, capture_end(hStream, phGraph));
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
	return SIM_CALL(NEED_CONTEXT, get_flags(hStream, flags));
}

CUresult cuStreamGetFlags_ptsz(CUstream hStream, unsigned int *flags)
{
	return SIM_CALL(NEED_CONTEXT, get_flags(hStream, flags));
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	return SIM_CALL(NEED_CONTEXT, is_capturing(hStream, captureStatus));
}

CUresult cuStreamIsCapturing_ptsz(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	return SIM_CALL(NEED_CONTEXT, is_capturing(hStream, captureStatus));
}

/* Which nodes the next one would depend on is not told. */
CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
	cuuint64_t *id_out, CUgraph *graph_out, const CUgraphNode **dependencies_out,
	size_t *numDependencies_out)
{
	(void)dependencies_out, (void)numDependencies_out;
	return SIM_CALL(NEED_CONTEXT, capture_info(hStream, captureStatus_out, id_out, graph_out));
}

CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
	cuuint64_t *id_out, CUgraph *graph_out, const CUgraphNode **dependencies_out,
	size_t *numDependencies_out)
{
	(void)dependencies_out, (void)numDependencies_out;
	return SIM_CALL(NEED_CONTEXT, capture_info(hStream, captureStatus_out, id_out, graph_out));
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	return SIM_CALL(NEED_INIT, exchange_mode(mode));
}

void cusim_hold_events(bool hold)
{
	pthread_mutex_lock(&sim.lock);
	holding = hold ? ++n_holdings : 0;
	pthread_mutex_unlock(&sim.lock);
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	return SIM_CALL(NEED_CONTEXT, event_create(phEvent, Flags));
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
	return SIM_CALL(NEED_CONTEXT, event_record(ctx, hEvent, hStream));
}

CUresult cuEventRecord_ptsz(CUevent hEvent, CUstream hStream)
{
	return SIM_CALL(NEED_CONTEXT, event_record(ctx, hEvent, hStream));
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	(void)flags;
	return SIM_CALL(NEED_CONTEXT, event_record(ctx, hEvent, hStream));
}

CUresult cuEventRecordWithFlags_ptsz(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	(void)flags;
	return SIM_CALL(NEED_CONTEXT, event_record(ctx, hEvent, hStream));
}

CUresult cuEventQuery(CUevent hEvent)
{
	return SIM_CALL(NEED_CONTEXT, event_query(hEvent));
}

CUresult cuEventSynchronize(CUevent hEvent)
{
	return SIM_CALL(NEED_CONTEXT, event_wait(ctx, hEvent));
}

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	return SIM_CALL(NEED_CONTEXT, elapsed(pMilliseconds, hStart, hEnd));
}

#if CUDA_VERSION >= 12080
CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	return SIM_CALL(NEED_CONTEXT, elapsed(pMilliseconds, hStart, hEnd));
}
#endif

CUresult cuEventDestroy(CUevent hEvent)
{
	return SIM_CALL(NEED_CONTEXT, event_destroy(hEvent));
}

CUresult cuEventDestroy_v2(CUevent hEvent)
{
	return SIM_CALL(NEED_CONTEXT, event_destroy(hEvent));
}
