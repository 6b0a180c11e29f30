/* A plugin that links to a CUDA runtime. Each runtime keeps its own last error, which tells what
 * went to which. */
#include <dlfcn.h>
#include <stdio.h>

int cudaMalloc(void **pointer, unsigned long bytes);
int cudaFree(void *pointer);
int cudaGetLastError(void);
int plugin_use(void);
int plugin_tail(void **pointer, unsigned long bytes);

int plugin_use(void)
{
	void *pointer = NULL;
	int error = cudaGetLastError();

	printf("before %d, ", error);
	printf("malloc %d, ", cudaMalloc(&pointer, 1024));
	printf("free %d, ", cudaFree(pointer));
	printf("nothing %d, ", cudaMalloc(NULL, 1024));
	printf("seen by name %d\n", dlsym(RTLD_DEFAULT, "cudaMalloc") != NULL);
	return cudaGetLastError();
}

/* The caller's return address is not in this library: -O2 makes a jump of it. */
__attribute__((optimize("O2"))) int plugin_tail(void **pointer, unsigned long bytes)
{
	return cudaMalloc(pointer, bytes);
}
