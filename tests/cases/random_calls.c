/*
 * A random program: threads allocate, copy, set and free memory of every kind in every form their
 * route has, hand memory to each other, make calls that must fail, and leave some memory live at
 * the end.
 *
 *   random_calls --calls N --threads N --devices N --seed N [--route NAME] [--families basic|all]
 *                [--stop N]
 *
 * The route is linked in; naming another one is an error. Exit status 0: all calls ended as they
 * should, the bytes read back were those written, and the simulated driver agrees on what is live
 * at the end; 1: not; 2: usage. --families all adds arrays, boxes, batches, graphs, shared memory
 * and the rest of the API to the basic families.
 * --stop ends each thread after so many calls of it, wherever it is then: with one thread, what was
 * done by then is the beginning of the run without it.
 *
 * A thread sees a call end after it happened and begin before, so nobody outside can know the peak
 * of live bytes if it lies among frees of other threads. It does not here: in the mixed phases each
 * kind stays at or below a cap on each device, and between them lies a summit where all threads
 * allocate beyond the cap and nobody frees.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cusim.h"
#include "random_program.h"

#define N_SHARED 64

struct options options = {.n_calls = 10000, .seed = 1, .n_threads = 2, .n_devices = 1};

static pthread_barrier_t barrier;
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct object shared[N_SHARED]; /* under shared_lock; bytes 0: empty */

static bool is_host(const struct object *o)
{
	return o->kind == PINNED || o->kind == REGISTERED;
}

bool object_is_memory(const struct object *o)
{
	return o->kind != ARRAY && (o->kind != SHARED || o->share != SHARE_IMPORT);
}

struct object *thread_pick(struct thread *t, bool host)
{
	for (int tries = 0; tries < 8 && t->n_objects; tries++) {
		struct object *o = &t->objects[thread_below(t, t->n_objects)];

		if (is_host(o) == host && (host || (o->device == t->device && object_is_memory(o))))
			return o;
	}
	return NULL;
}

