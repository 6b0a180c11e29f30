/* Executable graphs: what they take, their launches, and the pool of graph memory. */
#include "sim.h"

struct step {
	bool is_free;
	struct sim_block *block;
};

struct CUgraphExec_st {
	CUcontext ctx;
	struct sim_place place;
	bool auto_free;
	struct step *steps; /* what its launch does to memory, in order */
	size_t n_steps;
};

static void drop_steps(CUgraphExec exec)
{
	for (size_t i = 0; i < exec->n_steps; i++) {
		if (!exec->steps[i].is_free)
			exec->steps[i].block->n_execs--;
		sim_block_drop(exec->steps[i].block);
	}
	free(exec->steps);
}

static void exec_end(CUgraphExec exec)
{
	sim_handle_remove(&sim.execs, exec);
	drop_steps(exec);
	sim_place_give(&exec->place);
	free(exec);
}

void sim_execs_end_with(CUcontext ctx)
{
	for (size_t i = sim.execs.n_entries; i > 0; i--) {
		CUgraphExec exec = sim.execs.entries[i - 1].value;

		if (exec->ctx == ctx)
			exec_end(exec);
	}
}

/* A graph with memory nodes has one executable at a time. */
static bool has_executable(CUgraph graph)
{
	for (size_t i = 0; i < graph->n_nodes; i++)
		if (graph->nodes[i]->block && graph->nodes[i]->block->n_execs > 0)
			return true;
	return false;
}

static bool take_steps(CUgraphExec exec, CUgraph graph)
{
	exec->steps = calloc(graph->n_nodes + 1, sizeof(*exec->steps));
	if (!exec->steps)
		return false;
	for (size_t i = 0; i < graph->n_nodes; i++) {
		struct sim_block *block = graph->nodes[i]->block;
		bool is_free = graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_MEM_FREE;

		if (!block)
			continue;
		exec->steps[exec->n_steps++] = (struct step){is_free, block};
		block->n_refs++;
		block->n_execs += !is_free;
	}
	return true;
}

