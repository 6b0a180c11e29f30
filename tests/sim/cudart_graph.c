/* Graphs. */
#include "cudart.h"

cudaError_t cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags)
{
	return RT_CALL(cuGraphCreate, pGraph, flags);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	return RT_CALL(cuGraphDestroy, graph);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies)
{
	return RT_CALL(cuGraphAddEmptyNode, pGraphNode, graph, pDependencies, numDependencies);
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies,
	struct cudaMemAllocNodeParams *nodeParams)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {0};
	cudaError_t error;

	if (!nodeParams)
		return rt_result(cudaErrorInvalidValue);
	params.poolProps.allocType = (CUmemAllocationType)nodeParams->poolProps.allocType;
	params.poolProps.handleTypes = (CUmemAllocationHandleType)nodeParams->poolProps.handleTypes;
	params.poolProps.location.type = (CUmemLocationType)nodeParams->poolProps.location.type;
	params.poolProps.location.id = nodeParams->poolProps.location.id;
	params.bytesize = nodeParams->bytesize;
	error = RT_CALL(
		cuGraphAddMemAllocNode, pGraphNode, graph, pDependencies, numDependencies, &params);
	if (error == cudaSuccess)
		nodeParams->dptr = (void *)(uintptr_t)params.dptr;
	return error;
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies, void *dptr)
{
	return RT_CALL(cuGraphAddMemFreeNode, pGraphNode, graph, pDependencies, numDependencies,
		(CUdeviceptr)(uintptr_t)dptr);
}

#if CUDART_VERSION >= 12000
cudaError_t cudaGraphInstantiate(
	cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags)
{
	return RT_CALL(cuGraphInstantiateWithFlags, pGraphExec, graph, flags);
}
#else
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
	cudaGraphNode_t *pErrorNode, char *pLogBuffer, size_t bufferSize)
{
	(void)pErrorNode, (void)pLogBuffer, (void)bufferSize;
	return RT_CALL(cuGraphInstantiateWithFlags, pGraphExec, graph, 0);
}
#endif

cudaError_t cudaGraphInstantiateWithFlags(
	cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags)
{
	return RT_CALL(cuGraphInstantiateWithFlags, pGraphExec, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	return RT_CALL(cuGraphLaunch, graphExec, stream);
}

cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	return RT_CALL(cuGraphLaunch_pt, graphExec, stream);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
	return RT_CALL(cuGraphExecDestroy, graphExec);
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
	return RT_CALL(cuDeviceGraphMemTrim, device);
}

cudaError_t cudaDeviceGetGraphMemAttribute(
	int device, enum cudaGraphMemAttributeType attr, void *value)
{
	return RT_CALL(cuDeviceGetGraphMemAttribute, device, (CUgraphMem_attribute)attr, value);
}

cudaError_t cudaDeviceSetGraphMemAttribute(
	int device, enum cudaGraphMemAttributeType attr, void *value)
{
	return RT_CALL(cuDeviceSetGraphMemAttribute, device, (CUgraphMem_attribute)attr, value);
}
