/*
 * A random program over the simulated PyTorch allocator, opened as Python opens its extension
 * modules. What it leaves alive, and all that the allocator knows of it, goes into the ledger.
 *
 *   torch_random LEDGER [--ops N] [--threads N] [--devices N] [--seed N] [--stop N] [--capture]
 *                [--limit MIB] [--plugin FILE] [--noise] [--plain]
 *
 * --plain: every block is of one stream, and no request is larger than the device.
 *
 * With one thread, a run with --stop N does the first N operations of the run without it.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c10sim.h"

#define KIB	    1024ull
#define MIB	    (1024 * KIB)
#define MAX_LIVE    400u
#define MAX_THREADS 16u
#define N_STREAMS   4

static struct {
	const char *ledger, *plugin;
	unsigned long ops, threads, devices, seed, stop, limit_mib;
	bool capture, noise, plain;
} args = {.plugin = "libc10_cuda.so", .ops = 20000, .threads = 1, .devices = 1, .seed = 1};

static struct {
	__typeof__(&c10sim_alloc) alloc;
	__typeof__(&c10sim_free) free;
	__typeof__(&c10sim_record_stream) record_stream;
	__typeof__(&c10sim_record_event) record_event;
	__typeof__(&c10sim_empty_cache) empty_cache;
	__typeof__(&c10sim_set_stream) set_stream;
	__typeof__(&c10sim_set_limit) set_limit;
	__typeof__(&c10sim_write_ledger) write_ledger;
	void (*hold_events)(bool hold);
	void (*capture_begin)(
		struct c10sim_graph *graph, uint64_t first, uint64_t second, int mode);
	void (*capture_end)(struct c10sim_graph *graph);
	unsigned __int128 (*pool)(struct c10sim_graph *graph);
	void (*graph_destroy)(struct c10sim_graph *graph);
	void (*pool_destroy)(void *pool);
} torch;

static void *look_up(void *handle, const char *name)
{
	void *found = dlsym(handle, name);

	if (!found) {
		fprintf(stderr, "%s: %s\n", name, dlerror());
		exit(1);
	}
	return found;
}

static void *open_library(const char *name)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return handle;
}

static void load(void)
{
	void *allocator = open_library(args.plugin), *graphs;

	torch.alloc = look_up(allocator, "c10sim_alloc");
	torch.free = look_up(allocator, "c10sim_free");
	torch.record_stream = look_up(allocator, "c10sim_record_stream");
	torch.record_event = look_up(allocator, "c10sim_record_event");
	torch.empty_cache = look_up(allocator, "c10sim_empty_cache");
	torch.set_stream = look_up(allocator, "c10sim_set_stream");
	torch.set_limit = look_up(allocator, "c10sim_set_limit");
	torch.write_ledger = look_up(allocator, "c10sim_write_ledger");
	torch.hold_events = look_up(open_library("libcuda.so.1"), "cusim_hold_events");
	if (!args.capture)
		return;
	/* Through a library of its own, as PyTorch's Python binding calls them. */
	graphs = open_library("torch_binding.so");
	torch.capture_begin = look_up(graphs, "binding_capture_begin");
	torch.capture_end = look_up(graphs, "binding_capture_end");
	torch.pool = look_up(graphs, "binding_pool");
	torch.graph_destroy = look_up(graphs, "binding_graph_destroy");
	torch.pool_destroy = look_up(graphs, "binding_pool_destroy");
}

struct worker {
	unsigned int number;
	uint64_t random;
	void *live[MAX_LIVE];
	unsigned int n_live;
	struct c10sim_graph graph;
	bool capturing;
};

