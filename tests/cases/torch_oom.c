/*
 * Ways in which PyTorch's allocator runs out of memory, or wastes it: torch_oom CASE, on the
 * simulated one (c10sim.h). What is refused is expected; what should work and does not ends the
 * program with status 1. The names of functions are what torch_oom.py looks for.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c10sim.h"

#define MIB	 (1ull << 20)
#define NOINLINE __attribute__((noinline))
#define STAY()	 __asm__ volatile("" ::: "memory")

static struct {
	__typeof__(&c10sim_alloc) alloc;
	__typeof__(&c10sim_free) free;
	__typeof__(&c10sim_record_stream) record_stream;
	__typeof__(&c10sim_set_stream) set_stream;
	__typeof__(&c10sim_set_limit) set_limit;
	void (*hold_events)(bool hold);
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

static void open_torch(void)
{
	void *c10 = dlopen("libc10_cuda.so", RTLD_NOW | RTLD_LOCAL);

	if (!c10) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	torch.alloc = look_up(c10, "c10sim_alloc");
	torch.free = look_up(c10, "c10sim_free");
	torch.record_stream = look_up(c10, "c10sim_record_stream");
	torch.set_stream = look_up(c10, "c10sim_set_stream");
	torch.set_limit = look_up(c10, "c10sim_set_limit");
	torch.hold_events =
		look_up(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cusim_hold_events");
}

static void check(bool right, const char *what)
{
	if (!right) {
		fprintf(stderr, "%s\n", what);
		exit(1);
	}
}

NOINLINE static void *forward(size_t bytes)
{
	void *block = torch.alloc(bytes, 0);

	STAY();
	return block;
}

NOINLINE static void *keep(size_t bytes)
{
	void *block = torch.alloc(bytes, 0);

	check(block, "what is kept");
	return block;
}

/* A1: a large block is cut up when it is free again, and a few pieces of it stay. */
static void carve(void)
{
	void *pieces[21], *large = forward(252 * MIB);

	check(large, "252 MiB");
	torch.free(large);
	for (int i = 0; i < 21; i++)
		pieces[i] = i % 7 == 3 ? keep(12 * MIB) : forward(12 * MIB);
	for (int i = 0; i < 21; i++)
		if (i % 7 != 3)
			torch.free(pieces[i]);
}

static void carved(void)
{
	carve();
	check(!forward(200 * MIB), "200 MiB should not have been there");
}

/* The same under a cap, where the driver is not even asked. */
static void carved_limit(void)
{
	torch.set_limit(0, 300 * MIB);
	carved();
}

/* With segments that grow, the pieces are in nobody's way. */
static void carved_expandable(void)
{
	carve();
	check(forward(200 * MIB), "200 MiB");
}

/* A3: every layer's size grows a little with every step, and what was there just misses it. */
NOINLINE static void *layer(size_t bytes)
{
	void *block = torch.alloc(bytes, 0);

	check(block, "a layer's output");
	return block;
}

static void drift(void)
{
	void *outputs[16];

	for (size_t step = 0; step < 24; step++) {
		for (int i = 0; i < 16; i++)
			outputs[i] = layer((11 + step) * MIB);
		for (int i = 0; i < 16; i++)
			torch.free(outputs[i]);
	}
}

/* A5: what fits comes free inside the call that is refused, and is not looked at again. */
static void too_late(void)
{
	void *whole = forward(128 * MIB), *block, *rest;

	check(whole, "128 MiB");
	torch.free(whole);
	block = forward(96 * MIB);
	rest = keep(32 * MIB);
	check(block && rest, "two parts");
	check(keep(300 * MIB), "300 MiB");
	torch.record_stream(block, 1);
	torch.hold_events(true);
	torch.free(block);
	check(!forward(96 * MIB), "96 MiB should have been refused");
	check(forward(96 * MIB), "96 MiB again");
}

/* Cached segments are too small; the allocator gives them back and is served. */
static void own_cache(void)
{
	void *blocks[3];

	for (int i = 0; i < 3; i++)
		blocks[i] = forward(120 * MIB);
	for (int i = 0; i < 3; i++)
		torch.free(blocks[i]);
	check(forward(200 * MIB), "200 MiB");
}

/* A6: what is free belongs to another stream. */
static void other_stream(void)
{
	void *whole = forward(256 * MIB);

	check(whole, "256 MiB");
	torch.free(whole);
	keep(16 * MIB);
	torch.set_stream(0, 2);
	check(!forward(220 * MIB), "220 MiB should have been refused");
}

/* A10, A11: more than there is; more than may be had. */
static void too_large(void)
{
	check(!forward(600 * MIB), "600 MiB should have been refused");
}

static void fraction(void)
{
	torch.set_limit(0, 64 * MIB);
	keep(40 * MIB);
	check(!forward(40 * MIB), "40 MiB should have been refused");
}

/* A12: PyTorch keeps nearly all; then a library asks the driver. */
NOINLINE static int library_create(void)
{
	void *workspace;

	return cudaMalloc(&workspace, 128 * MIB) ? -1 : 0;
}

static void cache(void)
{
	void *blocks[2];

	keep(2 * MIB);
	for (int i = 0; i < 2; i++)
		blocks[i] = forward(190 * MIB);
	for (int i = 0; i < 2; i++)
		torch.free(blocks[i]);
	check(library_create() == -1, "the library should not have started");
}

static void full(void)
{
	for (int i = 0; i < 4; i++)
		keep(100 * MIB);
	check(!forward(100 * MIB), "100 MiB should have been refused");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"carved", carved},
	{"carved_limit", carved_limit},
	{"carved_expandable", carved_expandable},
	{"drift", drift},
	{"too_late", too_late},
	{"own_cache", own_cache},
	{"other_stream", other_stream},
	{"too_large", too_large},
	{"fraction", fraction},
	{"cache", cache},
	{"full", full},
};

int main(int argc, char **argv)
{
	open_torch();
	for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(cases[i].name, argv[1]))
			continue;
		cases[i].run();
		return 0;
	}
	fprintf(stderr, "usage: torch_oom CASE\n");
	return 2;
}
