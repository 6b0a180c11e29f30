/*
 * The cost of one recorded call: small sets, or asynchronous copies, on the simulated driver, whose
 * own work is constant and small, made from a given depth of stack by one of a number of call
 * sites. Prints nanoseconds a call; hot_path.sh and copies.sh run it with and without the recorder.
 *
 *   hot_path [CALLS [FRAMES [STACKS [copy]]]]
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static CUdeviceptr buffer;
static void *pinned; /* NULL: sets */

static CUresult one_call(void)
{
	return pinned ? cuMemcpyHtoDAsync_v2(buffer, pinned, 4096, NULL)
		      : cuMemsetD8_v2(buffer, 0, 1);
}

/* The address taken of `frames` keeps each level a real frame; `path` makes stacks differ. */
__attribute__((noinline)) static int descend(int frames, unsigned int path, long n)
{
	volatile int here = frames;
	int result;

	if (!frames) {
		for (long i = 0; i < n; i++)
			if (one_call())
				return -1;
		return here;
	}
	/* Told apart, or the compiler makes one call of the two. */
	if (path & 1) {
		result = descend(frames - 1, path >> 1, n);
		__asm__ volatile("# one");
	} else {
		result = descend(frames - 1, path >> 1, n);
		__asm__ volatile("# other");
	}
	return result + here;
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? atol(argv[1]) : 1000000;
	int frames = argc > 2 ? atoi(argv[2]) : 40;
	unsigned int stacks = argc > 3 ? (unsigned int)atoi(argv[3]) : 50;
	CUcontext context;
	double begin;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
		cuMemAlloc_v2(&buffer, 4096))
		return 1;
	if (argc > 4 && cuMemHostAlloc(&pinned, 4096, 0))
		return 1;
	descend(frames, 0, 1000);
	begin = now_ns();
	for (long done = 0; done < calls; done += 10)
		descend(frames, (unsigned int)(done / 10) % stacks, 10);
	printf("%.1f\n", (now_ns() - begin) / (double)calls);
	return 0;
}
