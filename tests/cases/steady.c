/*
 * steady CALLS [FORK_EVERY [RATE]]: allocates and frees, for as many calls or until it is killed
 * (0), with never more than MOST things live. One thread, and always the same calls in the same
 * order. Every FORK_EVERY calls (0: never) it forks a child that ends at once; with CHILD_CUDA in
 * the environment every second one first becomes a program of CHILD_CALLS calls. With RATE it makes
 * no more calls a second than that, on average.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST	     4000u
#define SITE_BITS    6u
#define PAGE_BYTES   (2ull << 20)
#define CALLS_A_WAIT 1000u
#define CHILD_CALLS  "3000"

enum kind { LINEAR, POOL, PINNED, VMM };

static struct thing {
	enum kind kind;
	CUdeviceptr address;
	void *host;
	size_t bytes;
} things[MOST];
static unsigned int n_things;
static uint64_t n_calls, seed = 88172645463325252ull;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void expect(CUresult result, const char *what)
{
	n_calls++;
	if (!result)
		return;
	fprintf(stderr, "steady: %s: %d in call %llu\n", what, result, (unsigned long long)n_calls);
	exit(1);
}

static void make_vmm(struct thing *thing)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle;

	thing->bytes = PAGE_BYTES;
	expect(cuMemCreate(&handle, thing->bytes, &prop, 0), "cuMemCreate");
	expect(cuMemAddressReserve(&thing->address, thing->bytes, 0, 0, 0), "cuMemAddressReserve");
	expect(cuMemMap(thing->address, thing->bytes, 0, handle, 0), "cuMemMap");
	expect(cuMemRelease(handle), "cuMemRelease");
}

static void end_vmm(const struct thing *thing)
{
	expect(cuMemUnmap(thing->address, thing->bytes), "cuMemUnmap");
	expect(cuMemAddressFree(thing->address, thing->bytes), "cuMemAddressFree");
}

static void make(void)
{
	struct thing *thing = &things[n_things++];
	uint64_t r = next_random() % 100;

	thing->bytes = 1 + next_random() % 40000;
	thing->kind = r < 90 ? LINEAR : r < 95 ? POOL : r < 98 ? PINNED : VMM;
	switch (thing->kind) {
	case LINEAR:
		expect(cuMemAlloc(&thing->address, thing->bytes), "cuMemAlloc");
		break;
	case POOL:
		expect(cuMemAllocAsync(&thing->address, thing->bytes, 0), "cuMemAllocAsync");
		break;
	case PINNED:
		expect(cuMemAllocHost(&thing->host, thing->bytes), "cuMemAllocHost");
		break;
	case VMM:
		make_vmm(thing);
		break;
	}
}

static void end(void)
{
	struct thing *thing = &things[next_random() % n_things], gone = *thing;

	*thing = things[--n_things];
	switch (gone.kind) {
	case LINEAR:
		expect(cuMemFree(gone.address), "cuMemFree");
		break;
	case POOL:
		expect(cuMemFreeAsync(gone.address, 0), "cuMemFreeAsync");
		break;
	case PINNED:
		expect(cuMemFreeHost(gone.host), "cuMemFreeHost");
		break;
	case VMM:
		end_vmm(&gone);
		break;
	}
}

/* So that there are as many stacks: each bit of n takes one of two ways. */
static __attribute__((noinline)) void deep(unsigned int n, unsigned int n_bits, void (*call)(void))
{
	if (!n_bits) {
		call();
		__asm__ volatile("");
	} else if (n & 1) {
		deep(n >> 1, n_bits - 1, call);
		__asm__ volatile("# odd");
	} else {
		deep(n >> 1, n_bits - 1, call);
		__asm__ volatile("# even");
	}
}

static void fork_child(void)
{
	static unsigned int n_children;
	bool uses_cuda = n_children++ % 2 && getenv("CHILD_CUDA");
	pid_t child = fork();

	if (!child) {
		if (uses_cuda)
			execl("/proc/self/exe", "steady", CHILD_CALLS, NULL);
		_exit(0);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child)
		exit(1);
}

/* Waits until as many calls are due as were made. */
static void keep_pace(uint64_t rate)
{
	static struct timespec start;
	struct timespec due;

	if (!start.tv_sec)
		clock_gettime(CLOCK_MONOTONIC, &start);
	due.tv_sec = start.tv_sec + (time_t)(n_calls / rate);
	due.tv_nsec = start.tv_nsec + (long)(n_calls % rate * 1000000000u / rate);
	due.tv_sec += due.tv_nsec / 1000000000;
	due.tv_nsec %= 1000000000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

static uint64_t number(int argc, char **argv, int at)
{
	return argc > at ? strtoull(argv[at], NULL, 10) : 0;
}

int main(int argc, char **argv)
{
	uint64_t most = number(argc, argv, 1), rate = number(argc, argv, 3);
	uint64_t fork_every = number(argc, argv, 2), next_fork = fork_every, next_wait = 0;
	CUcontext context;

	expect(cuInit(0), "cuInit");
	expect(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	expect(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	while (!most || n_calls < most) {
		bool grows = n_things < MOST / 2 || (n_things < MOST && next_random() % 2);

		deep((unsigned int)next_random(), SITE_BITS, grows ? make : end);
		if (fork_every && n_calls >= next_fork) {
			fork_child();
			next_fork += fork_every;
		}
		if (rate && n_calls >= next_wait) {
			keep_pace(rate);
			next_wait = n_calls + CALLS_A_WAIT;
		}
	}
	printf("%llu calls, %u live\n", (unsigned long long)n_calls, n_things);
	return 0;
}
