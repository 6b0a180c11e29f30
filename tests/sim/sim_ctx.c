/* Contexts: which device a call of a thread goes to, what memory they cost, and what ends with
 * them. */
#include "sim.h"

#include <stdlib.h>

static __thread struct {
	CUcontext stack[SIM_MAX_CURRENT];
	int n;
} current;

CUcontext sim_ctx_current(void)
{
	return current.n ? current.stack[current.n - 1] : NULL;
}

static u32 stack_pages(u64 stack_bytes)
{
	u64 more = stack_bytes > SIM_STACK_BYTES ? stack_bytes - SIM_STACK_BYTES : 0;

	return sim_n_pages(more * SIM_N_SM * SIM_THREADS_PER_SM);
}

/* Brings a context to life; the device's first one costs memory. */
static CUresult activate(CUcontext ctx)
{
	struct sim_device *dev = ctx->dev;
	const u32 n = sim_n_pages(SIM_CONTEXT_BYTES);

	if (dev->n_contexts == 0) {
		dev->footprint_pages = sim_pages_new(dev, CUSIM_BY_CONTEXT, n);
		if (!dev->footprint_pages)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	dev->n_contexts++;
	ctx->stack_bytes = SIM_STACK_BYTES;
	ctx->heap_bytes = SIM_HEAP_LIMIT_BYTES;
	ctx->live = true;
	return CUDA_SUCCESS;
}

static void stack_pages_free(CUcontext ctx)
{
	sim_pages_free(ctx->dev, CUSIM_BY_LOCAL_MEMORY, ctx->stack_pages, ctx->n_stack_pages);
	ctx->stack_pages = NULL;
	ctx->n_stack_pages = 0;
}

/* Ends a context and everything in it. The object stays: handles to it must be told from garbage.
 */
static void deactivate(CUcontext ctx)
{
	struct sim_device *dev = ctx->dev;

	ctx->live = false;
	ctx->n_retained = 0;
	sim_execs_end_with(ctx);
	sim_code_end_with(ctx);
	sim_ranges_end_with(ctx);
	stack_pages_free(ctx);
	sim_pages_free(dev, CUSIM_BY_DEVICE_HEAP, ctx->heap_pages, ctx->n_heap_pages);
	ctx->heap_pages = NULL;
	if (--dev->n_contexts == 0) {
		const u32 n = sim_n_pages(SIM_CONTEXT_BYTES);

		sim_pages_free(dev, CUSIM_BY_CONTEXT, dev->footprint_pages, n);
		dev->footprint_pages = NULL;
		sim_pools_end(dev);
	}
}

static CUcontext ctx_new(
	struct sim_device *dev, bool primary, unsigned int flags, unsigned int version)
{
	CUcontext ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	*ctx = (struct CUctx_st){
		.dev = dev, .primary = primary, .flags = flags, .version = version};
	if (sim_handle_insert(&sim.contexts, ctx))
		return ctx;
	free(ctx);
	return NULL;
}

static CUresult push(CUcontext ctx)
{
	if (!sim_handle_known(&sim.contexts, ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx->live)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (current.n == SIM_MAX_CURRENT)
		return CUDA_ERROR_INVALID_VALUE;
	current.stack[current.n++] = ctx;
	return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *out)
{
	if (current.n == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	current.n--;
	if (out)
		*out = current.stack[current.n];
	return CUDA_SUCCESS;
}

static CUresult set(CUcontext ctx)
{
	CUresult result;

	if (!ctx) {
		current.n -= current.n ? 1 : 0;
		return CUDA_SUCCESS;
	}
	if (current.n == 0)
		return push(ctx);
	current.n--;
	result = push(ctx);
	if (result != CUDA_SUCCESS)
		current.n++;
	return result;
}

static CUresult create(CUcontext *out, unsigned int flags, CUdevice ordinal, unsigned int version)
{
	struct sim_device *dev = sim_device_get(ordinal);
	CUcontext ctx;
	CUresult result;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (current.n == SIM_MAX_CURRENT)
		return CUDA_ERROR_INVALID_VALUE;
	ctx = ctx_new(dev, false, flags, version);
	result = ctx ? activate(ctx) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS)
		return result;
	current.stack[current.n++] = ctx;
	*out = ctx;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUcontext ctx)
{
	if (!sim_handle_known(&sim.contexts, ctx) || ctx->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx->live)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (sim_ctx_current() == ctx)
		current.n--;
	deactivate(ctx);
	return CUDA_SUCCESS;
}

CUresult sim_primary_retain(CUcontext *out, CUdevice ordinal)
{
	struct sim_device *dev = sim_device_get(ordinal);
	CUresult result = CUDA_SUCCESS;

	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!dev->primary)
		dev->primary = ctx_new(dev, true, 0, SIM_VERSION);
	if (!dev->primary)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!dev->primary->live)
		result = activate(dev->primary);
	if (result == CUDA_SUCCESS) {
		dev->primary->n_retained++;
		*out = dev->primary;
	}
	return result;
}

static CUresult primary_release(CUdevice ordinal, bool reset)
{
	struct sim_device *dev = sim_device_get(ordinal);

	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!dev->primary || !dev->primary->live)
		return reset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
	if (reset || --dev->primary->n_retained == 0)
		deactivate(dev->primary);
	return CUDA_SUCCESS;
}

