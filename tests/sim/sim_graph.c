/* Graphs and their nodes. A node may depend on nodes that are there already only, so the order they
 * were added in is one to run them in. */
#include "sim.h"

CUgraph sim_graph_new(void)
{
	return calloc(1, sizeof(struct CUgraph_st));
}

void sim_block_drop(struct sim_block *block)
{
	if (--block->n_refs > 0)
		return;
	sim_index_remove(&sim.blocks, block->address, block);
	sim_address_give(&sim.arena, block->address, block->n_pages);
	free(block);
}

void sim_graph_free(CUgraph graph)
{
	for (size_t i = 0; i < graph->n_nodes; i++) {
		if (graph->nodes[i]->block)
			sim_block_drop(graph->nodes[i]->block);
		free(graph->nodes[i]);
	}
	free(graph->nodes);
	free(graph);
}

bool sim_block_may_free(const struct sim_range *range)
{
	const struct sim_block *block = range->object;

	return !block->freed_in || block->freed_in != block->graph;
}

/* Adds a node, with a reference to its block if it has one. NULL: no memory. */
static CUgraphNode node_add(CUgraph graph, CUgraphNodeType type, struct sim_block *block)
{
	CUgraphNode node;

	if (graph->n_nodes == graph->capacity) {
		size_t capacity = graph->capacity ? 2 * graph->capacity : 8;
		CUgraphNode *nodes = realloc(graph->nodes, capacity * sizeof(*nodes));

		if (!nodes)
			return NULL;
		graph->nodes = nodes;
		graph->capacity = capacity;
	}
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	*node = (struct CUgraphNode_st){type, block};
	if (block)
		block->n_refs++;
	graph->nodes[graph->n_nodes++] = node;
	return node;
}

/* The addresses of an allocation; its caller has the one reference. */
static struct sim_block *block_new(CUgraph graph, struct sim_device *dev, u64 bytes)
{
	struct sim_block *block = calloc(1, sizeof(*block));

	if (!block)
		return NULL;
	*block = (struct sim_block){.dev = dev,
		.bytes = bytes,
		.n_pages = sim_n_pages(bytes),
		.n_refs = 1,
		.graph = graph};
	block->address = sim_address_take(&sim.arena, block->n_pages, SIM_PAGE_BYTES);
	if (block->address && sim_index_insert(&sim.blocks, block->address, block))
		return block;
	if (block->address)
		sim_address_give(&sim.arena, block->address, block->n_pages);
	free(block);
	return NULL;
}

