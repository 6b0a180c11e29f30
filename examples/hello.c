/* The smallest program with something to report: 1 MiB of device memory that is never freed. */
#include <cuda_runtime_api.h>
#include <stdio.h>

int main(void)
{
	void *block;
	cudaError_t error = cudaMalloc(&block, 1 << 20);

	if (error != cudaSuccess) {
		fprintf(stderr, "cudaMalloc: %s\n", cudaGetErrorString(error));
		return 1;
	}
	puts("hello");
	return 0;
}
