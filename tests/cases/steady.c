/*
 * steady CALLS [FORK_EVERY]: allocates and frees, for as many calls or until it is killed (0), with
 * never more than MOST things live. One thread, and always the same calls in the same order. Every
 * FORK_EVERY calls it forks a child that ends at once.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST	   4000u
#define N_SITES	   64u
#define PAGE_BYTES (2ull << 20)

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

/* So that there are as many stacks. */
static __attribute__((noinline)) void deep(unsigned int n, void (*call)(void))
{
	if (n)
		deep(n - 1, call);
	else
		call();
	__asm__ volatile("" ::: "memory");
}

static void fork_child(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	if (child < 0 || waitpid(child, NULL, 0) != child)
		exit(1);
}

int main(int argc, char **argv)
{
	uint64_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	uint64_t fork_every = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, next_fork = fork_every;
	CUcontext context;

	expect(cuInit(0), "cuInit");
	expect(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	expect(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	while (!most || n_calls < most) {
		bool grows = n_things < MOST / 2 || (n_things < MOST && next_random() % 2);

		deep((unsigned int)(next_random() % N_SITES), grows ? make : end);
		if (fork_every && n_calls >= next_fork) {
			fork_child();
			next_fork += fork_every;
		}
	}
	printf("%llu calls, %u live\n", (unsigned long long)n_calls, n_things);
	return 0;
}
