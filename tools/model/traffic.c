/* Copies as they follow one another: over time, by thread, by stream; and what is told of them
 * later. */
#include <string.h>

#include "model/internal.h"
#include "model/memory.h"

#define FIRST_STRETCH_NS 1000000u
/* A small copy so soon behind another one could have gone with it. */
#define CLOSE_NS 100000u
/* A copy of one stream so soon behind one of another is taken to have waited for it. */
#define SERIAL_NS 1000000u
/* An asynchronous call has blocked if it took as many times the shortest one, and so long. */
#define BLOCKED_TIMES 16u
#define BLOCKED_NS    20000u
/* Copies of which more may become known; the oldest are given up. */
#define MAX_TIMED 32768u

static struct model_stretch *stretch_at(struct model_traffic *traffic, uint64_t time_ns)
{
	struct model_stretch *all = traffic->stretches;

	if (!traffic->stretch_ns) {
		traffic->start_ns = time_ns;
		traffic->stretch_ns = FIRST_STRETCH_NS;
	}
	if (time_ns < traffic->start_ns)
		return &all[0];
	while ((time_ns - traffic->start_ns) / traffic->stretch_ns >= MODEL_N_STRETCHES) {
		for (size_t i = 0; i < MODEL_N_STRETCHES / 2; i++) {
			const struct model_stretch *a = &all[2 * i], *b = &all[2 * i + 1];
			struct model_stretch sum = {
				.host_time_ns = a->host_time_ns + b->host_time_ns};

			for (size_t d = 0; d < VT_N_DIRECTIONS; d++)
				sum.bytes[d] = add_capped(a->bytes[d], b->bytes[d]);
			all[i] = sum;
		}
		memset(&all[MODEL_N_STRETCHES / 2], 0, sizeof(*all) * MODEL_N_STRETCHES / 2);
		traffic->stretch_ns *= 2;
	}
	return &all[(time_ns - traffic->start_ns) / traffic->stretch_ns];
}

static uint64_t end_of(const struct model_traffic *traffic, const struct model_stretch *stretch)
{
	uint64_t n = (uint64_t)(stretch - traffic->stretches) + 1, ns;

	return __builtin_mul_overflow(n, traffic->stretch_ns, &ns)
		       ? UINT64_MAX
		       : add_capped(traffic->start_ns, ns);
}

/* Enters host time from begin_ns on, and what was moved in it, into the stretches that it takes. */
static void spread(struct model_traffic *traffic, uint64_t begin_ns, uint64_t duration_ns,
	uint32_t direction, uint64_t bytes)
{
	uint64_t at_ns = begin_ns, end_ns = add_capped(begin_ns, duration_ns), left = bytes;

	stretch_at(traffic, begin_ns);
	stretch_at(traffic, end_ns); /* from here on none of them changes its length */
	for (;;) {
		struct model_stretch *stretch = stretch_at(traffic, at_ns);
		uint64_t next_ns = end_of(traffic, stretch);
		bool is_last = next_ns >= end_ns;
		uint64_t ns = (is_last ? end_ns : next_ns) - at_ns;
		uint64_t part =
			is_last ? left
				: (uint64_t)((double)bytes * (double)ns / (double)duration_ns);

		if (part > left)
			part = left;
		stretch->host_time_ns = add_capped(stretch->host_time_ns, ns);
		stretch->bytes[direction] = add_capped(stretch->bytes[direction], part);
		if (is_last)
			return;
		left -= part;
		at_ns = next_ns;
	}
}

void traffic_note_copy(
	struct model *model, const struct model_copy *copy, const struct vt_rec_copy *given)
{
	spread(&model->traffic, given->time_ns, given->duration_ns, copy->key.direction,
		given->bytes);
}

static struct model_thread *thread_of(struct model *model, uint32_t tid)
{
	struct model_thread *thread = model->last_thread;

	if (thread && thread->tid == tid)
		return thread;
	HASH_FIND(hh, model->threads, &tid, sizeof(tid), thread);
	if (!thread) {
		thread = memory_new(1, sizeof(*thread));
		thread->tid = tid;
		HASH_ADD(hh, model->threads, tid, sizeof(thread->tid), thread);
	}
	return model->last_thread = thread;
}

/* Whether this small call could have gone with the one before it. */
static bool note_close(struct model *model, struct model_copy *copy, const struct vt_record *record)
{
	const struct vt_rec_copy *given = &record->copy;
	struct model_thread *thread = thread_of(model, record->tid);
	uint64_t *end_ns = &thread->small_end_ns[copy->key.direction], before_ns = *end_ns;

	*end_ns = add_capped(given->time_ns, given->duration_ns);
	if (!before_ns || given->time_ns < before_ns || given->time_ns - before_ns > CLOSE_NS)
		return false;
	copy->close.n++;
	copy->close.bytes = add_capped(copy->close.bytes, given->bytes);
	copy->close.ns = add_capped(copy->close.ns, given->duration_ns);
	return true;
}

static void note_blocked(
	struct model *model, struct model_copy *copy, const struct vt_rec_copy *given)
{
	uint64_t limit_ns;

	if (copy->key.host_kind != MODEL_HOST_PAGEABLE && given->bytes &&
		(!model->submit_ns || given->duration_ns < model->submit_ns))
		model->submit_ns = given->duration_ns ? given->duration_ns : 1;
	limit_ns = model->submit_ns * BLOCKED_TIMES;
	if (limit_ns < BLOCKED_NS)
		limit_ns = BLOCKED_NS;
	if (given->duration_ns <= limit_ns)
		return;
	copy->blocked.n++;
	copy->blocked.bytes = add_capped(copy->blocked.bytes, given->bytes);
	copy->blocked.ns = add_capped(copy->blocked.ns, given->duration_ns);
}

