/*
 * Calls of the CUDA runtime by their public names: those of every sort that the simulated one has.
 * Prints what they return. With CUDA_API_PER_THREAD_DEFAULT_STREAM the header makes other names of
 * some.
 */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define ODD_ERRNO 1234

#define CALL(name, ...)                                                                            \
	(errno = ODD_ERRNO, printf(#name " %d", name(__VA_ARGS__)),                                \
		puts(errno == ODD_ERRNO ? "" : ", and changed errno"))

static void memory(void)
{
	static char host[8192];
	void *linear = NULL, *managed = NULL, *pinned = NULL, *mapped = NULL, *pitched = NULL;
	size_t pitch;

	CALL(cudaMalloc, &linear, 1000);
	CALL(cudaMalloc, NULL, 1000);
	CALL(cudaMalloc, &pitched, 0);
	CALL(cudaMalloc, &pitched, (size_t)1 << 50);
	CALL(cudaMallocPitch, &pitched, &pitch, 100, 10);
	CALL(cudaMallocManaged, &managed, 1000, cudaMemAttachGlobal);
	CALL(cudaMallocHost, &pinned, 1000);
	CALL(cudaHostAlloc, &mapped, 1000, cudaHostAllocMapped);
	CALL(cudaHostRegister, host, sizeof(host), 0);
	CALL(cudaMemcpy, linear, host, 1000, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyAsync, linear, pinned, 1000, cudaMemcpyDefault, 0);
	CALL(cudaMemset, linear, 1, 1000);
	CALL(cudaMemsetAsync, linear, 1, 1000, 0);
	CALL(cudaMemset2D, pitched, pitch, 1, 100, 10);
	CALL(cudaHostUnregister, host);
	CALL(cudaFreeHost, pinned);
	CALL(cudaFreeHost, mapped);
	CALL(cudaFree, managed);
	CALL(cudaFree, pitched);
	CALL(cudaFree, linear);
	CALL(cudaFree, NULL);
	CALL(cudaFree, (char *)linear + 1);
}

static void pools(void)
{
	cudaMemPool_t pool;
	void *pointer = NULL;

	CALL(cudaMallocAsync, &pointer, 1000, 0);
	CALL(cudaFreeAsync, pointer, 0);
	CALL(cudaDeviceGetDefaultMemPool, &pool, 0);
	CALL(cudaMallocFromPoolAsync, &pointer, 1000, pool, 0);
	CALL(cudaFreeAsync, pointer, 0);
}

int main(void)
{
	memory();
	pools();
	printf("last error %d\n", cudaGetLastError());
	return 0;
}
