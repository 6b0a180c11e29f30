/* The families of --families all: arrays, boxes, batches, shared memory, graphs, migration, code.
 */
#include <stdlib.h>
#include <string.h>

#include "random_program.h"

#define ROW_BYTES   512ull
#define PAGE_BYTES  (2 * MIB)
#define SMALL_BYTES MIB /* arrays beyond it take whole pages */

static const struct wide *wide(void)
{
	return route.wide;
}

static u64 at_most(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u64 address_of(const void *p)
{
	return (u64)(uintptr_t)p;
}

static u64 halved(u64 n, unsigned times)
{
	return n >> times ? n >> times : 1;
}

/* What an array takes, by the rules of the simulated driver. */
static u64 array_bytes(const struct array *a)
{
	u64 bytes = 0;

	for (unsigned i = 0; i < (a->n_levels ? a->n_levels : 1); i++)
		bytes += (halved(a->width, i) + ROW_BYTES - 1) / ROW_BYTES * ROW_BYTES *
			 halved(a->height, i) * halved(a->depth, i);
	return bytes > SMALL_BYTES ? (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES : bytes;
}

/* A shape of about so many bytes; more if rows shorter than what they take are allowed. */
static void shape(struct thread *t, u64 bytes, bool short_rows, struct array *a)
{
	a->width = (short_rows ? 1 : ROW_BYTES) + thread_below(t, 2000);
	switch (thread_below(t, 4)) {
	case 0:
		a->width = 1 + at_most(bytes, 65536);
		break;
	case 1:
		a->depth = 1 + thread_below(t, 4);
		a->height = 1 + bytes / (a->width * a->depth);
		break;
	case 2:
		a->n_levels = 1 + (unsigned)thread_below(t, 5);
		/* fall through */
	default:
		a->height = 1 + bytes / a->width;
	}
}

static void make_array(struct thread *t, u64 bytes, bool beyond)
{
	struct object o = {.kind = ARRAY, .device = t->device};

	shape(t, beyond ? bytes : bytes / 4, !beyond, &o.array);
	o.bytes = array_bytes(&o.array);
	if (!memory_claim(ARRAY, o.device, o.bytes, beyond))
		return;
	thread_expect(t, true, "array", wide()->array_make(thread_form(t), &o.array));
	if (o.array.bytes && o.array.bytes != o.bytes)
		thread_fail(t, "array of another size", (int)o.array.bytes);
	thread_keep(t, &o);
}

/* What shared memory is made of counts as its own kind. */
static enum kind base_kind(enum share share)
{
	switch (share) {
	case SHARE_IPC:
		return LINEAR;
	case SHARE_POOL:
		return POOL;
	case SHARE_IMPORT:
		return VMM;
	default:
		return N_KINDS;
	}
}

static void make_base(struct thread *t, struct object *o)
{
	switch (o->share) {
	case SHARE_IPC:
		thread_expect(t, true, "alloc to share", route.alloc(16, o->bytes, &o->base));
		break;
	case SHARE_POOL: /* an even form allocates from the device's own pool */
		thread_expect(t, true, "alloc to share",
			route.alloc_async(0, o->device, o->bytes, &o->base));
		break;
	case SHARE_IMPORT:
		thread_expect(
			t, true, "create to share", route.create(o->device, o->bytes, &o->base));
		break;
	default:
		break;
	}
}

static void end_base(struct thread *t, const struct object *o)
{
	switch (o->share) {
	case SHARE_IPC:
	case SHARE_POOL:
		thread_expect(t, true, "free of shared", route.free(0, o->base));
		break;
	case SHARE_IMPORT:
		thread_expect(t, true, "release of shared", route.release(o->base));
		break;
	default:
		break;
	}
}

static void make_shared(struct thread *t, u64 bytes, bool beyond)
{
	struct object o = {.kind = SHARED, .device = t->device, .bytes = bytes};
	enum kind base;

	o.share = (enum share)thread_below(t, N_SHARES);
	if (!wide()->has_share[o.share])
		o.share = SHARE_IPC;
	if (o.share == SHARE_IMPORT)
		o.bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	base = base_kind(o.share);
	if (base != N_KINDS && !memory_claim(base, o.device, o.bytes, beyond))
		return;
	if (!memory_claim(SHARED, o.device, o.bytes, beyond)) {
		if (base != N_KINDS)
			memory_unclaim(base, o.device, o.bytes);
		return;
	}
	make_base(t, &o);
	thread_expect(
		t, true, "share", wide()->share(o.share, o.device, &o.base, o.bytes, &o.address));
	thread_keep(t, &o);
}

static void end_shared(struct thread *t, const struct object *o)
{
	bool base_first = o->share == SHARE_IMPORT && thread_below(t, 2);

	if (base_first)
		end_base(t, o);
	if (o->share == SHARE_EXTERNAL || o->share == SHARE_POOL)
		thread_expect(t, true, "free of an alias", route.free(0, o->address));
	else
		thread_expect(t, true, "unshare", wide()->unshare(o->share, o->base, o->address));
	if (!base_first)
		end_base(t, o);
	if (base_kind(o->share) != N_KINDS)
		memory_unclaim(base_kind(o->share), o->device, o->bytes);
}

static void make_graph(struct thread *t, u64 bytes, bool beyond)
{
	struct object o = {.kind = GRAPH, .device = t->device, .bytes = bytes};

	if (!beyond && thread_below(t, 8) == 0)
		o.device = (int)thread_below(t, (u64)options.n_devices);
	o.graph = (struct graph){.device = o.device, .bytes = bytes};
	if (!beyond)
		o.graph.frees = thread_below(t, 4) == 0;
	if (!memory_claim(GRAPH, o.device, o.bytes, beyond))
		return;
	thread_expect(t, true, "graph", wide()->graph_make(thread_form(t), &o.graph));
	o.address = o.graph.address;
	if (o.graph.frees) {
		thread_expect(
			t, true, "launch", wide()->graph_launch(thread_form(t), o.graph.exec));
		thread_expect(t, true, "end of a graph", wide()->graph_end(&o.graph));
		memory_unclaim(GRAPH, o.device, o.bytes);
		return;
	}
	thread_keep(t, &o);
}

static void end_graph(struct thread *t, const struct object *o)
{
	bool memory_first = thread_below(t, 2);

	if (!memory_first)
		thread_expect(t, true, "end of a graph", wide()->graph_end(&o->graph));
	if (thread_below(t, 2))
		thread_expect(t, true, "free", route.free(0, o->address));
	else
		thread_expect(t, true, "free_async", route.free_async(thread_form(t), o->address));
	if (memory_first)
		thread_expect(t, true, "end of a graph", wide()->graph_end(&o->graph));
}

void wide_make(struct thread *t, enum kind kind, u64 bytes, bool beyond)
{
	if (kind == ARRAY)
		make_array(t, bytes, beyond);
	else if (kind == SHARED)
		make_shared(t, bytes, beyond);
	else
		make_graph(t, bytes, beyond);
}

void wide_end(struct thread *t, const struct object *o)
{
	if (o->kind == ARRAY)
		thread_expect(t, true, "array end", wide()->array_end(&o->array));
	else if (o->kind == SHARED)
		end_shared(t, o);
	else
		end_graph(t, o);
	memory_unclaim(o->kind, o->device, o->bytes);
}

static struct object *pick_kind(struct thread *t, enum kind kind)
{
	for (int tries = 0; tries < 16 && t->n_objects; tries++) {
		struct object *o = &t->objects[thread_below(t, t->n_objects)];

		if (o->kind == kind && o->device == t->device)
			return o;
	}
	return NULL;
}

/* Memory at least so large: an object's, or the buffer of the thread. */
static struct box_side memory_side(struct thread *t, struct object *o, u64 pitch)
{
	struct box_side side = {.pitch = pitch, .device = t->device};

	side.at = o ? o->address : address_of(t->buffer);
	side.place = o ? PLACE_DEVICE : PLACE_HOST;
	if (thread_below(t, 4) == 0)
		side.place = PLACE_UNIFIED;
	return side;
}

static struct box_side array_side(const struct object *o)
{
	return (struct box_side){.place = PLACE_ARRAY,
		.at = o->array.level,
		.device = o->device,
		.is_row = !o->array.height && !o->array.depth};
}

/* Fills a corner of the array from memory of one value, or reads one back and looks at it. */
static void box_with_array(struct thread *t, struct object *array, struct object *memory)
{
	u64 room = memory ? at_most(memory->bytes, MAX_COPY) : MAX_COPY;
	unsigned char value = (unsigned char)thread_random(t);
	struct box b = {.depth = 1};

	b.width = 1 + thread_below(t, at_most(array->array.width, room));
	b.height = 1 + thread_below(t, at_most(array->array.height ? array->array.height : 1,
					       room / b.width));
	if (thread_below(t, 2)) {
		if (memory)
			value = memory->value;
		else
			memset(t->buffer, value, b.width * b.height);
		b.dst = array_side(array);
		b.src = memory_side(t, memory, b.width);
		array->value = value;
		array->n_known = memory && memory->n_known < b.width * b.height ? 0 : b.height;
		array->n_known_wide = b.width;
		thread_expect(t, true, "box to an array", wide()->box(thread_form(t), &b));
		return;
	}
	b.dst = memory_side(t, memory, b.width);
	b.src = array_side(array);
	thread_expect(t, true, "box from an array", wide()->box(thread_form(t), &b));
	if (memory) {
		memory->value = array->value;
		memory->n_known = b.width <= array->n_known_wide && b.height <= array->n_known
					  ? b.width * b.height
					  : 0;
		return;
	}
	for (u64 y = 0; y < at_most(b.height, array->n_known); y++)
		for (u64 x = 0; x < at_most(b.width, array->n_known_wide); x++)
			if (t->buffer[y * b.width + x] != array->value)
				thread_fail(t, "box of wrong bytes", t->buffer[y * b.width + x]);
}

static void box_of_arrays(struct thread *t, struct object *to, const struct object *from)
{
	struct box b = {.dst = array_side(to), .src = array_side(from), .depth = 1};

	b.width = 1 + thread_below(t, at_most(to->array.width, from->array.width));
	b.height = to->array.height && from->array.height
			   ? 1 + thread_below(t, at_most(to->array.height, from->array.height))
			   : 1;
	thread_expect(t, true, "box of arrays", wide()->box(thread_form(t), &b));
	to->value = from->value;
	to->n_known_wide = b.width;
	to->n_known = b.width <= from->n_known_wide && b.height <= from->n_known ? b.height : 0;
}

/* Between two pieces of memory; the host's is the buffer. Rows of the source lie apart. */
static void box_of_memory(struct thread *t, struct object *to, struct object *from)
{
	u64 room = at_most(to ? at_most(to->bytes, MAX_COPY) : MAX_COPY,
		from ? at_most(from->bytes, MAX_COPY) : MAX_COPY);
	struct box b = {.depth = 1};
	u64 n;

	if (to == from)
		return;
	b.width = 1 + thread_below(t, room);
	b.depth = 1 + thread_below(t, at_most(3, room / b.width));
	b.height = 1 + thread_below(t, room / b.width / b.depth);
	n = b.width * b.height * b.depth;
	b.dst = memory_side(t, to, b.width);
	b.src = memory_side(t, from, b.width);
	if (!from)
		memset(t->buffer, (int)(n % 251), n);
	thread_expect(t, true, "box", wide()->box(thread_form(t), &b));
	if (to) {
		to->value = from ? from->value : (unsigned char)(n % 251);
		to->n_known = from ? at_most(from->n_known, n) : n;
		return;
	}
	for (u64 i = 0; i < at_most(n, from->n_known); i++)
		if (t->buffer[i] != from->value)
			thread_fail(t, "box of wrong bytes", t->buffer[i]);
}

static void box_something(struct thread *t)
{
	struct object *array = pick_kind(t, ARRAY), *other = pick_kind(t, ARRAY);
	struct object *memory = thread_pick(t, false);

	if (array && other && array != other && array->array.level && other->array.level &&
		thread_below(t, 2))
		box_of_arrays(t, array, other);
	else if (array && array->array.level)
		box_with_array(t, array, thread_below(t, 2) ? memory : NULL);
	else if (memory)
		box_of_memory(t, thread_below(t, 2) ? thread_pick(t, false) : NULL, memory);
}

/* Some copies to parts of the buffer, or from there. */
static void batch_something(struct thread *t)
{
	struct copy copies[4];
	size_t n = 1 + thread_below(t, 4);
	struct object *o = NULL;

	if (!wide()->batch)
		return;
	for (size_t i = 0; i < n; i++) {
		struct object *next = thread_pick(t, false);
		u64 bytes = next ? 1 + thread_below(t, at_most(next->bytes, MAX_COPY / 4)) : 0;
		u64 host = address_of(t->buffer) + i * MAX_COPY / 4;

		if (!next)
			return;
		o = next;
		copies[i] = (struct copy){.direction = COPY_UNIFIED,
			.dst = i % 2 ? o->address : host,
			.src = i % 2 ? host : o->address,
			.bytes = bytes};
		if (i % 2)
			o->n_known = 0;
	}
	thread_expect(t, true, "batch", wide()->batch(thread_form(t), copies, n));
}

static void migrate_something(struct thread *t)
{
	struct object *o = pick_kind(t, MANAGED);
	u64 n;

	if (!o)
		return;
	n = 1 + thread_below(t, o->bytes);
	if (wide()->discard && thread_below(t, 4) == 0) {
		thread_expect(t, true, "discard", wide()->discard(thread_form(t), o->address, n));
		o->n_known = 0;
		return;
	}
	thread_expect(t, true, "migrate",
		wide()->migrate(thread_form(t), (int)thread_below(t, (u64)options.n_devices),
			o->address, n));
}

/* The memory goes, and comes again by another launch. */
static void relaunch(struct thread *t)
{
	struct object *o = pick_kind(t, GRAPH);

	if (!o)
		return;
	thread_expect(t, true, "free", route.free_async(thread_form(t), o->address));
	thread_expect(t, true, "launch", wide()->graph_launch(thread_form(t), o->graph.exec));
	o->n_known = 0;
}

static void fail_widely(struct thread *t)
{
	struct array too_large = {.width = 1ull << 30, .height = 1ull << 20};
	struct array garbage = {.handle = 4096};
	struct box box = {.width = 16, .height = 2, .depth = 1};
	u64 out;

	box.src = memory_side(t, NULL, 16);
	box.src.place = PLACE_HOST;
	box.dst = (struct box_side){.place = PLACE_DEVICE, .at = 4096, .pitch = 16};
	switch (thread_below(t, 6)) {
	case 0:
		thread_expect(t, false, "array of too much",
			wide()->array_make(thread_form(t), &too_large));
		break;
	case 1:
		thread_expect(t, false, "end of no array", wide()->array_end(&garbage));
		break;
	case 2:
		thread_expect(t, false, "box to garbage", wide()->box(thread_form(t), &box));
		break;
	case 3:
		thread_expect(t, false, "unshare of garbage", wide()->unshare(SHARE_IPC, 0, 4096));
		break;
	case 4:
		thread_expect(
			t, false, "launch of garbage", wide()->graph_launch(thread_form(t), 4096));
		break;
	default:
		out = address_of(t->buffer);
		thread_expect(t, false, "migration of host memory",
			wide()->migrate(thread_form(t), 0, out, 4096));
	}
}

void wide_something(struct thread *t)
{
	u64 what = thread_below(t, 100);

	if (what < 25)
		wide_make(t, (enum kind)(ARRAY + thread_below(t, 3)), thread_bytes(t), false);
	else if (what < 60)
		box_something(t);
	else if (what < 70)
		batch_something(t);
	else if (what < 80)
		migrate_something(t);
	else if (what < 88)
		relaunch(t);
	else if (what < 92)
		fail_widely(t);
	else if (what < 96 && wide()->code)
		thread_expect(t, true, "code", wide()->code(thread_form(t)));
	else
		thread_expect(t, true, "adjust",
			wide()->adjust(
				thread_form(t), (int)thread_below(t, (u64)options.n_devices)));
}
