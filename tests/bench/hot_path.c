/*
 * The cost of one recorded call of the simulated driver, whose own work is small, made from a given
 * depth of stack by one of a number of call sites. Prints nanoseconds of processor time a call;
 * bench.py runs it with and without the recorder.
 *
 *   hot_path [CALLS [FRAMES [STACKS [WHAT [THREADS [LIVE]]]]]]
 *
 * WHAT is set, copy (asynchronous, from pinned memory), pair (memory taken and given back), async
 * (the same of a pool, in order of a stream), malloc (a pair of libc's), backtrace (glibc's alone).
 * LIVE allocations are there all the while.
 */
#include <cuda.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES	 4096
#define MAX_LIVE 20000000

static CUcontext context;
static CUdeviceptr buffer;
static void *pinned;

static int call_set(void)
{
	return cuMemsetD8_v2(buffer, 0, 1);
}

static int call_copy(void)
{
	return cuMemcpyHtoDAsync_v2(buffer, pinned, BYTES, NULL);
}

static int call_pair(void)
{
	CUdeviceptr block;

	return cuMemAlloc_v2(&block, BYTES) || cuMemFree_v2(block);
}

static int call_async(void)
{
	CUdeviceptr block;

	return cuMemAllocAsync(&block, BYTES, NULL) || cuMemFreeAsync(block, NULL);
}

static int call_malloc(void)
{
	void *block = malloc(64);

	__asm__ volatile("" : "+r"(block)); /* or there would be no call */
	free(block);
	return 0;
}

static int call_backtrace(void)
{
	void *frames[128];

	return backtrace(frames, 128) <= 0;
}

static const struct {
	const char *name;
	int (*call)(void);
} whats[] = {
	{"set", call_set},
	{"copy", call_copy},
	{"pair", call_pair},
	{"async", call_async},
	{"malloc", call_malloc},
	{"backtrace", call_backtrace},
};

static int (*one_call)(void) = call_set;
static int frames = 40;
static unsigned int stacks = 50;
static long calls_each;

/* The address taken of `frames` keeps each level a real frame; `path` makes stacks differ. */
__attribute__((noinline)) static int descend(int left, unsigned int path, long n)
{
	volatile int here = left;
	int result;

	if (!left) {
		for (long i = 0; i < n; i++)
			if (one_call())
				abort();
		return here;
	}
	/* Told apart, or the compiler makes one call of the two. */
	if (path & 1) {
		result = descend(left - 1, path >> 1, n);
		__asm__ volatile("# one");
	} else {
		result = descend(left - 1, path >> 1, n);
		__asm__ volatile("# other");
	}
	return result + here;
}

static void *run(void *unused)
{
	cuCtxSetCurrent(context);
	for (long done = 0; done < calls_each; done += 10)
		descend(frames, (unsigned int)(done / 10) % stacks, 10);
	return unused;
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* Begins with memory that nobody gives back. */
static void hold(long n)
{
	static void *volatile kept;
	CUdeviceptr block;

	for (long i = 0; i < n; i++) {
		if (one_call == call_malloc)
			kept = malloc(64);
		else if (cuMemAlloc_v2(&block, 512))
			abort();
	}
	(void)kept;
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? atol(argv[1]) : 1000000;
	int n_threads = argc > 5 ? atoi(argv[5]) : 1;
	long n_live = argc > 6 ? atol(argv[6]) : 0;
	pthread_t threads[256];
	double begin;

	frames = argc > 2 ? atoi(argv[2]) : frames;
	stacks = argc > 3 ? (unsigned int)atoi(argv[3]) : stacks;
	for (size_t i = 0; argc > 4 && i < sizeof(whats) / sizeof(*whats); i++)
		if (!strcmp(whats[i].name, argv[4]))
			one_call = whats[i].call;
	if (n_threads < 1 || n_threads > 256 || n_live > MAX_LIVE || cuInit(0) ||
		cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
		cuMemAlloc_v2(&buffer, BYTES) || cuMemHostAlloc(&pinned, BYTES, 0))
		return 1;
	hold(n_live);
	calls_each = 1000;
	run(NULL);
	calls_each = calls / n_threads;
	begin = now_ns();
	for (int i = 0; i < n_threads; i++)
		if (pthread_create(&threads[i], NULL, run, NULL))
			return 1;
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	printf("%.1f\n", (now_ns() - begin) / (double)(calls_each * n_threads));
	return 0;
}