static void note_through(struct model_copy *copy, const struct vt_rec_copy *given)
{
	uint64_t ps;

	copy->through.n++;
	copy->through.bytes = add_capped(copy->through.bytes, given->bytes);
	copy->through.ns = add_capped(copy->through.ns, given->duration_ns);
	if (!given->bytes || __builtin_mul_overflow(given->duration_ns, 1000u, &ps))
		return;
	ps = ps / given->bytes + 1;
	if (!copy->fastest_ps || ps < copy->fastest_ps)
		copy->fastest_ps = ps;
}

static void note_stream(
	struct model *model, struct model_copy *copy, const struct vt_rec_copy *given)
{
	struct model_device *device = model_device_of(model, given->device);

	if (given->flags & VT_COPY_BLOCKING)
		device->blocking_copy_ns = given->time_ns;
	if (!(given->flags & VT_COPY_LEGACY) || !device->blocking_copy_ns ||
		given->time_ns - device->blocking_copy_ns > SERIAL_NS)
		return;
	copy->serial.n++;
	copy->serial.bytes = add_capped(copy->serial.bytes, given->bytes);
}

static struct model_timed *timed_new(
	struct model *model, struct model_copy *copy, const struct vt_rec_copy *given)
{
	struct model_timed *timed;

	HASH_FIND(hh, model->timed, &given->timed_id, sizeof(given->timed_id), timed);
	if (!timed) {
		/* The table is in the order of time. */
		timed = HASH_COUNT(model->timed) < MAX_TIMED ? NULL : model->timed;
		if (timed)
			HASH_DEL(model->timed, timed);
		else
			timed = memory_new(1, sizeof(*timed));
		timed->timed_id = given->timed_id;
		HASH_ADD(hh, model->timed, timed_id, sizeof(timed->timed_id), timed);
	}
	timed->copy = copy;
	timed->bytes = given->bytes;
	return timed;
}

void traffic_begin_call(
	struct model *model, struct model_copy *copy, const struct vt_record *record)
{
	const struct vt_rec_copy *given = &record->copy;
	bool is_async = given->flags & VT_COPY_ASYNC;

	model->last_call.is_close = false;
	model->last_call.timed_id = given->timed_id;
	if (given->bytes <= MODEL_SMALL_COPY_BYTES)
		model->last_call.is_close = note_close(model, copy, record);
	if (is_async) {
		note_blocked(model, copy, given);
		note_stream(model, copy, given);
	}
	model->last_call.is_through = !is_async || copy->key.host_kind == MODEL_HOST_PAGEABLE;
	if (model->last_call.is_through)
		note_through(copy, given);
	if (given->timed_id)
		timed_new(model, copy, given);
}

/* Its first copy was booked as a call of its own. */
void traffic_continue_call(struct model *model, const struct vt_rec_copy *given)
{
	struct model_copy *copy = model->last_call.copy;
	struct model_timed *timed;

	if (model->last_call.is_close) {
		copy->close.n--;
		copy->close.bytes -= model->last_call.first_bytes;
		copy->close.ns -= model->last_call.ns;
		model->last_call.is_close = false;
	}
	if (model->last_call.is_through)
		copy->through.bytes = add_capped(copy->through.bytes, given->bytes);
	if (!model->last_call.timed_id)
		return;
	HASH_FIND(hh, model->timed, &model->last_call.timed_id, sizeof(uint64_t), timed);
	if (timed)
		timed->bytes = add_capped(timed->bytes, given->bytes);
}

static void add_to(struct model_part *part, const struct model_timed *timed, uint64_t ns)
{
	part->n++;
	part->bytes = add_capped(part->bytes, timed->bytes);
	part->ns = add_capped(part->ns, ns);
}

void traffic_apply_copy_time(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_copy_time *given = &record->copy_time;
	struct model_timed *timed;

	HASH_FIND(hh, model->timed, &given->timed_id, sizeof(given->timed_id), timed);
	if (!timed)
		return;
	if (given->gpu_time_ns)
		add_to(&timed->copy->timed, timed, given->gpu_time_ns);
	if (!given->wait_ns)
		return;
	add_to(&timed->copy->waited, timed, given->wait_ns);
	spread(&model->traffic, given->time_ns, given->wait_ns, timed->copy->key.direction, 0);
}

/* cuCtxEnablePeerAccess of what is enabled. */
#define ALREADY_ENABLED 704u

static size_t peer_at(const struct model *model, int64_t device, int64_t peer)
{
	size_t i = 0;

	while (i < model->n_peers &&
		(model->peers[i].device != device || model->peers[i].peer != peer))
		i++;
	return i;
}

bool traffic_has_peer_access(const struct model *model, int device, int peer)
{
	return peer_at(model, device, peer) < model->n_peers ||
	       peer_at(model, peer, device) < model->n_peers;
}

void traffic_apply_peer_access(struct model *model, const struct vt_rec_peer_access *given)
{
	size_t i = peer_at(model, given->device, given->peer);

	if (given->device < 0 || given->peer < 0 || given->device > MODEL_MAX_ORDINAL ||
		given->peer > MODEL_MAX_ORDINAL)
		return;
	if (given->on && i == model->n_peers &&
		(!given->result || given->result == ALREADY_ENABLED)) {
		model->peers = memory_grow(
			model->peers, model->n_peers, &model->peers_room, sizeof(*model->peers));
		model->peers[model->n_peers++] =
			(struct model_peer){(int)given->device, (int)given->peer};
	} else if (!given->on && i < model->n_peers && !given->result) {
		model->peers[i] = model->peers[--model->n_peers];
	}
}