CUresult sim_graph_add_alloc(
	CUgraph graph, struct sim_device *dev, u64 bytes, CUgraphNode *node, u64 *address)
{
	struct sim_block *block;

	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	block = bytes <= dev->total_bytes ? block_new(graph, dev, bytes) : NULL;
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*node = node_add(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, block);
	*address = block->address;
	sim_block_drop(block);
	return *node ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_graph_add_free(CUgraph graph, u64 address, CUgraphNode *node)
{
	struct sim_block *block = sim_index_get(&sim.blocks, address);

	if (!block || block->freed_in == graph || (block->freed_in && block->graph == graph) ||
		(block->freed_in && block->freed_in == block->graph))
		return CUDA_ERROR_INVALID_VALUE;
	*node = node_add(graph, CU_GRAPH_NODE_TYPE_MEM_FREE, block);
	if (!*node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block->freed_in = graph;
	return CUDA_SUCCESS;
}

static CUresult create(CUgraph *out, unsigned int flags)
{
	CUgraph graph = out && !flags ? sim_graph_new() : NULL;

	if (!graph || !sim_handle_insert(&sim.graphs, graph)) {
		free(graph);
		return out && !flags ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	}
	*out = graph;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUgraph graph)
{
	if (!sim_handle_known(&sim.graphs, graph))
		return CUDA_ERROR_INVALID_VALUE;
	sim_handle_remove(&sim.graphs, graph);
	sim_graph_free(graph);
	return CUDA_SUCCESS;
}

static bool has_node(CUgraph graph, CUgraphNode node)
{
	for (size_t i = 0; i < graph->n_nodes; i++)
		if (graph->nodes[i] == node)
			return true;
	return false;
}

/* Can a node with these dependencies be added to the graph. */
static bool fits(CUgraph graph, const CUgraphNode *dependencies, size_t n, CUgraphNode *out)
{
	if (!out || !sim_handle_known(&sim.graphs, graph) || (n > 0 && !dependencies))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!has_node(graph, dependencies[i]))
			return false;
	return true;
}

static CUresult add_alloc(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
	size_t n, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	const CUmemPoolProps *props;
	u64 address;
	CUresult result;

	if (!params || !fits(graph, dependencies, n, out))
		return CUDA_ERROR_INVALID_VALUE;
	props = &params->poolProps;
	if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
		props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!sim_device_get(props->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	result = sim_graph_add_alloc(
		graph, sim_device_get(props->location.id), params->bytesize, out, &address);
	if (result == CUDA_SUCCESS)
		params->dptr = address;
	return result;
}

/* A failure counts for the device asked for, where there is such a one. */
static void alloc_failed(CUcontext ctx, const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	struct sim_device *dev = NULL;

	if (params && params->poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		dev = sim_device_get(params->poolProps.location.id);
	if (dev)
		sim.ledger.devices[dev->ordinal].kinds[CUSIM_GRAPH].failed++;
	else
		sim_ledger_failed(ctx, CUSIM_GRAPH);
}

static CUresult add_free(
	CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t n, u64 address)
{
	return fits(graph, dependencies, n, out) ? sim_graph_add_free(graph, address, out)
						 : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_empty(
	CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t n)
{
	if (!fits(graph, dependencies, n, out))
		return CUDA_ERROR_INVALID_VALUE;
	*out = node_add(graph, CU_GRAPH_NODE_TYPE_EMPTY, NULL);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

#if CUDA_VERSION >= 12020
static CUresult add_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t n,
	CUgraphNodeParams *params)
{
	CUDA_MEM_ALLOC_NODE_PARAMS first;
	CUresult result;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return add_empty(out, graph, dependencies, n);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return add_free(out, graph, dependencies, n, params->free.dptr);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		first = (CUDA_MEM_ALLOC_NODE_PARAMS){
			.poolProps = params->alloc.poolProps, .bytesize = params->alloc.bytesize};
		result = add_alloc(out, graph, dependencies, n, &first);
		if (result == CUDA_SUCCESS)
			params->alloc.dptr = first.dptr;
		return result;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

static void node_failed(CUcontext ctx, const CUgraphNodeParams *params)
{
	CUDA_MEM_ALLOC_NODE_PARAMS first;

	if (!params || params->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		return;
	first = (CUDA_MEM_ALLOC_NODE_PARAMS){.poolProps = params->alloc.poolProps};
	alloc_failed(ctx, &first);
}

CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
	size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	return SIM_CALL_THEN(NEED_INIT,
		add_node(phGraphNode, hGraph, dependencies, numDependencies, nodeParams),
		if (result != CUDA_SUCCESS) node_failed(ctx, nodeParams));
}
#endif

#if CUDA_VERSION >= 12030
CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	(void)dependencyData;
	return SIM_CALL_THEN(NEED_INIT,
		add_node(phGraphNode, hGraph, dependencies, numDependencies, nodeParams),
		if (result != CUDA_SUCCESS) node_failed(ctx, nodeParams));
}
#endif

CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
	return SIM_CALL_THEN(NEED_INIT,
		add_alloc(phGraphNode, hGraph, dependencies, numDependencies, nodeParams),
		if (result != CUDA_SUCCESS) alloc_failed(ctx, nodeParams));
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUdeviceptr dptr)
{
	return SIM_CALL(
		NEED_INIT, add_free(phGraphNode, hGraph, dependencies, numDependencies, dptr));
}

CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies)
{
	return SIM_CALL(NEED_INIT, add_empty(phGraphNode, hGraph, dependencies, numDependencies));
}

CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
	return SIM_CALL(NEED_INIT, create(phGraph, flags));
}

CUresult cuGraphDestroy(CUgraph hGraph)
{
	return SIM_CALL(NEED_INIT, destroy(hGraph));
}