static CUresult instantiate(CUcontext ctx, CUgraphExec *out, CUgraph graph, u64 flags)
{
	CUgraphExec exec;
	CUresult result;

	if (!out || flags > 15 || !sim_handle_known(&sim.graphs, graph))
		return CUDA_ERROR_INVALID_VALUE;
	if (has_executable(graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	exec = calloc(1, sizeof(*exec));
	if (!exec || !take_steps(exec, graph)) {
		free(exec);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	exec->ctx = ctx;
	exec->auto_free = flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
	result = sim_place_take(&ctx->dev->exec_heap, SIM_EXEC_BYTES, &exec->place);
	if (result == CUDA_SUCCESS && !sim_handle_insert(&sim.execs, exec)) {
		sim_place_give(&exec->place);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result != CUDA_SUCCESS) {
		drop_steps(exec);
		free(exec);
		return result;
	}
	*out = exec;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUgraphExec exec)
{
	if (!sim_handle_known(&sim.execs, exec))
		return CUDA_ERROR_INVALID_VALUE;
	exec_end(exec);
	return CUDA_SUCCESS;
}

/* Can the device's pool satisfy all steps, one after the other. */
static bool pool_suffices(CUgraphExec exec, const struct sim_device *dev)
{
	u64 n_pages = 0, most = 0;

	for (size_t i = 0; i < exec->n_steps; i++) {
		const struct step *step = &exec->steps[i];

		if (step->block->dev != dev)
			continue;
		n_pages += step->is_free ? -(u64)step->block->n_pages : step->block->n_pages;
		if ((int64_t)n_pages > (int64_t)most)
			most = n_pages;
	}
	return most <= UINT32_MAX && sim_pool_has(dev->graph_pool, (u32)most);
}

/* Will every step find its memory as it must be. */
static CUresult check_steps(CUgraphExec exec)
{
	for (size_t i = 0; i < exec->n_steps; i++)
		exec->steps[i].block->soon = exec->steps[i].block->live;
	for (size_t i = 0; i < exec->n_steps; i++) {
		struct sim_block *block = exec->steps[i].block;

		if (block->soon != exec->steps[i].is_free)
			return CUDA_ERROR_INVALID_VALUE;
		block->soon = !block->soon;
	}
	for (u32 i = 0; i < sim.n_devices; i++)
		if (!pool_suffices(exec, &sim.devices[i]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

static void end_live(struct sim_range *range)
{
	struct sim_block *block = range->object;

	block->live = NULL;
	sim_block_drop(block);
}

static CUresult make_live(CUcontext ctx, struct sim_block *block)
{
	CUmemoryPool pool = block->dev->graph_pool;
	u32 *pages = malloc(block->n_pages * sizeof(*pages));
	struct sim_range *range;

	if (!pages || !sim_pool_take(pool, block->n_pages, pages)) {
		free(pages);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	range = sim_range_new(CUSIM_GRAPH, block->dev, ctx, block->address, block->bytes);
	if (!range) {
		sim_pool_give(pool, pages, block->n_pages);
		free(pages);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	range->place =
		(struct sim_place){.heap = &pool->heap, .pages = pages, .n_pages = block->n_pages};
	range->pool = pool;
	range->object = block;
	range->end = end_live;
	sim_pool_used(pool, block->bytes, true);
	block->live = range;
	block->n_refs++;
	return CUDA_SUCCESS;
}

static void free_left_over(CUgraphExec exec)
{
	for (size_t i = 0; i < exec->n_steps; i++)
		if (!exec->steps[i].is_free && exec->steps[i].block->live)
			sim_range_free(exec->steps[i].block->live, false);
}

static CUresult launch(CUcontext ctx, CUgraphExec exec, CUstream stream)
{
	CUresult result;

	if (!sim_handle_known(&sim.execs, exec))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_stream_known(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (sim_stream_capturing(stream))
		return CUDA_SUCCESS; /* recorded, not executed */
	if (exec->auto_free)
		free_left_over(exec);
	result = check_steps(exec);
	for (size_t i = 0; result == CUDA_SUCCESS && i < exec->n_steps; i++) {
		if (exec->steps[i].is_free)
			sim_range_free(exec->steps[i].block->live, false);
		else
			result = make_live(ctx, exec->steps[i].block);
	}
	if (result == CUDA_SUCCESS)
		sim.ledger.devices[ctx->dev->ordinal].graph_launches++;
	return result;
}

static CUresult trim(CUdevice ordinal)
{
	struct sim_device *dev = sim_device_get(ordinal);

	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	sim_pool_trim(dev->graph_pool, 0);
	return CUDA_SUCCESS;
}

/* A number of the device's pool, or NULL. *now: what it can be reset to. */
static u64 *number_of(struct sim_device *dev, CUgraphMem_attribute attribute, u64 **now)
{
	CUmemoryPool pool = dev->graph_pool;

	*now = NULL;
	switch (attribute) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		return &pool->used_bytes;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		*now = &pool->used_bytes;
		return &pool->used_high;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		return &pool->reserved_bytes;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		*now = &pool->reserved_bytes;
		return &pool->reserved_high;
	default:
		return NULL;
	}
}

static CUresult attribute(CUdevice ordinal, CUgraphMem_attribute which, void *value, bool set)
{
	struct sim_device *dev = sim_device_get(ordinal);
	u64 *number, *now;

	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	number = number_of(dev, which, &now);
	if (!number || !value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!set) {
		*(cuuint64_t *)value = *number;
		return CUDA_SUCCESS;
	}
	if (!now || *(cuuint64_t *)value != 0)
		return CUDA_ERROR_INVALID_VALUE;
	*number = *now;
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
	char *logBuffer, size_t bufferSize)
{
	(void)phErrorNode, (void)logBuffer, (void)bufferSize;
	return SIM_CALL(NEED_CONTEXT, instantiate(ctx, phGraphExec, hGraph, 0));
}

CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
	char *logBuffer, size_t bufferSize)
{
	(void)phErrorNode, (void)logBuffer, (void)bufferSize;
	return SIM_CALL(NEED_CONTEXT, instantiate(ctx, phGraphExec, hGraph, 0));
}

CUresult cuGraphInstantiateWithFlags(
	CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	return SIM_CALL(NEED_CONTEXT, instantiate(ctx, phGraphExec, hGraph, flags));
}

#if CUDA_VERSION >= 12000
static CUresult instantiate_with(
	CUcontext ctx, CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	CUresult result;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	result = instantiate(ctx, out, graph, params->flags);
	params->hErrNode_out = NULL;
	params->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
						    : CUDA_GRAPH_INSTANTIATE_ERROR;
	return result;
}

CUresult cuGraphInstantiateWithParams(
	CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	return SIM_CALL(
		NEED_CONTEXT, instantiate_with(ctx, phGraphExec, hGraph, instantiateParams));
}

CUresult cuGraphInstantiateWithParams_ptsz(
	CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	return SIM_CALL(
		NEED_CONTEXT, instantiate_with(ctx, phGraphExec, hGraph, instantiateParams));
}
#endif

#define LAUNCH(expr)                                                                               \
	SIM_CALL_THEN(                                                                             \
		NEED_CONTEXT, expr, if (result != CUDA_SUCCESS) { sim.ledger.failed_launches++; })

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
	return LAUNCH(launch(ctx, hGraphExec, hStream));
}

CUresult cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream)
{
	return LAUNCH(launch(ctx, hGraphExec, hStream));
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	return SIM_CALL(NEED_INIT, destroy(hGraphExec));
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	return SIM_CALL(NEED_INIT, trim(device));
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	return SIM_CALL(NEED_INIT, attribute(device, attr, value, false));
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	return SIM_CALL(NEED_INIT, attribute(device, attr, value, true));
}
