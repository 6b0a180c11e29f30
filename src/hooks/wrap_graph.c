#include "hooks/wrap.h"

/* A memory node's address is fixed when it is added; its bytes come with a launch, from the
 * device's pool for graphs. */
CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
	FORWARD(cuGraphAddMemAllocNode, phGraphNode, hGraph, dependencies, numDependencies,
		nodeParams);
	if (nodeParams)
		event_graph_alloc(&call, ADDRESS(hGraph),
			wrap_device_of(&nodeParams->poolProps.location), OUT(&nodeParams->dptr),
			nodeParams->bytesize);
	return LEAVE();
}

CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUdeviceptr dptr)
{
	FORWARD(cuGraphAddMemFreeNode, phGraphNode, hGraph, dependencies, numDependencies, dptr);
	event_graph_free(&call, ADDRESS(hGraph), dptr);
	return LEAVE();
}

#if CUDA_VERSION >= 12020
static void note_node(const struct call *call, CUgraph graph, const CUgraphNodeParams *node)
{
	if (node && node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		event_graph_alloc(call, ADDRESS(graph),
			wrap_device_of(&node->alloc.poolProps.location),
			call->result ? 0 : node->alloc.dptr, node->alloc.bytesize);
	else if (node && node->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		event_graph_free(call, ADDRESS(graph), node->free.dptr);
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	FORWARD(cuGraphAddNode, phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
	note_node(&call, hGraph, nodeParams);
	return LEAVE();
}
#endif

#if CUDA_VERSION >= 12030
CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	FORWARD(cuGraphAddNode_v2, phGraphNode, hGraph, dependencies, dependencyData,
		numDependencies, nodeParams);
	note_node(&call, hGraph, nodeParams);
	return LEAVE();
}
#endif

static void note_graph(const struct call *call, enum vt_graph_action action, CUgraph graph,
	uint64_t exec, CUstream stream)
{
	event_graph(call, action, ADDRESS(graph), exec, call->device, ADDRESS(stream));
}

static void note_exec(const struct call *call, CUgraph graph, const CUgraphExec *exec)
{
	note_graph(call, VT_GRAPH_INSTANTIATE, graph, call->result || !exec ? 0 : ADDRESS(*exec),
		NULL);
	objects_created(call, VT_OBJECT_GRAPH_EXEC);
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph,
	CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
	FORWARD_MEASURED(
		cuGraphInstantiate, phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
	note_exec(&call, hGraph, phGraphExec);
	return LEAVE_MEASURED(VT_CAUSE_GRAPH_EXEC);
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
	CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
	FORWARD_MEASURED(
		cuGraphInstantiate_v2, phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
	note_exec(&call, hGraph, phGraphExec);
	return LEAVE_MEASURED(VT_CAUSE_GRAPH_EXEC);
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(
	CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	FORWARD_MEASURED(cuGraphInstantiateWithFlags, phGraphExec, hGraph, flags);
	note_exec(&call, hGraph, phGraphExec);
	return LEAVE_MEASURED(VT_CAUSE_GRAPH_EXEC);
}

#if CUDA_VERSION >= 12000
CUresult CUDAAPI cuGraphInstantiateWithParams(
	CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	FORWARD_MEASURED(cuGraphInstantiateWithParams, phGraphExec, hGraph, instantiateParams);
	note_exec(&call, hGraph, phGraphExec);
	return LEAVE_MEASURED(VT_CAUSE_GRAPH_EXEC);
}

CUresult CUDAAPI cuGraphInstantiateWithParams_ptsz(
	CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	FORWARD_MEASURED(cuGraphInstantiateWithParams_ptsz, phGraphExec, hGraph, instantiateParams);
	note_exec(&call, hGraph, phGraphExec);
	return LEAVE_MEASURED(VT_CAUSE_GRAPH_EXEC);
}
#endif

/* What a launch copies is not seen call by call: launches are counted, and memory nodes make the
 * pool for graphs grow. */
static void note_launch(const struct call *call, CUgraphExec exec, CUstream stream)
{
	bool captured = sample_is_capturing(call, stream, NULL);

	note_graph(
		call, captured ? VT_GRAPH_CAPTURED : VT_GRAPH_LAUNCH, NULL, ADDRESS(exec), stream);
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
	FORWARD(cuGraphLaunch, hGraphExec, hStream);
	note_launch(&call, hGraphExec, hStream);
	sample_launch(&call);
	return LEAVE();
}

CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream)
{
	FORWARD(cuGraphLaunch_ptsz, hGraphExec, hStream);
	note_launch(&call, hGraphExec, hStream);
	sample_launch(&call);
	return LEAVE();
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	FORWARD_MEASURED(cuGraphExecDestroy, hGraphExec);
	note_graph(&call, VT_GRAPH_EXEC_DESTROY, NULL, ADDRESS(hGraphExec), NULL);
	objects_destroyed(&call, VT_OBJECT_GRAPH_EXEC);
	return LEAVE_MEASURED(VT_CAUSE_GRAPH_EXEC);
}

/* Its handle may be given out again: what is known of its nodes must not outlive it. */
CUresult CUDAAPI cuGraphDestroy(CUgraph hGraph)
{
	FORWARD(cuGraphDestroy, hGraph);
	note_graph(&call, VT_GRAPH_DESTROY, hGraph, 0, NULL);
	return LEAVE();
}

CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice device)
{
	FORWARD(cuDeviceGraphMemTrim, device);
	event_graph(&call, VT_GRAPH_TRIM, 0, 0, device, 0);
	sample_graphs(&call, device);
	return LEAVE();
}
