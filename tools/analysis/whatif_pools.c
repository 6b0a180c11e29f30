/* Graphs, their captures and the pools that they take blocks from. */
#include <stdlib.h>

#include "analysis/whatif_parts.h"
#include "model/memory.h"

static struct whatif_graph *find_graph(const struct whatif_pools *pools, uint64_t object)
{
	for (size_t i = 0; i < pools->n_graphs; i++)
		if (pools->graphs[i].object == object)
			return &pools->graphs[i];
	return NULL;
}

static uint64_t new_pool(struct whatif_pools *pools, uint64_t first, uint64_t second)
{
	pools->pools = memory_grow(
		pools->pools, pools->n_pools, &pools->pools_room, sizeof(*pools->pools));
	pools->pools[pools->n_pools++] = (struct whatif_pool){first, second};
	return pools->n_pools;
}

static uint64_t pool_of(struct whatif_pools *pools, uint64_t first, uint64_t second)
{
	for (size_t i = pools->n_pools; (first || second) && i--;)
		if (pools->pools[i].first == first && pools->pools[i].second == second)
			return i + 1;
	return new_pool(pools, first, second);
}

static void begin(struct whatif_pools *pools, const struct vt_rec_graph_pool *given, uint32_t tid)
{
	struct whatif_graph *graph = find_graph(pools, given->object);

	if (!graph) {
		pools->graphs = memory_grow(pools->graphs, pools->n_graphs, &pools->graphs_room,
			sizeof(*pools->graphs));
		graph = &pools->graphs[pools->n_graphs++];
	}
	*graph = (struct whatif_graph){
		.object = given->object,
		.pool = pool_of(pools, given->first, given->second),
		.stream = given->stream,
		.tid = tid,
		.begun = true,
	};
}

/* The thread began a capture with the driver: its graph's, if it is about to. */
static size_t capture(struct whatif_pools *pools, uint32_t tid, struct whatif_step *step)
{
	for (size_t i = 0; i < pools->n_graphs; i++) {
		struct whatif_graph *graph = &pools->graphs[i];

		if (!graph->begun || graph->capturing || graph->tid != tid)
			continue;
		graph->capturing = true;
		*step = (struct whatif_step){.kind = WHATIF_SCOPE_BEGIN, .pool = graph->pool};
		return 1;
	}
	return 0;
}

static size_t end(struct whatif_graph *graph, struct whatif_step *step)
{
	if (!graph)
		return 0;
	graph->begun = false;
	if (!graph->capturing)
		return 0;
	graph->capturing = false;
	*step = (struct whatif_step){.kind = WHATIF_SCOPE_END, .pool = graph->pool};
	return 1;
}

/* The graph lets go of its pool, which is unused when it was the last one. */
static size_t let_go(
	struct whatif_pools *pools, struct whatif_graph *graph, struct whatif_step steps[2])
{
	size_t n = end(graph, steps);
	uint64_t pool;

	if (!graph)
		return n;
	pool = graph->pool;
	*graph = pools->graphs[--pools->n_graphs];
	for (size_t i = 0; i < pools->n_graphs; i++)
		if (pools->graphs[i].pool == pool)
			return n;
	steps[n++] = (struct whatif_step){.kind = WHATIF_POOL_UNUSED, .pool = pool};
	return n;
}

size_t whatif_pools_observe(
	struct whatif_pools *pools, const struct vt_record *record, struct whatif_step steps[2])
{
	const struct vt_rec_graph_pool *given = &record->graph_pool;
	struct whatif_graph *graph;

	if (record->kind == VT_REC_capture)
		return record->capture.begin && !record->capture.result
			       ? capture(pools, record->tid, steps)
			       : 0;
	graph = find_graph(pools, given->object);
	switch (given->action) {
	case VT_GRAPH_POOL_BEGIN:
		begin(pools, given, record->tid);
		return 0;
	case VT_GRAPH_POOL_END:
		return end(graph, steps);
	case VT_GRAPH_POOL_NAMED:
		if (graph)
			pools->pools[graph->pool - 1] =
				(struct whatif_pool){given->first, given->second};
		return 0;
	case VT_GRAPH_POOL_RESET:
	case VT_GRAPH_POOL_DESTROYED:
		return let_go(pools, graph, steps);
	default:
		return 0;
	}
}

uint64_t whatif_pools_on(const struct whatif_pools *pools, int64_t stream, bool is_captured)
{
	uint64_t any = 0;

	for (size_t i = 0; i < pools->n_graphs; i++) {
		const struct whatif_graph *graph = &pools->graphs[i];

		if (graph->capturing && graph->stream == stream)
			return graph->pool;
		if (graph->begun && is_captured)
			any = graph->pool;
	}
	return any;
}

void whatif_pools_release(struct whatif_pools *pools)
{
	free(pools->graphs);
	free(pools->pools);
	*pools = (struct whatif_pools){0};
}
