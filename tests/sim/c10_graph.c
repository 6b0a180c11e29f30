/* libtorch_cuda.so: at::cuda::CUDAGraph and at::cuda::MemPool, as programs reach them from other
 * libraries. Errors end the program. */
#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "c10sim.h"

/* std::pair of two unsigned long long. */
struct pool_id {
	uint64_t first, second;
};

void _ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode(
	struct c10sim_graph *graph, struct pool_id pool, int mode);
void _ZN2at4cuda9CUDAGraph11capture_endEv(struct c10sim_graph *graph);
struct pool_id _ZN2at4cuda9CUDAGraph4poolEv(struct c10sim_graph *graph);
void _ZN2at4cuda9CUDAGraphD1Ev(struct c10sim_graph *graph);
void _ZN2at4cuda7MemPoolD1Ev(void *pool);

static _Atomic uint64_t last_pool;

void _ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode(
	struct c10sim_graph *graph, struct pool_id pool, int mode)
{
	graph->pool = pool.first ? pool.first : atomic_fetch_add(&last_pool, 1) + 1;
	c10sim_pool_begin(graph->device, graph->pool, graph->stream);
	if (cudaStreamBeginCapture(c10sim_stream_handle(graph->device, graph->stream),
		    (enum cudaStreamCaptureMode)mode))
		abort();
}

void _ZN2at4cuda9CUDAGraph11capture_endEv(struct c10sim_graph *graph)
{
	cudaGraph_t captured;

	if (cudaStreamEndCapture(c10sim_stream_handle(graph->device, graph->stream), &captured))
		abort();
	graph->graph = captured;
	c10sim_pool_end(graph->device, graph->pool);
}

struct pool_id _ZN2at4cuda9CUDAGraph4poolEv(struct c10sim_graph *graph)
{
	return (struct pool_id){graph->pool, 0};
}

void _ZN2at4cuda9CUDAGraphD1Ev(struct c10sim_graph *graph)
{
	if (graph->graph)
		cudaGraphDestroy(graph->graph);
	if (graph->pool)
		c10sim_pool_release(graph->device, graph->pool);
}

void _ZN2at4cuda7MemPoolD1Ev(void *pool)
{
	(void)pool;
}
