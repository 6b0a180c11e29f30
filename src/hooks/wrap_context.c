#include "hooks/wrap.h"

CUresult CUDAAPI cuInit(unsigned int Flags)
{
	FORWARD(cuInit, Flags);
	return LEAVE();
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	struct context_measurement before = measure_context_begin(dev, true);
	struct context_info context = {0, dev};

	FORWARD(cuDevicePrimaryCtxRetain, pctx, dev);
	if (!call.result && pctx) {
		context = contexts_add(*pctx, dev);
		contexts_set_primary(dev, *pctx);
		sample_retained(dev);
	}
	event_context(&call, VT_CONTEXT_RETAIN, context.id, dev);
	measure_context_end(&call, dev, &before);
	return LEAVE();
}

static void note_primary(const struct call *call, enum vt_context_action action, CUdevice dev)
{
	event_context(call, action, contexts_get(contexts_get_primary(dev)).id, dev);
}

static void primary_reset(CUdevice dev)
{
	sample_reset(dev);
	timing_context_ends(contexts_get(contexts_get_primary(dev)).id);
}

static void primary_released(CUdevice dev)
{
	if (sample_release(dev))
		timing_context_ends(contexts_get(contexts_get_primary(dev)).id);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
	primary_released(dev);
	FORWARD(cuDevicePrimaryCtxRelease, dev);
	note_primary(&call, VT_CONTEXT_RELEASE, dev);
	return LEAVE();
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	primary_released(dev);
	FORWARD(cuDevicePrimaryCtxRelease_v2, dev);
	note_primary(&call, VT_CONTEXT_RELEASE, dev);
	return LEAVE();
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
	primary_reset(dev);
	FORWARD(cuDevicePrimaryCtxReset, dev);
	note_primary(&call, VT_CONTEXT_RESET, dev);
	return LEAVE();
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	primary_reset(dev);
	FORWARD(cuDevicePrimaryCtxReset_v2, dev);
	note_primary(&call, VT_CONTEXT_RESET, dev);
	return LEAVE();
}

static void note_created(struct call *call, CUcontext *pctx, CUdevice dev)
{
	struct context_info context = {0, dev};

	if (!call->result && pctx)
		context = contexts_add(*pctx, dev);
	event_context(call, VT_CONTEXT_CREATE, context.id, dev);
}

CUresult CUDAAPI cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	struct context_measurement before = measure_context_begin(dev, false);

	FORWARD(cuCtxCreate, pctx, flags, dev);
	note_created(&call, pctx, dev);
	measure_context_end(&call, dev, &before);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	struct context_measurement before = measure_context_begin(dev, false);

	FORWARD(cuCtxCreate_v2, pctx, flags, dev);
	note_created(&call, pctx, dev);
	measure_context_end(&call, dev, &before);
	return LEAVE_SAMPLED();
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
	unsigned int flags, CUdevice dev)
{
	struct context_measurement before = measure_context_begin(dev, false);

	FORWARD(cuCtxCreate_v3, pctx, paramsArray, numParams, flags, dev);
	note_created(&call, pctx, dev);
	measure_context_end(&call, dev, &before);
	return LEAVE_SAMPLED();
}

#if CUDA_VERSION >= 12050
CUresult CUDAAPI cuCtxCreate_v4(
	CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
	struct context_measurement before = measure_context_begin(dev, false);

	FORWARD(cuCtxCreate_v4, pctx, ctxCreateParams, flags, dev);
	note_created(&call, pctx, dev);
	measure_context_end(&call, dev, &before);
	return LEAVE_SAMPLED();
}
#endif

static void note_destroyed(struct call *call, CUcontext ctx)
{
	struct context_info context = contexts_get(ctx);

	if (!call->result)
		contexts_remove(ctx);
	event_context(call, VT_CONTEXT_DESTROY, context.id, context.device);
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
	timing_context_ends(contexts_get(ctx).id);
	FORWARD(cuCtxDestroy, ctx);
	note_destroyed(&call, ctx);
	return LEAVE();
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext ctx)
{
	timing_context_ends(contexts_get(ctx).id);
	FORWARD(cuCtxDestroy_v2, ctx);
	note_destroyed(&call, ctx);
	return LEAVE();
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	FORWARD(cuCtxEnablePeerAccess, peerContext, Flags);
	event_peer_access(&call, contexts_get(peerContext).device, true);
	return LEAVE();
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peerContext)
{
	FORWARD(cuCtxDisablePeerAccess, peerContext);
	event_peer_access(&call, contexts_get(peerContext).device, false);
	return LEAVE();
}

static enum vt_cause cause_of(CUlimit limit)
{
	if (limit == CU_LIMIT_STACK_SIZE)
		return VT_CAUSE_LOCAL_MEMORY;
	return limit == CU_LIMIT_MALLOC_HEAP_SIZE ? VT_CAUSE_DEVICE_HEAP : VT_CAUSE_LIMITS;
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value)
{
	FORWARD_MEASURED(cuCtxSetLimit, limit, value);
	return LEAVE_MEASURED(cause_of(limit));
}

#if CUDA_VERSION >= 12040
CUresult CUDAAPI cuGreenCtxCreate(
	CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	FORWARD_MEASURED(cuGreenCtxCreate, phCtx, desc, dev, flags);
	return LEAVE_MEASURED(VT_CAUSE_GREEN_CONTEXT);
}

CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx hCtx)
{
	FORWARD_MEASURED(cuGreenCtxDestroy, hCtx);
	return LEAVE_MEASURED(VT_CAUSE_GREEN_CONTEXT);
}
#endif
