/*
 * addup STAGE...: takes device memory in ways that are no allocation, one stage after the other,
 * and then allocates a little, so that free memory is read once more. What the report's table adds
 * up to is compared with the device's own account. Stages: context, cublas (LIBCUBLAS names the
 * library), stack (16 KiB limit), graphs (200 executables), memory (1 GiB).
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1024ull * 1024)

static void must(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "%s: error %d\n", what, error);
	exit(1);
}

static void *allocate(size_t bytes)
{
	void *p;

	must(cudaMalloc(&p, bytes), "cudaMalloc");
	return p;
}

/* A handle and one product: code is loaded when it is first used. */
static void use_cublas(void)
{
	const char *path = getenv("LIBCUBLAS");
	void *library = dlopen(path ? path : "libcublas.so.13", RTLD_NOW);
	int (*create)(void **);
	int (*multiply)(void *, int, int, int, int, int, const float *, const float *, int,
		const float *, int, const float *, float *, int);
	float one = 1, *a = allocate(3 * MIB);
	void *handle;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	create = (__typeof__(create))dlsym(library, "cublasCreate_v2");
	multiply = (__typeof__(multiply))dlsym(library, "cublasSgemm_v2");
	must(create(&handle), "cublasCreate");
	must(cudaMemset(a, 0, 3 * MIB), "cudaMemset");
	must(multiply(handle, 0, 0, 256, 256, 256, &one, a, 256, a + 65536, 256, &one, a + 131072,
		     256),
		"cublasSgemm");
	must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

static void make_graphs(void)
{
	char *p = allocate(2 * MIB);
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
	must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
	for (int i = 0; i < 50; i++)
		must(cudaMemsetAsync(p + 4096 * i, i, 4096, stream), "cudaMemsetAsync");
	must(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
	for (int i = 0; i < 200; i++) {
		must(cudaGraphInstantiateWithFlags(&exec, graph, 0), "cudaGraphInstantiate");
		must(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
	}
	must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

int main(int argc, char **argv)
{
	size_t free_bytes, total_bytes;

	must(cudaSetDevice(0), "cudaSetDevice");
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "context"))
			allocate(1);
		else if (!strcmp(argv[i], "cublas"))
			use_cublas();
		else if (!strcmp(argv[i], "stack"))
			must(cudaDeviceSetLimit(cudaLimitStackSize, 16384), "cudaDeviceSetLimit");
		else if (!strcmp(argv[i], "graphs"))
			make_graphs();
		else if (!strcmp(argv[i], "memory"))
			allocate(1024 * MIB);
		else
			return 2;
	}
	usleep(30000);
	allocate(1024);
	must(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
	printf("{\"free_bytes\": %zu, \"total_bytes\": %zu}\n", free_bytes, total_bytes);
	return 0;
}
