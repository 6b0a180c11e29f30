/*
 * Ways to run out of GPU memory, each as small as it gets: oom_driver CASE. What is refused is
 * expected; what should work and does not ends the program with status 1.
 *
 * The names of functions are what the reports of oom.sh are checked for.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB	   1024ull
#define MIB	   (1024 * KIB)
#define GIB	   (1024 * MIB)
#define MAX_BLOCKS 4096
#define NOINLINE   __attribute__((noinline))
/* Something to do behind a call, which then has a frame below it. */
#define STAY() __asm__ volatile("" ::: "memory")

static void *blocks[MAX_BLOCKS];
static size_t n_blocks;

static void check(int result, const char *what)
{
	if (result) {
		fprintf(stderr, "%s: error %d\n", what, result);
		exit(1);
	}
}

static void expect_refusal(int result, const char *what)
{
	if (result != CUDA_ERROR_OUT_OF_MEMORY) {
		fprintf(stderr, "%s: result %d, and it should have been refused\n", what, result);
		exit(1);
	}
}

static size_t free_bytes(void)
{
	size_t free_now, total;

	check((int)cudaMemGetInfo(&free_now, &total), "cudaMemGetInfo");
	return free_now;
}

/* Keeps what it gets. */
NOINLINE static int load_weights(size_t bytes)
{
	cudaError_t result = cudaMalloc(&blocks[n_blocks], bytes);

	n_blocks += result == cudaSuccess;
	return (int)result;
}

NOINLINE static int ask_for_output(size_t bytes)
{
	void *block;

	return (int)cudaMalloc(&block, bytes);
}

static void hold_work(bool hold)
{
	void (*function)(bool) = (void (*)(bool))dlsym(RTLD_DEFAULT, "cusim_hold_events");

	if (!function)
		exit(77);
	function(hold);
}

/* The device is filled with blocks, and every other one goes: how much can then be had at once? */
static void fill_and_thin(size_t bytes)
{
	size_t n = free_bytes() / bytes;

	for (size_t i = 0; i < n; i++)
		check(load_weights(bytes), "a block");
	for (size_t i = 0; i < n; i += 2)
		check((int)cudaFree(blocks[i]), "cudaFree");
}

/* A3 of the driver's facts: pages of 2 MiB, each kept by a block of 1 MiB. */
static void pinned_pages(void)
{
	fill_and_thin(MIB);
	expect_refusal(ask_for_output(64 * MIB), "half of the device");
}

/* The same with whole pages: what is free need not be in one place. */
static void free_pages(void)
{
	fill_and_thin(2 * MIB);
	check(ask_for_output(64 * MIB), "half of the device");
}

static CUmemoryPool make_pool(size_t most_bytes, bool keeps)
{
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	cuuint64_t threshold = UINT64_MAX;
	CUmemoryPool pool;

#if CUDA_VERSION >= 12040
	properties.maxSize = most_bytes;
#else
	if (most_bytes)
		exit(77);
#endif
	check(cuMemPoolCreate(&pool, &properties), "cuMemPoolCreate");
	if (keeps)
		check(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
			"cuMemPoolSetAttribute");
	return pool;
}

NOINLINE static int pool_take(CUmemoryPool pool, size_t bytes, CUstream stream, CUdeviceptr *out)
{
	int result = (int)cuMemAllocFromPoolAsync(out, bytes, pool, stream);

	STAY();
	return result;
}

/* A5: the retry succeeds, since the stream was waited for. */
static void retry(void)
{
	CUmemoryPool pool = make_pool(0, false);
	CUdeviceptr first, second;
	cudaStream_t busy;

	check((int)cudaStreamCreate(&busy), "cudaStreamCreate");
	check(pool_take(pool, 128 * MIB, (CUstream)busy, &first), "128 MiB");
	hold_work(true);
	check(cuMemFreeAsync(first, (CUstream)busy), "cuMemFreeAsync");
	for (int tries = 0; pool_take(pool, 96 * MIB, NULL, &second); tries++) {
		if (tries)
			exit(1);
		check((int)cudaStreamSynchronize(busy), "cudaStreamSynchronize");
	}
}

/* A7: two threads with streams of their own share a pool of at most 96 MiB. */
static CUmemoryPool shared_pool;