static uint64_t next(struct worker *worker)
{
	uint64_t z = worker->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t below(struct worker *worker, uint64_t n)
{
	return next(worker) % n;
}

static size_t random_bytes(struct worker *worker)
{
	switch (below(worker, 20)) {
	case 0:
		return 10 * MIB + below(worker, 50 * MIB);
	case 1:
	case 2:
	case 3:
		return MIB + below(worker, 9 * MIB) + 1;
	case 4:
		return MIB << below(worker, 5); /* equal sizes meet */
	case 5:
		return MIB;
	default:
		return 1 + below(worker, below(worker, 2) ? 4 * KIB : 900 * KIB);
	}
}

static __attribute__((noinline)) void give_back(struct worker *worker, unsigned int i)
{
	void *pointer = worker->live[i];

	worker->live[i] = worker->live[--worker->n_live];
	torch.free(pointer);
}

static __attribute__((noinline)) void obtain(struct worker *worker, size_t bytes)
{
	int device = worker->capturing ? worker->graph.device : (int)below(worker, args.devices);
	void *pointer = torch.alloc(bytes, device);

	if (pointer)
		worker->live[worker->n_live++] = pointer;
}

/* A sixteenth of all blocks are used on other streams before they are freed. */
static void use_elsewhere(struct worker *worker, void *pointer)
{
	uint64_t n = 1 + below(worker, 2);

	while (n--)
		torch.record_stream(pointer, (int64_t)below(worker, N_STREAMS));
}

static void rare(struct worker *worker)
{
	bool alone = worker->number == 0;

	switch (below(worker, 6)) {
	case 0:
		if (!worker->capturing)
			torch.empty_cache();
		break;
	case 1:
		if (!worker->capturing && !args.plain && worker->n_live < MAX_LIVE)
			obtain(worker, 40000 * MIB);
		break;
	case 2:
	case 3:
		if (alone)
			torch.hold_events(below(worker, 2));
		break;
	default:
		if (!worker->capturing)
			torch.set_stream((int)below(worker, args.devices),
				(int64_t)below(worker, N_STREAMS));
		break;
	}
}

/* Captures on streams of their own, the second half of them into the first one's pool. */
static void capture(struct worker *worker)
{
	static uint64_t shared;

	if (worker->capturing) {
		torch.capture_end(&worker->graph);
		if (!shared)
			shared = (uint64_t)torch.pool(&worker->graph);
		torch.graph_destroy(&worker->graph);
		torch.set_stream(0, 0);
		if (below(worker, 3) == 0)
			torch.pool_destroy(&shared);
	} else {
		worker->graph = (struct c10sim_graph){.stream = N_STREAMS + 1};
		torch.set_stream(0, worker->graph.stream);
		torch.capture_begin(&worker->graph, below(worker, 2) ? shared : 0, 0,
			cudaStreamCaptureModeRelaxed);
	}
	worker->capturing = !worker->capturing;
}

static void step(struct worker *worker)
{
	uint64_t pick = below(worker, 1000);

	if (args.capture && pick < 4)
		capture(worker);
	else if (pick < 8)
		rare(worker);
	else if (worker->n_live && (worker->n_live == MAX_LIVE || pick < 480)) {
		unsigned int i = (unsigned int)below(worker, worker->n_live);

		if (below(worker, 16) == 0 && !args.plain)
			use_elsewhere(worker, worker->live[i]);
		give_back(worker, i);
	} else {
		obtain(worker, random_bytes(worker));
	}
}

static void *work(void *data)
{
	struct worker *worker = data;
	unsigned long n = args.stop && args.stop < args.ops ? args.stop : args.ops;

	worker->random = args.seed * 1000 + worker->number;
	for (unsigned long i = 0; i < n; i++) {
		/* Right before what may be a free; early, so that no peak is touched. */
		if (args.noise && i < 60)
			torch.record_event(0, (unsigned int)(i % 4));
		step(worker);
	}
	if (worker->capturing)
		torch.capture_end(&worker->graph);
	return NULL;
}

static void parse(int argc, char **argv)
{
	struct {
		const char *name;
		unsigned long *number;
	} numbers[] = {{"--ops", &args.ops}, {"--threads", &args.threads},
		{"--devices", &args.devices}, {"--seed", &args.seed}, {"--stop", &args.stop},
		{"--limit", &args.limit_mib}};

	args.ledger = argc > 1 ? argv[1] : "ledger.json";
	for (int i = 2; i < argc; i++) {
		for (size_t k = 0; k < sizeof(numbers) / sizeof(*numbers); k++)
			if (!strcmp(argv[i], numbers[k].name) && argv[i + 1])
				*numbers[k].number = strtoul(argv[++i], NULL, 10);
		if (argv[i] && !strcmp(argv[i], "--capture"))
			args.capture = true;
		if (argv[i] && !strcmp(argv[i], "--noise"))
			args.noise = true;
		if (argv[i] && !strcmp(argv[i], "--plain"))
			args.plain = true;
		if (argv[i] && !strcmp(argv[i], "--plugin") && argv[i + 1])
			args.plugin = argv[++i];
	}
	if (args.threads > MAX_THREADS)
		args.threads = MAX_THREADS;
}

int main(int argc, char **argv)
{
	static struct worker workers[MAX_THREADS];
	pthread_t threads[MAX_THREADS];

	parse(argc, argv);
	load();
	for (unsigned long i = 0; i < args.devices && args.limit_mib; i++)
		torch.set_limit((int)i, args.limit_mib * MIB);
	for (unsigned int i = 0; i < args.threads; i++) {
		workers[i].number = i;
		if (pthread_create(&threads[i], NULL, work, &workers[i]))
			return 1;
	}
	for (unsigned int i = 0; i < args.threads; i++)
		pthread_join(threads[i], NULL);
	if (!torch.write_ledger(args.ledger))
		return 1;
	/* What is alive now is what the trace is to end with. */
	fflush(NULL);
	return 0;
}