static u64 at_most(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* After n bytes of the value were written from the start of the object. */
static void written(struct object *o, unsigned char value, u64 n)
{
	o->value = value;
	o->n_known = n;
}

static void check_bytes(struct thread *t, const struct object *o, const unsigned char *bytes, u64 n)
{
	for (u64 i = 0; i < at_most(n, o->n_known); i++)
		if (bytes[i] != o->value)
			thread_fail(t, "copy of wrong bytes", bytes[i]);
}

static void copy(struct thread *t, enum copy_direction direction, u64 dst, u64 src, u64 bytes)
{
	struct copy c = {direction, dst, src, bytes, t->device, t->device};

	thread_expect(t, true, "copy", thread_copy(t, &c));
}

static u64 address_of(const void *p)
{
	return (u64)(uintptr_t)p;
}

/* From or to pageable or pinned host memory; the direction named, or left to the driver to find
 * out. */
static void copy_host(struct thread *t, struct object *o, bool to_device)
{
	struct object *host = thread_below(t, 2) ? thread_pick(t, true) : NULL;
	u64 n = 1 + thread_below(
			    t, at_most(o->bytes, host ? at_most(host->bytes, MAX_COPY) : MAX_COPY));
	unsigned char *bytes = host ? (unsigned char *)(uintptr_t)host->address : t->buffer;
	unsigned char value = (unsigned char)thread_random(t);
	bool unified = thread_below(t, 3) == 0;

	if (to_device) {
		memset(bytes, value, n);
		copy(t, unified ? COPY_UNIFIED : COPY_H2D, o->address, address_of(bytes), n);
		written(o, value, n);
	} else {
		copy(t, unified ? COPY_UNIFIED : COPY_D2H, address_of(bytes), o->address, n);
		check_bytes(t, o, bytes, n);
	}
}

static void copy_device(struct thread *t, struct object *from)
{
	struct object *to = thread_pick(t, false);
	u64 n;

	if (!to || to == from)
		return;
	n = 1 + thread_below(t, at_most(at_most(from->bytes, to->bytes), MAX_COPY));
	copy(t, thread_below(t, 2) ? COPY_D2D : COPY_UNIFIED, to->address, from->address, n);
	written(to, from->value, at_most(n, from->n_known));
}

/* To an object on another device. VMM memory would need access granted. */
static void copy_peer(struct thread *t, const struct object *from)
{
	struct object *to = &t->objects[thread_below(t, t->n_objects)];
	struct copy c = {
		.direction = COPY_P2P, .src_device = from->device, .dst_device = to->device};

	if (is_host(to) || to->device == from->device || to->kind == VMM || from->kind == VMM ||
		!object_is_memory(to))
		return;
	c.bytes = 1 + thread_below(t, at_most(at_most(from->bytes, to->bytes), MAX_COPY));
	c.src = from->address;
	c.dst = to->address;
	thread_expect(t, true, "peer copy", thread_copy(t, &c));
	written(to, from->value, at_most(c.bytes, from->n_known));
}

static void copy_something(struct thread *t)
{
	struct object *o = thread_pick(t, false);

	if (thread_below(t, 16) == 0) { /* between host memories */
		u64 half = MAX_COPY / 2;

		copy(t, COPY_UNIFIED, address_of(t->buffer), address_of(t->buffer + half),
			1 + thread_below(t, half));
		return;
	}
	if (!o)
		return;
	switch (thread_below(t, 4)) {
	case 0:
		copy_host(t, o, true);
		break;
	case 1:
		copy_host(t, o, false);
		break;
	case 2:
		copy_device(t, o);
		break;
	default:
		copy_peer(t, o);
	}
}

static void set_something(struct thread *t)
{
	struct object *o = thread_pick(t, false);
	struct set s;

	if (!o)
		return;
	s = (struct set){o->address, 1 + thread_below(t, at_most(o->bytes, MAX_COPY)),
		(unsigned char)thread_random(t)};
	if (s.bytes >= 64 && thread_below(t, 2))
		s.bytes -= s.bytes % 64;
	thread_expect(t, true, "set", route.set(thread_form(t), &s));
	written(o, s.value, s.bytes);
}

/* Swaps an object with one that some thread left. */
static void hand_over(struct thread *t)
{
	size_t at = thread_below(t, t->n_objects);
	struct object *slot = &shared[thread_below(t, N_SHARED)], got;

	pthread_mutex_lock(&shared_lock);
	got = *slot;
	*slot = t->objects[at];
	pthread_mutex_unlock(&shared_lock);
	if (got.bytes)
		t->objects[at] = got;
	else
		t->objects[at] = t->objects[--t->n_objects];
}

static void fail_on_purpose(struct thread *t)
{
	struct copy bad = {
		.direction = COPY_H2D, .dst = 4096, .src = address_of(t->buffer), .bytes = 16};
	u64 out;

	switch (thread_below(t, 8)) {
	case 0:
		thread_expect(t, false, "alloc of too much", route.alloc(16, 1ull << 50, &out));
		break;
	case 1:
		thread_expect(t, false, "free of garbage", route.free(0, 4096));
		break;
	case 2:
		thread_expect(t, false, "alloc_async of too much",
			route.alloc_async(thread_form(t), t->device, 1ull << 50, &out));
		break;
	case 3:
		thread_expect(
			t, false, "free_async of garbage", route.free_async(thread_form(t), 4096));
		break;
	case 4:
		thread_expect(
			t, false, "create of too much", route.create(t->device, 1ull << 50, &out));
		break;
	case 5:
		thread_expect(t, false, "free_pinned of garbage", route.free_pinned(4096));
		break;
	case 6:
		thread_expect(t, false, "unregister of garbage", route.unregister_host(t->buffer));
		break;
	default:
		thread_expect(t, false, "copy to garbage", route.copy(0x20, &bad));
	}
}

static void visit(struct thread *t)
{
	int device = (int)thread_below(t, (u64)options.n_devices);
	u64 bytes = 1 + thread_below(t, 65536);

	if (!route.visit || !memory_claim(LINEAR, device, bytes, false))
		return;
	thread_expect(t, true, "visit", route.visit(thread_form(t), device, bytes));
	memory_unclaim(LINEAR, device, bytes);
}

static int n_kinds(void)
{
	return options.all_families ? N_KINDS : N_BASIC_KINDS;
}

static void do_something(struct thread *t)
{
	u64 what = thread_below(t, 100);

	if (options.all_families && thread_below(t, 5) < 2) {
		wide_something(t);
		return;
	}
	if (what < 28)
		thread_make(t, (enum kind)thread_below(t, (u64)n_kinds()), thread_bytes(t), false);
	else if (what < 50 && t->n_objects)
		thread_end(t, thread_below(t, t->n_objects));
	else if (what < 55 && t->n_objects)
		hand_over(t);
	else if (what < 80)
		copy_something(t);
	else if (what < 90)
		set_something(t);
	else if (what < 93)
		fail_on_purpose(t);
	else if (what < 95)
		thread_use(t, (int)thread_below(t, (u64)options.n_devices));
	else if (what < 97)
		thread_expect(t, true, "query", route.query(thread_form(t)));
	else if (what < 98)
		thread_expect(t, true, "capture", route.capture(thread_form(t)));
	else
		visit(t);
}

static bool is_stopped(const struct thread *t)
{
	return options.n_stop && t->n_calls >= options.n_stop;
}

/* Brings every kind on every device beyond its cap. Nobody frees meanwhile. */
static void climb(struct thread *t)
{
	for (int device = 0; device < options.n_devices; device++) {
		thread_use(t, device);
		for (int kind = 0; kind < n_kinds(); kind++)
			while (kind != PITCHED && !memory_is_beyond(kind, device) && !is_stopped(t))
				thread_make(t, kind, 2 * MIB + thread_below(t, MIB), true);
	}
}

static void *run(void *argument)
{
	struct thread *t = argument;
	u64 n_calls = options.n_calls / (u64)options.n_threads;

	thread_use(t, (int)thread_below(t, (u64)options.n_devices));
	while (t->n_calls < n_calls / 2 && !is_stopped(t))
		do_something(t);
	pthread_barrier_wait(&barrier);
	climb(t);
	pthread_barrier_wait(&barrier);
	while (t->n_calls < n_calls && !is_stopped(t))
		do_something(t);
	for (size_t at = t->n_objects; at > 0 && !is_stopped(t); at--)
		if (thread_below(t, 2))
			thread_end(t, at - 1);
	return NULL;
}

/* An observer that asks for free memory only now and then sees how it all ended at this call. */
static void end_visibly(struct thread *t)
{
	for (int device = 0; device < options.n_devices; device++) {
		thread_use(t, device);
		usleep(20000);
		thread_make(t, LINEAR, 512, true);
	}
}

static void usage(const char *why)
{
	fprintf(stderr,
		"random_calls: %s\nusage: random_calls [--calls N] [--threads N] [--devices N] "
		"[--seed N] [--route %s] [--families basic|all] [--stop N]\n",
		why, route.name);
	exit(2);
}

static u64 number(const char *text, u64 least, u64 most)
{
	char *end_of_number;
	u64 value = strtoull(text, &end_of_number, 10);

	if (*text == '\0' || *end_of_number || value < least || value > most)
		usage("not a number in range");
	return value;
}

static void parse(int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		const char *name = argv[i], *value = argv[i + 1];

		if (!value)
			usage("an option needs a value");
		else if (!strcmp(name, "--calls"))
			options.n_calls = number(value, 1, 1000000000);
		else if (!strcmp(name, "--stop"))
			options.n_stop = number(value, 1, 1000000000);
		else if (!strcmp(name, "--threads"))
			options.n_threads = (int)number(value, 1, 256);
		else if (!strcmp(name, "--devices"))
			options.n_devices = (int)number(value, 1, MAX_DEVICES);
		else if (!strcmp(name, "--seed"))
			options.seed = number(value, 0, UINT64_MAX);
		else if (!strcmp(name, "--families") && !strcmp(value, "all") && route.wide)
			options.all_families = true;
		else if (!strcmp(name, "--families") && !strcmp(value, "basic"))
			options.all_families = false;
		else if (strcmp(name, "--route") || strcmp(value, route.name))
			usage("unknown option, or a route that is not linked in");
	}
}

