/* The memory of the random program: allocating and freeing every kind, under a cap for each. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "random_program.h"

#define PAGE_BYTES (2 * MIB)

/* Pitched memory is linear memory to the driver. */
static const u64 caps[N_KINDS] = {
	[LINEAR] = 192 * MIB,
	[PITCHED] = 192 * MIB,
	[MANAGED] = 64 * MIB,
	[PINNED] = 64 * MIB,
	[REGISTERED] = 16 * MIB,
	[POOL] = 192 * MIB,
	[VMM] = 96 * MIB,
	[ARRAY] = 96 * MIB,
	[SHARED] = 48 * MIB,
	[GRAPH] = 64 * MIB,
};

static _Atomic u64 live[N_KINDS][MAX_DEVICES];

u64 thread_random(struct thread *t)
{
	u64 z = t->random += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

u64 thread_below(struct thread *t, u64 n)
{
	return thread_random(t) % n;
}

unsigned thread_form(struct thread *t)
{
	return (unsigned)thread_random(t) & 0x7fffffff;
}

void thread_fail(const struct thread *t, const char *what, int error)
{
	fprintf(stderr, "random_calls: %s ended with %d (device %d, call %llu of its thread)\n",
		what, error, t->device, (unsigned long long)t->n_calls);
	exit(1);
}

void thread_ended(struct thread *t, bool success, const char *what, int error)
{
	t->n_calls++;
	if (success != (error == 0))
		thread_fail(t, what, error);
}

void thread_use(struct thread *t, int device)
{
	t->device = device;
	thread_expect(t, true, "use", route.use(device));
}

static _Atomic u64 *live_of(enum kind kind, int device)
{
	return &live[kind == PITCHED ? LINEAR : kind][device];
}

bool memory_claim(enum kind kind, int device, u64 bytes, bool beyond)
{
	_Atomic u64 *bytes_live = live_of(kind, device);

	if (atomic_fetch_add(bytes_live, bytes) + bytes <= caps[kind] || beyond)
		return true;
	atomic_fetch_sub(bytes_live, bytes);
	return false;
}

void memory_unclaim(enum kind kind, int device, u64 bytes)
{
	atomic_fetch_sub(live_of(kind, device), bytes);
}

u64 thread_bytes(struct thread *t)
{
	u64 bytes = 1 + thread_below(t, 1ull << (1 + thread_below(t, 22)));

	switch (thread_below(t, 6)) {
	case 0:
		return (bytes + 511) / 512 * 512;
	case 1:
		return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	default:
		return bytes;
	}
}

void thread_keep(struct thread *t, const struct object *o)
{
	if (t->n_objects == t->capacity) {
		t->capacity = t->capacity ? 2 * t->capacity : 64;
		t->objects = realloc(t->objects, t->capacity * sizeof(*t->objects));
		if (!t->objects)
			thread_fail(t, "realloc", 0);
	}
	t->objects[t->n_objects++] = *o;
}

static void make_vmm(struct thread *t, struct object *o)
{
	o->held = true;
	thread_expect(t, true, "create", route.create(o->device, o->bytes, &o->handle));
	thread_expect(t, true, "reserve", route.reserve(o->bytes, &o->address));
	thread_expect(t, true, "map", route.map(o->address, o->bytes, o->handle));
	thread_expect(t, true, "allow", route.allow(o->address, o->bytes, o->device));
	if (thread_below(t, 2)) { /* what is mapped need not be held */
		thread_expect(t, true, "release", route.release(o->handle));
		o->held = false;
	}
}

static void make_registered(struct thread *t, struct object *o)
{
	void *p = malloc(o->bytes);

	if (!p)
		thread_fail(t, "malloc", 0);
	o->address = (u64)(uintptr_t)p;
	thread_expect(t, true, "register", route.register_host(thread_form(t), p, o->bytes));
}

/* The bytes of a pitched allocation are known before: rows are multiples of 512 bytes. */
static void make_pitched(struct thread *t, struct object *o)
{
	u64 height = 1 + thread_below(t, 8), pitch = 0, row = (o->bytes / height + 511) / 512 * 512;

	row = row ? row : 512;
	memory_unclaim(PITCHED, o->device, o->bytes);
	o->bytes = row * height;
	if (!memory_claim(PITCHED, o->device, o->bytes, false)) {
		o->bytes = 0;
		return;
	}
	thread_expect(t, true, "alloc_pitch",
		route.alloc_pitch(
			thread_form(t), row - thread_below(t, 512), height, &pitch, &o->address));
	if (pitch != row)
		thread_fail(t, "alloc_pitch with another pitch", (int)pitch);
}

void thread_make(struct thread *t, enum kind kind, u64 bytes, bool beyond)
{
	struct object o = {.kind = kind, .device = t->device, .bytes = bytes};

	if (kind >= N_BASIC_KINDS) {
		wide_make(t, kind, bytes, beyond);
		return;
	}
	if (kind == VMM)
		o.bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	if (kind == POOL && thread_below(t, 8) == 0)
		o.device = (int)thread_below(t, (u64)options.n_devices);
	if (!memory_claim(kind, o.device, o.bytes, beyond))
		return;
	switch (kind) {
	case LINEAR:
		thread_expect(t, true, "alloc", route.alloc(thread_form(t), o.bytes, &o.address));
		break;
	case PITCHED:
		make_pitched(t, &o);
		break;
	case MANAGED:
		thread_expect(t, true, "alloc_managed", route.alloc_managed(o.bytes, &o.address));
		break;
	case PINNED:
		thread_expect(t, true, "alloc_pinned",
			route.alloc_pinned(thread_form(t), o.bytes, &o.address));
		break;
	case REGISTERED:
		make_registered(t, &o);
		break;
	case POOL:
		thread_expect(t, true, "alloc_async",
			route.alloc_async(thread_form(t), o.device, o.bytes, &o.address));
		break;
	default:
		make_vmm(t, &o);
	}
	if (o.bytes)
		thread_keep(t, &o);
}

static void end_vmm(struct thread *t, const struct object *o)
{
	bool release_first = thread_below(t, 2);

	if (o->held && release_first)
		thread_expect(t, true, "release", route.release(o->handle));
	thread_expect(t, true, "unmap", route.unmap(o->address, o->bytes));
	thread_expect(t, true, "unreserve", route.unreserve(o->address, o->bytes));
	if (o->held && !release_first)
		thread_expect(t, true, "release", route.release(o->handle));
}

void thread_end(struct thread *t, size_t at)
{
	struct object o = t->objects[at];

	t->objects[at] = t->objects[--t->n_objects];
	if (o.kind >= N_BASIC_KINDS) {
		wide_end(t, &o);
		return;
	}
	switch (o.kind) {
	case PINNED:
		thread_expect(t, true, "free_pinned", route.free_pinned(o.address));
		break;
	case REGISTERED:
		thread_expect(
			t, true, "unregister", route.unregister_host((void *)(uintptr_t)o.address));
		free((void *)(uintptr_t)o.address);
		break;
	case POOL:
		if (thread_below(t, 4)) {
			thread_expect(
				t, true, "free_async", route.free_async(thread_form(t), o.address));
			break;
		}
		/* fall through */
	case LINEAR:
	case PITCHED:
	case MANAGED:
		thread_expect(t, true, "free", route.free(thread_form(t), o.address));
		break;
	default:
		end_vmm(t, &o);
	}
	memory_unclaim(o.kind, o.device, o.bytes);
}

bool memory_is_beyond(enum kind kind, int device)
{
	return atomic_load(live_of(kind, device)) > caps[kind];
}

u64 memory_live(enum kind kind, int device)
{
	return atomic_load(live_of(kind, device));
}
