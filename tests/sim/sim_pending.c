/* Stream-ordered frees. While work on streams is held, what is freed is nobody's, and not to be
 * had.
 */
#include "sim.h"

#include <stdlib.h>

struct sim_pending {
	struct sim_pending *next;
	struct sim_place place;
	u64 bytes;
	CUstream stream;
};

static bool pending_add(struct sim_range *range, CUstream stream)
{
	struct sim_pending *pending = malloc(sizeof(*pending));

	if (!pending)
		return false;
	*pending = (struct sim_pending){range->pool->pending, range->place, range->bytes, stream};
	range->pool->pending = pending;
	/* The range goes, its pages and its part of the pool stay. */
	range->pool = NULL;
	range->place = (struct sim_place){0};
	sim_range_free(range, false);
	return true;
}

void sim_pending_end(CUmemoryPool pool, CUstream stream, bool any)
{
	struct sim_pending *kept = NULL, *ended = NULL, *next;

	for (struct sim_pending *at = pool->pending; at; at = next) {
		struct sim_pending **list = any || at->stream == stream ? &ended : &kept;

		next = at->next;
		at->next = *list;
		*list = at;
	}
	pool->pending = kept;
	for (; ended; ended = next) {
		next = ended->next;
		sim_place_give(&ended->place);
		sim_pool_used(pool, ended->bytes, false);
		free(ended);
	}
}

/* Only what a graph allocates can be freed in one. */
static CUresult free_captured(u64 address, CUstream stream)
{
	CUgraph graph = sim_capture_graph(stream);
	CUgraphNode node;

	return graph ? sim_graph_add_free(graph, address, &node)
		     : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

static CUresult free_async(u64 address, CUstream stream)
{
	struct sim_range *range = address ? sim_index_get(&sim.ranges, address) : NULL;

	if (!sim_stream_known(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (sim_stream_capturing(stream))
		return free_captured(address, stream);
	if (range && range->kind == CUSIM_POOL && sim_work_is_held())
		return pending_add(range, stream) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	return address ? sim_free(address) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	return SIM_FREE(NEED_CONTEXT, free_async(dptr, hStream));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
	return SIM_FREE(NEED_CONTEXT, free_async(dptr, hStream));
}
