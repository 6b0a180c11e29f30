/*
 * random_runtime_wide.h: the families of --families all that the runtime has, for random_runtime.c,
 * which includes it.
 */
#ifndef RANDOM_RUNTIME_WIDE_H
#define RANDOM_RUNTIME_WIDE_H

#include <string.h>

static int array_make(unsigned form, struct array *a)
{
	struct cudaChannelFormatDesc d = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
	struct cudaExtent extent = {a->width, a->height, a->depth};
	cudaMipmappedArray_t mipmap = NULL;
	cudaArray_t array = NULL;
	cudaError_t error;

	if (a->n_levels) {
		error = cudaMallocMipmappedArray(&mipmap, &d, extent, a->n_levels, 0);
		a->handle = (u64)(uintptr_t)mipmap;
		a->level = 0; /* cannot be copied here */
		return (int)error;
	}
	error = a->depth || CHOOSE(2) ? cudaMalloc3DArray(&array, &d, extent, 0)
				      : cudaMallocArray(&array, &d, a->width, a->height, 0);
	a->handle = a->level = (u64)(uintptr_t)array;
	return (int)error;
}

static int array_end(const struct array *a)
{
	return (int)(a->n_levels ? cudaFreeMipmappedArray(POINTER(a->handle))
				 : cudaFreeArray(POINTER(a->handle)));
}

/* The kind of copy that the two places make; an array is device memory. */
static enum cudaMemcpyKind kind_of(const struct box *b)
{
	bool to_host = b->dst.place == PLACE_HOST, from_host = b->src.place == PLACE_HOST;

	if (b->dst.place == PLACE_UNIFIED || b->src.place == PLACE_UNIFIED)
		return cudaMemcpyDefault;
	if (to_host)
		return from_host ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
	return from_host ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

static struct cudaPitchedPtr pitched(const struct box_side *side, const struct box *b)
{
	return (struct cudaPitchedPtr){POINTER(side->at), side->pitch, b->width, b->height};
}

static int box_3d(unsigned form, const struct box *b)
{
	struct cudaMemcpy3DParms c = {
		.extent = {b->width, b->height, b->depth}, .kind = kind_of(b)};

	if (b->dst.place == PLACE_ARRAY)
		c.dstArray = POINTER(b->dst.at);
	else
		c.dstPtr = pitched(&b->dst, b);
	if (b->src.place == PLACE_ARRAY)
		c.srcArray = POINTER(b->src.at);
	else
		c.srcPtr = pitched(&b->src, b);
	return (int)(CHOOSE(2) ? cudaMemcpy3D(&c) : cudaMemcpy3DAsync(&c, stream_of(form)));
}

static int box(unsigned form, const struct box *b)
{
	bool to_array = b->dst.place == PLACE_ARRAY, from_array = b->src.place == PLACE_ARRAY;
	void *dst = POINTER(b->dst.at), *src = POINTER(b->src.at);
	enum cudaMemcpyKind kind = kind_of(b);

	if (b->depth > 1 || (to_array && from_array) || (form & 3) == 0)
		return box_3d(form, b);
	if (to_array)
		return (int)(CHOOSE(2) ? cudaMemcpy2DToArray(dst, 0, 0, src, b->src.pitch, b->width,
						 b->height, kind)
				       : cudaMemcpy2DToArrayAsync(dst, 0, 0, src, b->src.pitch,
						 b->width, b->height, kind, stream_of(form)));
	if (from_array)
		return (int)(CHOOSE(2) ? cudaMemcpy2DFromArray(dst, b->dst.pitch, src, 0, 0,
						 b->width, b->height, kind)
				       : cudaMemcpy2DFromArrayAsync(dst, b->dst.pitch, src, 0, 0,
						 b->width, b->height, kind, stream_of(form)));
	return (int)(CHOOSE(2) ? cudaMemcpy2D(dst, b->dst.pitch, src, b->src.pitch, b->width,
					 b->height, kind)
			       : cudaMemcpy2DAsync(dst, b->dst.pitch, src, b->src.pitch, b->width,
					 b->height, kind, stream_of(form)));
}

static int share(enum share share, int device, u64 *base, u64 bytes, u64 *out)
{
	cudaIpcMemHandle_t handle;
	void *p = NULL;
	cudaError_t error = cudaIpcGetMemHandle(&handle, POINTER(*base));

	(void)share, (void)device, (void)bytes;
	if (!error)
		error = cudaIpcOpenMemHandle(&p, handle, cudaIpcMemLazyEnablePeerAccess);
	*out = (u64)(uintptr_t)p;
	return (int)error;
}

static int unshare(enum share share, u64 base, u64 address)
{
	(void)share, (void)base;
	return (int)cudaIpcCloseMemHandle(POINTER(address));
}

static cudaError_t graph_by_hand(struct graph *g, cudaGraph_t *graph)
{
	struct cudaMemAllocNodeParams params = {
		.poolProps = {.allocType = cudaMemAllocationTypePinned,
			.location = {.type = cudaMemLocationTypeDevice, .id = g->device}},
		.bytesize = g->bytes};
	cudaGraphNode_t node, next;
	cudaError_t error = cudaGraphCreate(graph, 0);

	if (!error)
		error = cudaGraphAddMemAllocNode(&node, *graph, NULL, 0, &params);
	if (!error)
		error = cudaGraphAddEmptyNode(&next, *graph, &node, 1);
	if (!error && g->frees)
		error = cudaGraphAddMemFreeNode(&next, *graph, &next, 1, params.dptr);
	g->address = (u64)(uintptr_t)params.dptr;
	return error;
}

static cudaError_t graph_by_capture(struct graph *g, cudaGraph_t *graph)
{
	cudaStream_t stream = streams[device_now];
	void *p = NULL;
	cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);

