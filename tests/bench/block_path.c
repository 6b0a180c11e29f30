/*
 * The cost of one recorded block: a small block taken and given back in the simulated PyTorch
 * allocator, from a given depth of stack. Prints nanoseconds of processor time a pair; bench.py
 * runs it with and without the recorder.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "c10sim.h"

static __typeof__(&c10sim_alloc) take;
static __typeof__(&c10sim_free) give_back;

/* The address taken of `frames` keeps each level a real frame; `path` makes stacks differ. */
__attribute__((noinline)) static int descend(int frames, unsigned int path, long n)
{
	volatile int here = frames;
	int result;

	if (!frames) {
		for (long i = 0; i < n; i++)
			give_back(take(4096, 0));
		return here;
	}
	if (path & 1)
		result = descend(frames - 1, path >> 1, n);
	else
		result = descend(frames - 1, path >> 1, n) + 1;
	return result + here;
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	long pairs = argc > 1 ? atol(argv[1]) : 1000000;
	int frames = argc > 2 ? atoi(argv[2]) : 40;
	unsigned int stacks = argc > 3 ? (unsigned int)atoi(argv[3]) : 50;
	void *allocator = dlopen("libc10_cuda.so", RTLD_NOW | RTLD_LOCAL);
	double begin;

	if (!allocator)
		return 1;
	take = (__typeof__(take))dlsym(allocator, "c10sim_alloc");
	give_back = (__typeof__(give_back))dlsym(allocator, "c10sim_free");
	if (!take || !give_back || !take(1 << 20, 0))
		return 1;
	descend(frames, 0, 1000);
	begin = now_ns();
	for (long done = 0; done < pairs; done += 10)
		descend(frames, (unsigned int)(done / 10) % stacks, 10);
	printf("%.1f\n", (now_ns() - begin) / (double)pairs);
	return 0;
}