static void *work(void *arg)
{
	cudaStream_t stream;
	CUdeviceptr block;

	(void)arg;
	check((int)cudaSetDevice(0), "cudaSetDevice");
	check((int)cudaStreamCreate(&stream), "cudaStreamCreate");
	check(pool_take(shared_pool, 64 * MIB, (CUstream)stream, &block), "64 MiB");
	check(cuMemFreeAsync(block, (CUstream)stream), "cuMemFreeAsync");
	return NULL;
}

static void two_streams(void)
{
	pthread_t thread;
	CUdeviceptr block;

	shared_pool = make_pool(96 * MIB, false);
	hold_work(true);
	check(pthread_create(&thread, NULL, work, NULL), "pthread_create");
	check(pthread_join(thread, NULL), "pthread_join");
	expect_refusal(pool_take(shared_pool, 64 * MIB, NULL, &block), "64 MiB more");
}

/* The same pool, really full. */
static void pool_limit(void)
{
	CUmemoryPool pool = make_pool(96 * MIB, false);
	CUdeviceptr block;

	check(pool_take(pool, 64 * MIB, NULL, &block), "64 MiB");
	expect_refusal(pool_take(pool, 64 * MIB, NULL, &block), "64 MiB more");
}

/* A8: a cache of buffers, none of which is large enough for the next request. */
NOINLINE static int scratch_get(size_t bytes)
{
	cudaError_t result = cudaMalloc(&blocks[n_blocks++ % MAX_BLOCKS], bytes);

	STAY();
	return (int)result;
}

static void growing_cache(void)
{
	int result = 0;

	for (size_t i = 100; !result; i++)
		result = scratch_get(i * 64 * KIB);
	expect_refusal(result, "a buffer");
}

/* A9: an arena that doubles, and keeps what it had. */
NOINLINE static int arena_extend(size_t bytes)
{
	void *extension;
	cudaError_t result = cudaMalloc(&extension, bytes);

	if (!result)
		check((int)cudaMemset(extension, 0, 1), "cudaMemset");
	return (int)result;
}

static void doubling_arena(void)
{
	int result = 0;

	for (size_t bytes = 16 * MIB; !result; bytes *= 2)
		result = arena_extend(bytes);
	expect_refusal(result, "an extension");
}

/* A10: more than the device has; and what only the neighbour makes too much. */
static void too_large(void)
{
	expect_refusal(ask_for_output(300 * MIB), "more than all");
}

static void neighbour(void)
{
	check(load_weights(32 * MIB), "32 MiB");
	expect_refusal(ask_for_output(96 * MIB), "96 MiB");
}

/* A11: refused for no reason that can be seen (CUSIM_FAIL). */
static void no_reason(void)
{
	check(load_weights(16 * MIB), "16 MiB");
	expect_refusal(ask_for_output(8 * MIB), "8 MiB");
}

/* A12: one library keeps everything for itself, another one hides that it got nothing. */
NOINLINE static int library_create(void)
{
	void *workspace;

	return cudaMalloc(&workspace, 48 * MIB) ? -1 : 0;
}

