/* Does what it is told on standard input, a letter a line, and answers each with a line: a
 * allocates 1 MiB, f frees the oldest of them, c copies into the newest, o asks for too much, m
 * makes N_MANY calls that leave nothing, p begins a phase, q ends it, k marks. */
#include <cuda.h>
#include <stdio.h>
#include <vramtrace/vramtrace.h>

#define MIB    (1u << 20)
#define N_MANY 100000u

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

static int make_many(void)
{
	CUdeviceptr block;

	for (unsigned int i = 0; i < N_MANY / 2; i++)
		if (cuMemAlloc_v2(&block, 512) || cuMemFree_v2(block))
			return 1;
	return 0;
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
	case 'm':
		return make_many();
	case 'p':
		vt_phase_begin("request");
		return 0;
	case 'q':
		vt_phase_end("request");
		return 0;
	case 'k':
		vt_mark("here");
		return 0;
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
