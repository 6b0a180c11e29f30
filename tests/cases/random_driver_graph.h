/*
 * random_driver_graph.h: graphs with memory nodes for random_driver.h, which includes it: made by
 * hand or by a capture, in every form there is.
 */
#ifndef RANDOM_DRIVER_GRAPH_H
#define RANDOM_DRIVER_GRAPH_H

static CUDA_MEM_ALLOC_NODE_PARAMS node_params(const struct graph *g)
{
	return (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = g->device}},
		.bytesize = g->bytes};
}

static CUresult add_alloc(unsigned form, struct graph *g, CUgraph graph, CUgraphNode *node)
{
	CUDA_MEM_ALLOC_NODE_PARAMS first = node_params(g);
	CUresult error;

#if CUDA_VERSION >= 12030
	CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};

	if (CHOOSE(3)) {
		any.alloc.poolProps = first.poolProps;
		any.alloc.bytesize = first.bytesize;
		error = CHOOSE(3) == 1 ? CU(cuGraphAddNode)(node, graph, NULL, 0, &any)
				       : CU(cuGraphAddNode_v2)(node, graph, NULL, NULL, 0, &any);
		g->address = any.alloc.dptr;
		return error;
	}
#else
	(void)form;
#endif
	error = CU(cuGraphAddMemAllocNode)(node, graph, NULL, 0, &first);
	g->address = first.dptr;
	return error;
}

static CUresult add_free(unsigned form, const struct graph *g, CUgraph graph, CUgraphNode *after)
{
	CUgraphNode node;

#if CUDA_VERSION >= 12030
	CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};

	if (CHOOSE(3)) {
		any.free.dptr = g->address;
		return CHOOSE(3) == 1 ? CU(cuGraphAddNode)(&node, graph, after, 1, &any)
				      : CU(cuGraphAddNode_v2)(&node, graph, after, NULL, 1, &any);
	}
#else
	(void)form;
#endif
	return CU(cuGraphAddMemFreeNode)(&node, graph, after, 1, g->address);
}

static CUresult graph_by_hand(unsigned form, struct graph *g, CUgraph *out)
{
	CUgraphNode node, empty;
	CUresult error = CU(cuGraphCreate)(out, 0);

	if (!error)
		error = add_alloc(form, g, *out, &node);
	if (!error)
		error = CU(cuGraphAddEmptyNode)(&empty, *out, &node, 1);
	if (!error && g->frees)
		error = add_free(form, g, *out, &empty);
	return error;
}

static CUresult graph_by_capture(unsigned form, struct graph *g, CUgraph *out)
{
	CUstream stream = streams[device_now];
	CUdeviceptr address = 0;
	CUresult error = CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED);

	if (!error)
		error = form & 1 ? CU(cuMemAllocFromPoolAsync)(
					   &address, g->bytes, pools[g->device], stream)
				 : CU(cuMemAllocFromPoolAsync_ptsz)(
					   &address, g->bytes, pools[g->device], stream);
	if (!error)
		error = CU(cuMemsetD8Async)(address, 1, g->bytes, stream);
	if (!error && g->frees)
		error = form & 2 ? CU(cuMemFreeAsync)(address, stream)
				 : CU(cuMemFreeAsync_ptsz)(address, stream);
	if (!error)
		error = CU(cuStreamEndCapture)(stream, out);
	g->address = address;
	return error;
}

static CUresult instantiate(unsigned form, CUgraph graph, CUgraphExec *exec)
{
#if CUDA_VERSION >= 12000
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};

	if (CHOOSE(5) >= 3)
		return CHOOSE(5) == 3 ? CU(cuGraphInstantiateWithParams)(exec, graph, &params)
				      : CU(cuGraphInstantiateWithParams_ptsz)(exec, graph, &params);
#endif
	switch (CHOOSE(3)) {
	case 0:
		return CU(cuGraphInstantiate)(exec, graph, NULL, NULL, 0);
	case 1:
		return CU(cuGraphInstantiate_v2)(exec, graph, NULL, NULL, 0);
	default:
		return CU(cuGraphInstantiateWithFlags)(exec, graph, 0);
	}
}

static int graph_launch(unsigned form, u64 exec)
{
	CUgraphExec handle = POINTER(exec);

	return (int)(CHOOSE(2) ? CU(cuGraphLaunch)(handle, stream_of(form))
			       : CU(cuGraphLaunch_ptsz)(handle, stream_of(form)));
}

static int graph_make(unsigned form, struct graph *g)
{
	CUgraph graph;
	CUgraphExec exec = NULL;
	CUresult error =
		form & 4 ? graph_by_hand(form, g, &graph) : graph_by_capture(form, g, &graph);

	if (!error)
		error = instantiate(form, graph, &exec);
	if (!error)
		error = (CUresult)graph_launch(form, (u64)(uintptr_t)exec);
	g->graph = (u64)(uintptr_t)graph;
	g->exec = (u64)(uintptr_t)exec;
	return (int)error;
}

static int graph_end(const struct graph *g)
{
	CUresult error = CU(cuGraphExecDestroy)(POINTER(g->exec));

	return (int)(error ? error : CU(cuGraphDestroy)(POINTER(g->graph)));
}

#endif
