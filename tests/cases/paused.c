/* Does what it is told on standard input, a letter a line, and answers each with a line: a
 * allocates 1 MiB, f frees the oldest of them, c copies into the newest, o asks for too much. */
#include <cuda.h>
#include <stdio.h>

#define MIB (1u << 20)

static CUdeviceptr blocks[1000];
static unsigned int n_begun, n_freed;
static char host[4096];

static int allocate(void)
{
	return cuMemAlloc_v2(&blocks[n_begun++ % 1000], MIB);
}

static int give_back(void)
{
	return cuMemFree_v2(blocks[n_freed++ % 1000]);
}

static int copy(void)
{
	return cuMemcpyHtoD_v2(blocks[(n_begun - 1) % 1000], host, sizeof(host));
}

static int ask_too_much(void)
{
	CUdeviceptr none;

	return cuMemAlloc_v2(&none, (size_t)1 << 50) != CUDA_ERROR_OUT_OF_MEMORY;
}

static int obey(char letter)
{
	switch (letter) {
	case 'a':
		return allocate();
	case 'f':
		return give_back();
	case 'c':
		return copy();
	case 'o':
		return ask_too_much();
	default:
		return 1;
	}
}

int main(void)
{
	CUcontext context;
	char line[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		if (!n_begun && (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
					cuCtxSetCurrent(context)))
			return 1;
		if (obey(line[0])) {
			fprintf(stderr, "%c failed\n", line[0]);
			return 1;
		}
		puts("done");
	}
	return 0;
}