/* Where the driver is the simulated one: does it agree on what is live. */
static bool driver_agrees(void)
{
	static const int kinds[N_KINDS] = {[LINEAR] = CUSIM_LINEAR,
		[PITCHED] = -1,
		[MANAGED] = CUSIM_MANAGED,
		[PINNED] = CUSIM_PINNED,
		[REGISTERED] = CUSIM_REGISTERED,
		[POOL] = CUSIM_POOL,
		[VMM] = CUSIM_VMM,
		[ARRAY] = CUSIM_ARRAY,
		[SHARED] = CUSIM_SHARED,
		[GRAPH] = CUSIM_GRAPH};
	static struct cusim_ledger ledger;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	__typeof__(cusim_ledger_get) *get = NULL;
	bool agrees = true;

	if (driver)
		*(void **)&get = dlsym(driver, "cusim_ledger_get");
	if (!get)
		return true;
	get(&ledger);
	for (int device = 0; device < options.n_devices; device++) {
		for (int kind = 0; kind < N_KINDS; kind++) {
			u64 here = memory_live((enum kind)kind, device), there;

			if (kinds[kind] < 0)
				continue;
			there = ledger.devices[device].kinds[kinds[kind]].live_bytes;
			if (here == there)
				continue;
			fprintf(stderr, "random_calls: device %d kind %d: %llu live, not %llu\n",
				device, kind, (unsigned long long)there, (unsigned long long)here);
			agrees = false;
		}
	}
	return agrees;
}

int main(int argc, char **argv)
{
	struct thread *threads;
	u64 n_calls = 0, n_kept = 0;
	int error;

	parse(argc, argv);
	if (options.all_families)
		setenv("CUSIM_IPC_SELF", "1", 1);
	threads = calloc((size_t)options.n_threads, sizeof(*threads));
	error = threads ? route.start(options.n_devices) : 1;
	if (error) {
		fprintf(stderr, "random_calls: start ended with %d\n", error);
		return 1;
	}
	pthread_barrier_init(&barrier, NULL, (unsigned)options.n_threads);
	for (int i = 0; i < options.n_threads; i++) {
		threads[i].random = options.seed * 1000003 + (u64)i;
		threads[i].buffer = calloc(1, MAX_COPY);
		if (!threads[i].buffer || pthread_create(&threads[i].id, NULL, run, &threads[i])) {
			fprintf(stderr, "random_calls: cannot start a thread\n");
			return 1;
		}
	}
	for (int i = 0; i < options.n_threads; i++) {
		pthread_join(threads[i].id, NULL);
		n_calls += threads[i].n_calls;
		n_kept += threads[i].n_objects;
	}
	if (options.all_families)
		end_visibly(threads);
	sites_print();
	printf("%s: %llu calls, %llu allocations kept\n", route.name, (unsigned long long)n_calls,
		(unsigned long long)n_kept);
	/* Injected failures may leave something live. */
	return getenv("CUSIM_FAIL") || driver_agrees() ? 0 : 1;
}