static void hidden_failure(void)
{
	CUmemoryPool pool = make_pool(0, true);
	CUdeviceptr block;

	check(pool_take(pool, 160 * MIB, NULL, &block), "160 MiB");
	check(cuMemFreeAsync(block, NULL), "cuMemFreeAsync");
	check((int)cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	if (library_create() != -1)
		exit(1);
}

/* The same, where it is code that finds no room: the call does not say how much it wanted. */
NOINLINE static int library_load(void)
{
	CUmodule module;

	return (int)cuModuleLoadData(&module, "code");
}

static void hidden_code(void)
{
	CUmemoryPool pool = make_pool(0, true);
	CUdeviceptr block;

	check(pool_take(pool, free_bytes(), NULL, &block), "everything");
	check(cuMemFreeAsync(block, NULL), "cuMemFreeAsync");
	expect_refusal(library_load(), "a module");
}

/* A13: addresses without memory behind them. */
NOINLINE static int import_segment(void)
{
	CUdeviceptr address;

	return (int)cuMemAddressReserve(&address, 16 * GIB, 0, 0, 0);
}

static void address_space(void)
{
	int result = 0;

	for (int i = 0; !result && i < 1000000; i++)
		result = import_segment();
	expect_refusal(result, "addresses");
}

/* A15: a second copy of the weights for a moment. */
NOINLINE static void *load_checkpoint(size_t bytes)
{
	void *copy;

	check((int)cudaMalloc(&copy, bytes), "the copy");
	return copy;
}

static void checkpoint(void)
{
	void *copy;

	check(load_weights(64 * MIB), "weights");
	copy = load_checkpoint(64 * MIB);
	check((int)cudaMemcpy(blocks[0], copy, 64 * MIB, cudaMemcpyDeviceToDevice), "cudaMemcpy");
	check((int)cudaFree(copy), "cudaFree");
}

/* A14: a step that needs another set as large as the parameters. */
NOINLINE static void optimizer_step(size_t n)
{
	void *intermediates[64];

	for (size_t i = 0; i < n; i++)
		check((int)cudaMalloc(&intermediates[i], 2 * MIB), "an intermediate");
	for (size_t i = 0; i < n; i++)
		check((int)cudaFree(intermediates[i]), "cudaFree");
}

static void optimizer(void)
{
	for (int i = 0; i < 16; i++)
		check(load_weights(2 * MIB), "a parameter");
	for (int step = 0; step < 3; step++)
		optimizer_step(16);
}

/* A16: what is kept grows by a batch, and is copied each time. */
NOINLINE static int concatenate(void **kept, size_t bytes)
{
	void *longer;
	cudaError_t result = cudaMalloc(&longer, bytes + MIB);

	if (result)
		return (int)result;
	if (bytes)
		check((int)cudaMemcpy(longer, *kept, bytes, cudaMemcpyDeviceToDevice),
			"cudaMemcpy");
	check((int)cudaFree(*kept), "cudaFree");
	*kept = longer;
	return 0;
}

static void accumulate(void)
{
	void *kept = NULL;
	int result = 0;

	for (size_t bytes = 0; !result; bytes += MIB)
		result = concatenate(&kept, bytes);
	expect_refusal(result, "a longer one");
}

/* Plainly full; and then gone, without a word. */
static void full(void)
{
	check(load_weights(160 * MIB), "160 MiB");
	expect_refusal(ask_for_output(64 * MIB), "64 MiB");
}

static void aborted(void)
{
	full();
	abort();
}

/* Only the second device is full. */
static void second_device(void)
{
	check(load_weights(8 * MIB), "8 MiB");
	check((int)cudaSetDevice(1), "cudaSetDevice");
	full();
}

/* Physical memory that is asked for page by page, twice, as an allocator does before it gives up.
 */
NOINLINE static int map_pages(size_t n, CUmemGenericAllocationHandle *handles)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < n && !result; i++) {
		result = cuMemCreate(&handles[i], 2 * MIB, &properties, 0);
		if (result)
			while (i > 0)
				check(cuMemRelease(handles[--i]), "cuMemRelease");
	}
	return (int)result;
}

static void pages(void)
{
	static CUmemGenericAllocationHandle handles[128];

	check(load_weights(160 * MIB), "160 MiB");
	expect_refusal(map_pages(64, handles), "64 pages");
	expect_refusal(map_pages(64, handles), "64 pages again");
	check(map_pages(4, handles), "four pages");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"pinned_pages", pinned_pages},
	{"free_pages", free_pages},
	{"retry", retry},
	{"two_streams", two_streams},
	{"pool_limit", pool_limit},
	{"growing_cache", growing_cache},
	{"doubling_arena", doubling_arena},
	{"too_large", too_large},
	{"neighbour", neighbour},
	{"no_reason", no_reason},
	{"hidden_failure", hidden_failure},
	{"hidden_code", hidden_code},
	{"address_space", address_space},
	{"checkpoint", checkpoint},
	{"optimizer", optimizer},
	{"accumulate", accumulate},
	{"full", full},
	{"aborted", aborted},
	{"second_device", second_device},
	{"pages", pages},
};

int main(int argc, char **argv)
{
	check((int)cudaFree(NULL), "cudaFree");
	for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(cases[i].name, argv[1]))
			continue;
		cases[i].run();
		return 0;
	}
	fprintf(stderr, "usage: oom_driver CASE\n");
	return 2;
}
