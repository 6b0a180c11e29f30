/* Stands for libtorch_python: calls at::cuda::CUDAGraph's functions, which are in another library,
 * through the linkage table. */
#include <stdint.h>

struct pool_id {
	uint64_t first, second;
};

void _ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode(
	void *graph, struct pool_id pool, int mode);
void _ZN2at4cuda9CUDAGraph11capture_endEv(void *graph);
struct pool_id _ZN2at4cuda9CUDAGraph4poolEv(void *graph);
void _ZN2at4cuda9CUDAGraphD1Ev(void *graph);
void _ZN2at4cuda7MemPoolD1Ev(void *pool);

void binding_capture_begin(void *graph, uint64_t first, uint64_t second, int mode)
{
	_ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode(
		graph, (struct pool_id){first, second}, mode);
}

void binding_capture_end(void *graph)
{
	_ZN2at4cuda9CUDAGraph11capture_endEv(graph);
}

struct pool_id binding_pool(void *graph)
{
	return _ZN2at4cuda9CUDAGraph4poolEv(graph);
}

void binding_graph_destroy(void *graph)
{
	_ZN2at4cuda9CUDAGraphD1Ev(graph);
}

void binding_pool_destroy(void *pool)
{
	_ZN2at4cuda7MemPoolD1Ev(pool);
}