CUresult sim_primary_release(CUdevice ordinal)
{
	return primary_release(ordinal, false);
}

static CUresult primary_state(CUdevice ordinal, unsigned int *flags, int *active)
{
	struct sim_device *dev = sim_device_get(ordinal);

	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = 0;
	*active = dev->primary && dev->primary->live;
	return CUDA_SUCCESS;
}

/* A larger stack limit takes memory at once: so much for every thread the device can hold. */
static CUresult limit_set(CUcontext ctx, CUlimit limit, u64 value)
{
	u32 n = stack_pages(value);
	u32 *pages = NULL;

	if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) {
		if (ctx->heap_pages) /* it has its size by now */
			return CUDA_ERROR_INVALID_VALUE;
		ctx->heap_bytes = value;
		return CUDA_SUCCESS;
	}
	if (limit != CU_LIMIT_STACK_SIZE)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	if (value > 512 << 10)
		return CUDA_ERROR_INVALID_VALUE;
	if (n > ctx->dev->n_free + ctx->n_stack_pages)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack_pages_free(ctx);
	if (n > 0) {
		pages = sim_pages_new(ctx->dev, CUSIM_BY_LOCAL_MEMORY, n);
		if (!pages)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	ctx->stack_pages = pages;
	ctx->n_stack_pages = n;
	ctx->stack_bytes = value;
	return CUDA_SUCCESS;
}

static CUresult limit_get(CUcontext ctx, size_t *out, CUlimit limit)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit != CU_LIMIT_STACK_SIZE && limit != CU_LIMIT_MALLOC_HEAP_SIZE)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*out = limit == CU_LIMIT_STACK_SIZE ? ctx->stack_bytes : ctx->heap_bytes;
	return CUDA_SUCCESS;
}

static CUresult ctx_device(CUcontext ctx, CUdevice *out)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = ctx->dev->ordinal;
	return CUDA_SUCCESS;
}

static CUresult peer_access(CUcontext ctx, CUcontext peer)
{
	if (!sim_handle_known(&sim.contexts, peer) || !peer->live)
		return CUDA_ERROR_INVALID_CONTEXT;
	return peer->dev == ctx->dev ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

bool cusim_device_heap_use(void)
{
	CUcontext ctx;
	bool used = false;

	pthread_mutex_lock(&sim.lock);
	ctx = sim.initialised ? sim_ctx_current() : NULL;
	if (ctx && ctx->live && !ctx->heap_pages) {
		ctx->n_heap_pages = sim_n_pages(ctx->heap_bytes);
		ctx->heap_pages = sim_pages_new(ctx->dev, CUSIM_BY_DEVICE_HEAP, ctx->n_heap_pages);
	}
	used = ctx && ctx->heap_pages;
	pthread_mutex_unlock(&sim.lock);
	return used;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	return SIM_CALL(NEED_INIT, sim_primary_retain(pctx, dev));
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return SIM_CALL(NEED_INIT, primary_release(dev, false));
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	return SIM_CALL(NEED_INIT, primary_release(dev, false));
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return SIM_CALL(NEED_INIT, primary_release(dev, true));
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	return SIM_CALL(NEED_INIT, primary_release(dev, true));
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	return SIM_CALL(NEED_INIT, primary_state(dev, flags, active));
}

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return SIM_CALL(NEED_INIT, create(pctx, flags, dev, 3010));
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return SIM_CALL(NEED_INIT, create(pctx, flags, dev, 3020));
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
	unsigned int flags, CUdevice dev)
{
	(void)paramsArray;
	return SIM_CALL(NEED_INIT,
		numParams < 0 ? CUDA_ERROR_INVALID_VALUE : create(pctx, flags, dev, 11040));
}

#if CUDA_VERSION >= 12050
CUresult cuCtxCreate_v4(
	CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
	(void)ctxCreateParams;
	return SIM_CALL(NEED_INIT, create(pctx, flags, dev, 12050));
}
#endif

CUresult cuCtxDestroy(CUcontext ctx_)
{
	return SIM_CALL(NEED_INIT, destroy(ctx_));
}

CUresult cuCtxDestroy_v2(CUcontext ctx_)
{
	return SIM_CALL(NEED_INIT, destroy(ctx_));
}

CUresult cuCtxSetCurrent(CUcontext ctx_)
{
	return SIM_CALL(NEED_INIT, set(ctx_));
}

CUresult cuCtxPushCurrent(CUcontext ctx_)
{
	return SIM_CALL(NEED_INIT, push(ctx_));
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx_)
{
	return SIM_CALL(NEED_INIT, push(ctx_));
}

CUresult cuCtxPopCurrent(CUcontext *pctx)
{
	return SIM_CALL(NEED_INIT, pop(pctx));
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	return SIM_CALL(NEED_INIT, pop(pctx));
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	return SIM_CALL(NEED_INIT, pctx ? (*pctx = ctx, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	return SIM_CALL(NEED_CONTEXT, ctx_device(ctx, device));
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	return SIM_CALL(NEED_CONTEXT, limit_set(ctx, limit, value));
}

CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
	return SIM_CALL(NEED_CONTEXT, limit_get(ctx, pvalue, limit));
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	return SIM_CALL(
		NEED_CONTEXT, Flags ? CUDA_ERROR_INVALID_VALUE : peer_access(ctx, peerContext));
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
	return SIM_CALL(NEED_CONTEXT, peer_access(ctx, peerContext));
}
