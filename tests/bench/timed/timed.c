/*
 * Linked around the recorder's own objects (--wrap), with nothing in them changed: how long it takes to
 * get the stack of a PyTorch block as a number, both kinds of frames, from the call that asks for it
 * to the number; and of that, the native frames. A stack that is new is counted apart, and once more
 * until it is written, with modules and code objects that are new. At the end of the process a line for each goes into the file that TIMED_OUTPUT
 * names: name, samples, and mean, median, 90th and 99th percentile in nanoseconds. The first quarter
 * of the samples is warming up and left out, except of new stacks; the cost of timing is taken off.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

#include "record/native.h"
#include "record/stackset.h"

#define MAX_SAMPLES (1u << 22)

struct vt_lane;

static struct series {
	_Atomic uint32_t n;
	uint32_t ticks[MAX_SAMPLES];
} known, unknown, written, native;

static uint64_t start_ticks;
static struct timespec start;
static __thread uint64_t block_ticks; /* when the capture for a block began, 0: none is */
static __thread bool is_new;

uint64_t __real_current_stack(struct vt_lane *lane, uint64_t time_ns);
uint64_t __real_stackset_intern(const struct stackset_key *key, bool *is_new);
void __real_native_capture(struct native *native, size_t max);

static uint64_t ticks(void)
{
	unsigned int unused;
	uint64_t now = __rdtscp(&unused);

	_mm_lfence();
	return now;
}

static void add(struct series *series, uint64_t n_ticks)
{
	uint32_t at = atomic_fetch_add_explicit(&series->n, 1, memory_order_relaxed);

	if (at < MAX_SAMPLES)
		series->ticks[at] = n_ticks < UINT32_MAX ? (uint32_t)n_ticks : UINT32_MAX;
}

uint64_t __wrap_current_stack(struct vt_lane *lane, uint64_t time_ns)
{
	uint64_t id;

	is_new = false;
	block_ticks = ticks();
	id = __real_current_stack(lane, time_ns);
	add(is_new ? &written : &known, ticks() - block_ticks);
	block_ticks = 0;
	return id;
}

uint64_t __wrap_stackset_intern(const struct stackset_key *key, bool *new)
{
	uint64_t id = __real_stackset_intern(key, new);

	is_new = *new;
	if (is_new && block_ticks)
		add(&unknown, ticks() - block_ticks);
	return id;
}

void __wrap_native_capture(struct native *stack, size_t max)
{
	uint64_t begin = ticks();

	__real_native_capture(stack, max);
	if (block_ticks)
		add(&native, ticks() - begin);
}

__attribute__((constructor)) static void begin(void)
{
	clock_gettime(CLOCK_MONOTONIC, &start);
	start_ticks = ticks();
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static uint32_t empty_ticks(void)
{
	uint32_t least = UINT32_MAX;

	for (int i = 0; i < 1000; i++) {
		uint64_t begin = ticks(), took = ticks() - begin;

		least = took < least ? (uint32_t)took : least;
	}
	return least;
}

static void write_series(FILE *file, const char *name, struct series *series, double ns_per_tick)
{
	uint32_t n = series->n < MAX_SAMPLES ? series->n : MAX_SAMPLES;
	uint32_t skip = series == &unknown || series == &written ? 0 : n / 4, left = n - skip, empty = empty_ticks();
	uint32_t *sorted = series->ticks + skip;
	double sum = 0;

	if (!left)
		return;
	qsort(sorted, left, sizeof(*sorted), by_value);
	for (uint32_t i = 0; i < left; i++)
		sum += (double)sorted[i] - empty;
	fprintf(file, "%s %u %.0f %.0f %.0f %.0f\n", name, left, sum / left * ns_per_tick,
		((double)sorted[left / 2] - empty) * ns_per_tick,
		((double)sorted[(uint32_t)(0.9 * left)] - empty) * ns_per_tick,
		((double)sorted[(uint32_t)(0.99 * left)] - empty) * ns_per_tick);
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("TIMED_OUTPUT");
	FILE *file = path && known.n ? fopen(path, "w") : NULL;
	struct timespec now;
	double ns_per_tick;

	if (!file)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	ns_per_tick = (1e9 * (double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec)) /
		      (double)(ticks() - start_ticks);
	write_series(file, "known", &known, ns_per_tick);
	write_series(file, "native", &native, ns_per_tick);
	write_series(file, "new", &unknown, ns_per_tick);
	write_series(file, "written", &written, ns_per_tick);
	fclose(file);
}
