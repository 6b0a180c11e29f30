/*
 * What holds GPU memory for long, each in less than half a second: leaks CASE [SEED]. Some of it is
 * a leak and some is not; leaks.py says which. Prints what it did as JSON: how many times, for how
 * long, and how much is left over. The names of functions are what leaks.py looks for in stacks.
 * With SEED the pace and the sizes of what comes and goes vary.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "c10sim.h"
#include "vramtrace/vramtrace.h"

#define KIB	 1024ull
#define MIB	 (1024 * KIB)
#define N_STEPS	 80u
#define MAX_KEPT (2 * N_STEPS)
#define NOINLINE __attribute__((noinline))
/* Something to do behind a call, which then has a frame below it. */
#define STAY() __asm__ volatile("" ::: "memory")

static void *kept[MAX_KEPT];
static size_t n_kept;
static unsigned int n_steps;
static bool varies;
static uint64_t start_ns;

static void check(int result, const char *what)
{
	if (result) {
		fprintf(stderr, "%s: error %d\n", what, result);
		exit(1);
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whether another step is to be done; each takes two milliseconds at least. */
static bool goes_on(void)
{
	if (!start_ns)
		start_ns = now_ns();
	else
		usleep(2000 + (varies ? (useconds_t)(rand() % 4000) : 0));
	return n_steps++ < N_STEPS;
}

NOINLINE static void *obtain(size_t bytes)
{
	void *block;

	check((int)cudaMalloc(&block, bytes), "cudaMalloc");
	STAY();
	return block;
}

static void let_go(void *block)
{
	check((int)cudaFree(block), "cudaFree");
}

/* What any step of any work does: memory comes and goes. */
NOINLINE static void compute(void)
{
	void *blocks[6];

	for (size_t i = 0; i < 6; i++)
		blocks[i] = obtain((varies ? (size_t)(rand() % 64 + 1) : i + 1) * 64 * KIB);
	for (size_t i = 6; i--;)
		let_go(blocks[i]);
}

NOINLINE static void keep(size_t bytes)
{
	kept[n_kept++] = obtain(bytes);
	STAY();
}

/* B19: called for each chunk, it overwrites the pointer to its buffer. */
NOINLINE static void init_chunk(void)
{
	kept[n_kept++] = obtain(256 * KIB);
	STAY();
}

static void plain(void)
{
	while (goes_on()) {
		init_chunk();
		compute();
	}
}

/* The same, and the program says where it is. */
static void marked(void)
{
	char name[32];

	while (goes_on()) {
		snprintf(name, sizeof(name), "step %u", n_steps);
		vt_mark(name);
		init_chunk();
		compute();
	}
}

/* B1, B9, B13: taken at first use, and kept for good. */
NOINLINE static void first_use(void)
{
	if (!n_kept)
		kept[n_kept++] = obtain(8 * MIB + 128 * KIB);
	STAY();
}

static void one_time(void)
{
	while (goes_on()) {
		first_use();
		compute();
	}
}

/* B12: a model is loaded and unloaded; what it leaves. */
NOINLINE static void load_model(void *blocks[8])
{
	for (size_t i = 0; i < 8; i++)
		blocks[i] = obtain(MIB);
	STAY();
}

static void cycle(bool complete)
{
	void *blocks[8];

	load_model(blocks);
	for (int i = 0; i < 3; i++)
		compute();
	for (size_t i = 0; i < 7; i++)
		let_go(blocks[i]);
	if (complete)
		let_go(blocks[7]);
	else
		kept[n_kept++] = blocks[7];
}

static void unload(void)
{
	while (goes_on())
		cycle(false);
}

static void unload_all(void)
{
	while (goes_on()) {
		first_use();
		cycle(true);
	}
}

/* A cache that fills up in the first half. */
static void saturating(void)
{
	while (goes_on()) {
		if (n_steps < N_STEPS / 2)
			init_chunk();
		compute();
	}
}

/* B2: objects that hold each other, until a collector comes. */
NOINLINE static void make_cycle(void)
{
	keep(128 * KIB);
	keep(128 * KIB);
	STAY();
}

static void bursts(void)
{
	while (goes_on()) {
		while (n_steps % 12 == 0 && n_kept)
			let_go(kept[--n_kept]);
		make_cycle();
		compute();
	}
}

/* B6: executable graphs for each request. */
NOINLINE static void capture_graph(bool destroy)
{
	cudaGraphNode_t node;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	check((int)cudaGraphCreate(&graph, 0), "cudaGraphCreate");
	check((int)cudaGraphAddEmptyNode(&node, graph, NULL, 0), "cudaGraphAddEmptyNode");
	check((int)cudaGraphInstantiateWithFlags(&exec, graph, 0), "cudaGraphInstantiate");
	if (destroy)
		check((int)cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
	check((int)cudaGraphDestroy(graph), "cudaGraphDestroy");
}

/* Beside it what comes and goes. */
static void pass_objects(void)
{
	cudaStream_t stream;
	cudaEvent_t event;

	check((int)cudaStreamCreate(&stream), "cudaStreamCreate");
	check((int)cudaEventCreate(&event), "cudaEventCreate");
	check((int)cudaEventDestroy(event), "cudaEventDestroy");
	check((int)cudaStreamDestroy(stream), "cudaStreamDestroy");
}

static void graphs_kept(void)
{
	while (goes_on()) {
		pass_objects();
		for (int i = 0; i < 40; i++)
			capture_graph(false);
		compute();
	}
}

static void graphs(void)
{
	while (goes_on()) {
		for (int i = 0; i < 40; i++)
			capture_graph(true);
		compute();
	}
}

/* B8: code for each new shape. */
NOINLINE static void compile_kernel(void)
{
	CUmodule module;

	check((int)cuModuleLoadData(&module, "code"), "cuModuleLoadData");
	STAY();
}

static void modules(void)
{
	while (goes_on()) {
		compute();
		compile_kernel();
	}
}

static void *library_thread(void *arg)
{
	(void)arg;
	keep(512 * KIB);
	compute();
	return NULL;
}

static void run_thread(void)
{
	pthread_t thread;

	check(pthread_create(&thread, NULL, library_thread, NULL), "pthread_create");
	check(pthread_join(thread, NULL), "pthread_join");
}

/* B11: a thread for each request, which leaves what its library made for it. */
static void threads(void)
{
	while (goes_on()) {
		run_thread();
		compute();
	}
}

/* B10: a few short-lived threads, each with a plan of its own, early on. */
static void few_threads(void)
{
	while (goes_on()) {
		if (n_steps <= (varies ? 5 + (unsigned int)rand() % 15 : 10))
			run_thread();
		compute();
	}
}

/* Whoever fails leaves what it had. */
NOINLINE static void serve(bool fails)
{
	void *input = obtain(256 * KIB), *output;

	if (fails) {
		check(cudaMalloc(&output, (size_t)1 << 40) != cudaErrorMemoryAllocation,
			"a request that should fail");
		n_kept++;
		return;
	}
	output = obtain(256 * KIB);
	let_go(output);
	let_go(input);
}

static void failures(void)
{
	while (goes_on()) {
		serve(n_steps % 8 == 3);
		compute();
	}
	for (int i = 0; i < 20; i++)
		serve(false);
}

static void teardown(void)
{
	one_time();
	check((int)cudaDeviceReset(), "cudaDeviceReset");
}

/* B14: blocks of random sizes come and go; the allocator keeps what the largest needed. */
NOINLINE static void resize_image(char *pool)
{
	size_t bytes = (size_t)(rand() % 60 + 1) * MIB;

	vt_block_alloc("images", pool, bytes);
	compute();
	vt_block_free("images", pool, bytes);
}

static void high_water(void)
{
	char *pool = obtain(64 * MIB);

	while (goes_on())
		resize_image(pool);
}

/* Blocks of an allocator that leak, in a segment that does not grow. */
NOINLINE static void remember(char *pool)
{
	vt_block_alloc("state", pool + n_kept++ * 64 * KIB, 64 * KIB);
	STAY();
}

static void leak_in_pool(void)
{
	char *pool = obtain(64 * MIB);

	while (goes_on()) {
		vt_block_alloc("state", pool + 63 * MIB, 512 * KIB);
		vt_block_free("state", pool + 63 * MIB, 512 * KIB);
		remember(pool);
		compute();
	}
}

/* B15: handles that are opened and never closed: mapped, and not this process's own. */
NOINLINE static void open_handle(void)
{
	cudaIpcMemHandle_t handle;
	void *there;

	check((int)cudaIpcGetMemHandle(&handle, kept[n_kept - 1]), "cudaIpcGetMemHandle");
	check((int)cudaIpcOpenMemHandle(&there, handle, cudaIpcMemLazyEnablePeerAccess),
		"cudaIpcOpenMemHandle");
	STAY();
}

static void shared(void)
{
	while (goes_on()) {
		keep(2 * MIB);
		open_handle();
		compute();
	}
}

/* B22: freed on another stream than it was allocated on; the pool has it back in the end. */
static void other_stream(void)
{
	cudaStream_t streams[2];
	void *block;

	check((int)cudaStreamCreate(&streams[0]), "cudaStreamCreate");
	check((int)cudaStreamCreate(&streams[1]), "cudaStreamCreate");
	while (goes_on()) {
		check((int)cudaMallocAsync(&block, MIB, streams[0]), "cudaMallocAsync");
		check((int)cudaFreeAsync(block, streams[1]), "cudaFreeAsync");
		compute();
	}
	check((int)cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

static void *look_up(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	void *found = handle ? dlsym(handle, name) : NULL;

	if (!found) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return found;
}

/* B5: a capture fails, and the pool that it had begun is never given back. */
NOINLINE static void fail_to_capture(uint64_t pool)
{
	__typeof__(&c10sim_alloc) alloc = look_up("libc10_cuda.so", "c10sim_alloc");
	__typeof__(&c10sim_free) give = look_up("libc10_cuda.so", "c10sim_free");
	__typeof__(&c10sim_set_stream) use = look_up("libc10_cuda.so", "c10sim_set_stream");
	__typeof__(&c10sim_stream_handle) handle_of =
		look_up("libc10_cuda.so", "c10sim_stream_handle");
	__typeof__(&c10sim_pool_begin) begin = look_up("libc10_cuda.so", "c10sim_pool_begin");
	__typeof__(&c10sim_pool_end) end = look_up("libc10_cuda.so", "c10sim_pool_end");
	cudaStream_t stream = handle_of(0, 1);
	cudaGraph_t graph;
	void *block;

	use(0, 1);
	begin(0, pool, 1);
	check((int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "capture");
	block = alloc(24 * MIB, 0);
	check(!block || cudaStreamSynchronize(stream) == cudaSuccess, "a wait in a capture");
	check(cudaStreamEndCapture(stream, &graph) == cudaSuccess, "a capture that should fail");
	end(0, pool);
	give(block);
	use(0, 0);
	n_kept++;
}

static void failed_captures(void)
{
	__typeof__(&c10sim_alloc) alloc = look_up("libc10_cuda.so", "c10sim_alloc");
	__typeof__(&c10sim_empty_cache) empty = look_up("libc10_cuda.so", "c10sim_empty_cache");

	kept[0] = alloc(MIB, 0); /* the first block of a process is of no capture */
	while (goes_on()) {
		if (n_steps % 20 == 10)
			fail_to_capture(n_steps);
		compute();
	}
	empty();
}

/* B17: communicators; those of the program's start, or one for each step. */
static void communicate(bool always)
{
	int (*init)(void) = look_up("./libnccl.so.2", "ncclCommInitRank");

	while (goes_on()) {
		if (always || n_steps == 1) {
			check(init(), "ncclCommInitRank");
			n_kept++;
		}
		for (int i = 0; i < 4; i++)
			compute();
	}
}

static void communicators(void)
{
	communicate(false);
}

static void communicators_kept(void)
{
	communicate(true);
}

/* A model is loaded for most of the time there is, and used a little. */
static void loading(void)
{
	while (goes_on())
		init_chunk();
	compute();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"plain", plain},
		{"marked", marked},
		{"one_time", one_time},
		{"unload", unload},
		{"unload_all", unload_all},
		{"saturating", saturating},
		{"bursts", bursts},
		{"graphs_kept", graphs_kept},
		{"graphs", graphs},
		{"modules", modules},
		{"threads", threads},
		{"few_threads", few_threads},
		{"failures", failures},
		{"teardown", teardown},
		{"high_water", high_water},
		{"leak_in_pool", leak_in_pool},
		{"shared", shared},
		{"other_stream", other_stream},
		{"loading", loading},
		{"failed_captures", failed_captures},
		{"communicators", communicators},
		{"communicators_kept", communicators_kept},
	};

	varies = argc == 3;
	srand(varies ? (unsigned int)atoi(argv[2]) : 1);
	for (size_t i = 0; argc >= 2 && i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(argv[1], cases[i].name) != 0)
			continue;
		check((int)cudaFree(NULL), "cudaFree");
		cases[i].run();
		printf("{\"steps\": %u, \"kept\": %zu, \"ns\": %llu}\n", N_STEPS, n_kept,
			(unsigned long long)(now_ns() - start_ns));
		return 0;
	}
	fprintf(stderr, "leaks CASE [SEED]\n");
	return 2;
}
