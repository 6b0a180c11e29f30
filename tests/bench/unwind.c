/*
 * What it costs to get a call stack of 40 frames: libunwind, glibc, the recorder's walk by rows,
 * and its remembered walks. Each way gets its turn in blocks, in one process; every capture is
 * timed alone, and the cost of timing is taken off. Times mean little across runs: compare inside
 * one.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __x86_64__
#include <x86intrin.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "record/unwind/code.h"
#include "record/unwind/unwind.h"
#include "record/unwind/walk.h"

#define FRAMES	   40
#define MAX_FRAMES 128
#define BLOCK	   500
#define WIPE_BYTES (1u << 20)

#define TEXT_OF(name)	    #name
#define SYMBOL_OF(function) TEXT_OF(function)

typedef int backtrace_function(void **buffer, int size);
typedef int set_caching_function(unw_addr_space_t space, unw_caching_policy_t policy);

enum way { EMPTY, LIBUNWIND, GLIBC, ROWS, MEMO, N_WAYS };

static const char *const names[N_WAYS] = {
	"", "unw_backtrace", "glibc backtrace", "rows", "remembered"};

struct walks {
	struct rows rows;
	struct area area;
	struct trail trail;
};

static backtrace_function *backtrace_of;
static __thread struct walks *walks;
static __thread void *buffer[MAX_FRAMES];

static uint64_t *samples;
static unsigned int n_samples;
static double ns_per_tick;
static char *wiped;

__attribute__((noinline)) static void capture(enum way way)
{
	static const struct walk_limits limits = {MAX_FRAMES, 0, 0};
	const uint64_t *frame = __builtin_frame_address(0);
	struct walk_start start = {frame[1], (uint64_t)(uintptr_t)(frame + 2), frame[0]};
	struct unwind_stack stack;

	switch (way) {
	case LIBUNWIND:
		backtrace_of(buffer, MAX_FRAMES);
		break;
	case GLIBC:
		backtrace(buffer, MAX_FRAMES);
		break;
	case ROWS:
		walk_stack(&walks->trail, &walks->rows, &walks->area, &limits, &start);
		break;
	case MEMO:
		unwind_capture(&stack);
		break;
	default:
		break;
	}
	__asm__ volatile("" ::: "memory");
}

static uint64_t ticks(void)
{
	unsigned int unused;
	uint64_t now = __rdtscp(&unused);

	_mm_lfence();
	return now;
}

static void wipe(void)
{
	for (unsigned int i = 0; i < WIPE_BYTES; i += 64)
		wiped[i]++;
}

/* Stacks seldom begin at the same address when they differ. */
__attribute__((noinline)) static void measure_one(uint64_t path, enum way way)
{
	volatile char *room = alloca(16 * (1 + path % 64));
	uint64_t begin;

	room[0] = 0;
	begin = ticks();
	capture(way);
	samples[n_samples++] = ticks() - begin;
}

/* Different paths make different stacks; the innermost levels come first. */
__attribute__((noinline)) static int descend(int frames, uint64_t path, enum way way)
{
	volatile int here = frames;
	int result;

	if (!frames) {
		measure_one(path, way);
		return here;
	}
	/* Told apart, or the compiler makes one call of the two. */
	if (path >> (frames - 1) & 1) {
		result = descend(frames - 1, path, way);
		__asm__ volatile("# one");
	} else {
		result = descend(frames - 1, path, way);
		__asm__ volatile("# other");
	}
	return result + here;
}

struct pattern {
	const char *name;
	uint64_t n_stacks; /* 0: always another */
	int in_order;
	int wiping;
};

