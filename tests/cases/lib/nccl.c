/* Stands for NCCL, under its name: what a communicator takes for its channels, physical memory that
 * it maps itself, and page-locked memory by a runtime of its own, which is linked into it. */
#include <cuda.h>
#include <cuda_runtime_api.h>

#define N_CHANNELS   4
#define BUFFER_BYTES (10u << 20)
#define PROXY_BYTES  (9u << 20)

int nccl_buffer(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;

	return cuMemCreate(&handle, BUFFER_BYTES, &prop, 0) ||
	       cuMemAddressReserve(&address, BUFFER_BYTES, 0, 0, 0) ||
	       cuMemMap(address, BUFFER_BYTES, 0, handle, 0) || cuMemRelease(handle);
}

int nccl_proxy(void)
{
	void *host;
	int result = (int)cudaHostAlloc(&host, PROXY_BYTES, cudaHostAllocMapped);

	__asm__ volatile("" ::: "memory"); /* no tail call */
	return result;
}

/* 0: it is there. */
int ncclCommInitRank(void)
{
	int failed = nccl_proxy();

	for (int i = 0; i < N_CHANNELS && !failed; i++)
		failed = nccl_buffer();
	return failed;
}