	if (!error)
		error = cudaMallocFromPoolAsync(&p, g->bytes, pools[g->device], stream);
	if (!error && g->frees)
		error = cudaFreeAsync(p, stream);
	if (!error)
		error = cudaStreamEndCapture(stream, graph);
	g->address = (u64)(uintptr_t)p;
	return error;
}

static int graph_launch(unsigned form, u64 exec)
{
	return (int)cudaGraphLaunch(POINTER(exec), stream_of(form));
}

static int graph_make(unsigned form, struct graph *g)
{
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;
	cudaError_t error = form & 4 ? graph_by_hand(g, &graph) : graph_by_capture(g, &graph);

	if (!error)
		error = cudaGraphInstantiateWithFlags(&exec, graph, 0);
	if (!error)
		error = (cudaError_t)graph_launch(form, (u64)(uintptr_t)exec);
	g->graph = (u64)(uintptr_t)graph;
	g->exec = (u64)(uintptr_t)exec;
	return (int)error;
}

static int graph_end(const struct graph *g)
{
	cudaError_t error = cudaGraphExecDestroy(POINTER(g->exec));

	return (int)(error ? error : cudaGraphDestroy(POINTER(g->graph)));
}

static int migrate(unsigned form, int device, u64 address, u64 bytes)
{
	void *p = POINTER(address);

#if CUDART_VERSION >= 13000
	struct cudaMemLocation to = {.type = cudaMemLocationTypeDevice, .id = device};

	return (int)(CHOOSE(2) ? cudaMemPrefetchAsync(p, bytes, to, 0, stream_of(form))
			       : cudaMemAdvise(p, bytes, cudaMemAdviseSetAccessedBy, to));
#else
	return (int)(CHOOSE(2) ? cudaMemPrefetchAsync(p, bytes, device, stream_of(form))
			       : cudaMemAdvise(p, bytes, cudaMemAdviseSetAccessedBy, device));
#endif
}

static int adjust(unsigned form, int device)
{
	cuuint64_t value = (form & 3) << 25;

	switch (CHOOSE(6)) {
	case 0:
		return (int)cudaDeviceSetLimit(cudaLimitStackSize, (1 + (form & 3)) << 10);
	case 1:
		return (int)cudaDeviceGraphMemTrim(device);
	case 2:
		return (int)cudaMemPoolSetAttribute(
			pools[device], cudaMemPoolAttrReleaseThreshold, &value);
	case 3:
		return (int)cudaMemPoolTrimTo(pools[device], value);
	case 4:
		return (int)cudaDeviceSetMemPool(device, pools[device]);
	default:
		return (int)cudaMemPoolGetAttribute(
			pools[device], cudaMemPoolAttrUsedMemHigh, &value);
	}
}

static const struct wide wide = {
	.array_make = array_make,
	.array_end = array_end,
	.box = box,
	.share = share,
	.unshare = unshare,
	.has_share = {[SHARE_IPC] = true},
	.graph_make = graph_make,
	.graph_launch = graph_launch,
	.graph_end = graph_end,
	.migrate = migrate,
	.adjust = adjust,
};

#endif