static uint64_t choose_path(const struct pattern *pattern, uint64_t n)
{
	uint64_t random = (n + 1) * 0xd1342543de82ef95u;

	random ^= random >> 32;
	if (!pattern->n_stacks)
		return n;
	return pattern->in_order ? n % pattern->n_stacks : random % pattern->n_stacks;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

struct figures {
	double mean, median, p99;
};

static struct figures measure(const struct pattern *pattern, enum way way, unsigned int round,
	unsigned int n, double empty_ns)
{
	struct figures figures = {0};

	n_samples = 0;
	for (unsigned int i = 0; i < n; i++) {
		if (pattern->wiping)
			wipe();
		descend(FRAMES, choose_path(pattern, (uint64_t)round * n + i), way);
	}
	qsort(samples, n, sizeof(*samples), by_value);
	/* Without the few that the kernel or another process got into. */
	for (unsigned int i = 0; i < n - n / 250; i++)
		figures.mean += (double)samples[i] * ns_per_tick / (n - n / 250);
	figures.mean -= empty_ns;
	figures.median = (double)samples[n / 2] * ns_per_tick - empty_ns;
	figures.p99 = (double)samples[n - n / 100 - 1] * ns_per_tick - empty_ns;
	return figures;
}

static void run_pattern(const struct pattern *pattern, unsigned int n_rounds)
{
	struct figures sum[N_WAYS] = {{0}};
	double n = n_rounds;

	for (unsigned int round = 0; round <= n_rounds; round++) {
		double empty_ns = 0;

		for (enum way way = EMPTY; way < N_WAYS; way++) {
			struct figures figures = measure(pattern, way, round, BLOCK, empty_ns);

			if (way == EMPTY)
				empty_ns = figures.median;
			if (!round) /* warms up */
				continue;
			sum[way].mean += figures.mean / n;
			sum[way].median += figures.median / n;
			sum[way].p99 += figures.p99 / n;
		}
	}
	printf("\n%-44s %8s %8s %8s   %s\n", pattern->name, "mean", "median", "p99",
		"of unw_backtrace");
	for (enum way way = LIBUNWIND; way < N_WAYS; way++)
		printf("  %-42s %8.0f %8.0f %8.0f   %4.2f %4.2f %4.2f\n", names[way], sum[way].mean,
			sum[way].median, sum[way].p99, sum[way].mean / sum[LIBUNWIND].mean,
			sum[way].median / sum[LIBUNWIND].median, sum[way].p99 / sum[LIBUNWIND].p99);
}

static void prepare_walks(void)
{
	walks = calloc(1, sizeof(*walks));
	if (!walks)
		exit(1);
	rows_init(&walks->rows, code_row);
	if (!rows_prepare(&walks->rows))
		exit(1);
}

/* The first and second capture of a thread. */
static void *first_captures(void *result)
{
	double *ns = result;

	prepare_walks();
	for (enum way way = LIBUNWIND; way < N_WAYS; way++) {
		n_samples = 0;
		descend(FRAMES, 0, way);
		descend(FRAMES, 0, way);
		ns[2 * way] += (double)samples[0] * ns_per_tick;
		ns[2 * way + 1] += (double)samples[1] * ns_per_tick;
	}
	free(walks);
	return NULL;
}

static void run_threads(int n_threads)
{
	double ns[2 * N_WAYS] = {0};
	pthread_t id;

	for (int i = 0; i < n_threads; i++)
		if (pthread_create(&id, NULL, first_captures, ns) || pthread_join(id, NULL))
			exit(1);
	printf("\n%-44s %8s %8s   mean\n", "a thread's first captures", "first", "second");
	for (enum way way = LIBUNWIND; way < N_WAYS; way++)
		printf("  %-42s %8.0f %8.0f\n", names[way], ns[2 * way] / n_threads,
			ns[2 * way + 1] / n_threads);
}

static void calibrate(void)
{
	struct timespec pause = {0, 50000000}, begin, end;
	uint64_t ticks_before;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	ticks_before = ticks();
	nanosleep(&pause, NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	ns_per_tick = (1e9 * (double)(end.tv_sec - begin.tv_sec) +
			      (double)(end.tv_nsec - begin.tv_nsec)) /
		      (double)(ticks() - ticks_before);
}

static size_t no_fallback(uint64_t *frames, size_t max)
{
	(void)frames;
	(void)max;
	fputs("a stack of this program was left to libunwind\n", stderr);
	exit(1);
}

int main(int argc, char **argv)
{
	static const struct pattern patterns[] = {
		{"one stack", 1, 1, 0},
		{"50 stacks in turn", 50, 1, 0},
		{"50 stacks at random", 50, 0, 0},
		{"always another stack", 0, 1, 0},
		{"one stack, 1 MiB written before", 1, 1, 1},
		{"50 stacks in turn, 1 MiB written before", 50, 1, 1},
		{"50 stacks at random, 1 MiB written before", 50, 0, 1},
		{"always another stack, 1 MiB written before", 0, 1, 1},
	};
	static const struct unwind_setup setup = {no_fallback, MAX_FRAMES, 0, 0};
	unsigned int n_rounds = argc > 1 ? (unsigned int)atoi(argv[1]) : 20;
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	set_caching_function *set_caching;
	unw_addr_space_t *space;

	samples = calloc(BLOCK, sizeof(*samples));
	wiped = calloc(1, WIPE_BYTES);
	if (!library || !samples || !wiped)
		return 1;
	backtrace_of = (backtrace_function *)dlsym(library, "unw_backtrace");
	set_caching = (set_caching_function *)dlsym(library, SYMBOL_OF(unw_set_caching_policy));
	space = dlsym(library, SYMBOL_OF(unw_local_addr_space));
	if (!backtrace_of || !set_caching || !space)
		return 1;
	set_caching(*space, UNW_CACHE_NONE);
	unwind_init(&setup);
	calibrate();
	prepare_walks();
	printf("ns for one stack of %d frames, %u captures each\n", FRAMES + 5, n_rounds * BLOCK);
	for (unsigned int i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
		run_pattern(&patterns[i], n_rounds);
	run_threads(50);
	return 0;
}
#else
int main(void)
{
	puts("stacks come from libunwind on this machine: nothing to compare");
	return 0;
}
#endif
