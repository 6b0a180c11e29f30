#include "analysis/episodes.h"

#include <stdlib.h>

#include "model/blocks.h"
#include "model/memory.h"

/* An allocator may wait for streams and give back segments between two tries, but not longer. */
#define LONGEST_PAUSE_NS 1000000000u

/* One and the same call of a program: stacks that differ in so many of their innermost frames. */
#define MAX_OWN_FRAMES 12u

struct episode_thread {
	uint32_t tid;
	bool open;	      /* more may belong to `current` */
	bool awaiting;	      /* the driver is about to say what is free */
	bool waits_ended;     /* since its last block */
	size_t current;	      /* index of an episode */
	uint64_t had_address; /* where memory of its kind and size was had at last */
	uint64_t had_bytes;
	uint64_t last_ns;
	UT_hash_handle hh;
};

static struct episode_thread *thread_of(struct episodes *episodes, uint32_t tid)
{
	struct episode_thread *thread;

	HASH_FIND(hh, episodes->threads, &tid, sizeof(tid), thread);
	if (thread)
		return thread;
	thread = memory_new(1, sizeof(*thread));
	thread->tid = tid;
	HASH_ADD(hh, episodes->threads, tid, sizeof(thread->tid), thread);
	return thread;
}

static int device_of(const struct model *model, int64_t ordinal)
{
	const struct model_device *device = ordinal >= 0 && ordinal <= INT32_MAX
						    ? model_device_find(model, (int)ordinal)
						    : NULL;

	if (device)
		return device->ordinal;
	return model->n_devices == 1 && model->n_described == 1 ? model->devices[0]->ordinal
								: MODEL_DEVICE_UNKNOWN;
}

static void copy_recent(struct episode *episode, const struct episodes *episodes)
{
	size_t n = episodes->n_recent < EPISODES_N_EVENTS ? episodes->n_recent : EPISODES_N_EVENTS;

	for (size_t i = 0; i < n; i++)
		episode->events[i] =
			episodes->recent[(episodes->n_recent - n + i) % EPISODES_N_EVENTS];
	episode->n_events = n;
}

/* The one slot that all beyond the limit share may be another thread's. */
static struct episode *current_of(struct episodes *episodes, const struct episode_thread *thread)
{
	struct episode *episode = thread->open ? &episodes->items[thread->current] : NULL;

	return episode && episode->tid == thread->tid ? episode : NULL;
}

static struct episode *begin(
	struct episodes *episodes, struct episode_thread *thread, const struct episode *refused)
{
	struct episode *episode;

	if (episodes->n_items == EPISODES_MAX) {
		episode = &episodes->items[EPISODES_MAX - 1];
	} else {
		episodes->items = memory_grow(episodes->items, episodes->n_items, &episodes->room,
			sizeof(*episodes->items));
		episode = &episodes->items[episodes->n_items++];
	}
	episodes->n_in_all++;
	thread->had_bytes = 0;
	*episode = *refused;
	copy_recent(episode, episodes);
	thread->current = (size_t)(episode - episodes->items);
	thread->open = true;
	return episode;
}

static bool same_request(const struct episode *a, const struct episode *b)
{
	return a->want == b->want && a->device == b->device && a->kind == b->kind &&
	       a->bytes == b->bytes;
}

/* A call that the driver refused. */
static void refuse(
	struct episodes *episodes, struct episode_thread *thread, const struct episode *refused)
{
	struct episode *episode = current_of(episodes, thread);

	if (episode && same_request(episode, refused)) {
		uint64_t n_calls = episode->n_calls;

		episode->api_id = refused->api_id;
		episode->caller_api = refused->caller_api;
		episode->stack_id = refused->stack_id;
		episode->last_ns = refused->last_ns;
		episode->moment = refused->moment;
		episode->n_calls = n_calls + 1;
		episode->sampled = false;
		episode->recovered = false;
	} else {
		begin(episodes, thread, refused);
	}
	thread->awaiting = true;
}

/* Memory of the kind and size that was refused has been had. */
static void succeed(struct episodes *episodes, struct episode_thread *thread,
	const struct episode *wanted, uint64_t address)
{
	struct episode *episode = current_of(episodes, thread);

	if (!episode)
		return;
	if (!same_request(episode, wanted)) {
		thread->open = false;
		return;
	}
	/* Not for sure yet: of memory that comes page by page a later one may be refused. */
	episode->recovered = true;
	thread->had_address = address;
	thread->had_bytes = wanted->bytes;
}

static void note_sample(struct episodes *episodes, struct episode_thread *thread,
	const struct model *model, const struct vt_record *record)
{
	struct episode *episode = current_of(episodes, thread);

	int device = device_of(model, record->memory.device);

	if (!thread->awaiting || !episode)
		return;
	thread->awaiting = false;
	/* Address space is of no device: what is said is of that of the caller's context. */
	if (episode->device == MODEL_DEVICE_UNKNOWN)
		episode->device = device;
	if (episode->device != device)
		return;
	episode->sampled = true;
	episode->free_bytes = record->memory.free_bytes;
	episode->total_bytes = record->memory.total_bytes;
	episode->moment.time_ns = record->time_ns;
}

/* A record of the trace in the terms of an episode: what it asks for, and whether it was refused.
 */
struct ask {
	struct episode wanted;
	bool refused;
};

static void ask_alloc(struct ask *ask, const struct vt_rec_alloc *alloc)
{
	ask->wanted.want = alloc->kind == VT_KIND_PINNED || alloc->kind == VT_KIND_REGISTERED
				   ? EPISODE_HOST
				   : EPISODE_MEMORY;
	ask->wanted.kind = (uint32_t)alloc->kind;
	ask->wanted.bytes = alloc->bytes;
}

static void ask_failure(struct ask *ask, const struct vt_rec_failure *failure)
{
	ask->refused = failure->result == VT_RESULT_OUT_OF_MEMORY;
	ask->wanted = (struct episode){
		.want = failure->kind == VT_KIND_PINNED || failure->kind == VT_KIND_REGISTERED
				? EPISODE_HOST
			: failure->kind == VT_KIND_NONE ? EPISODE_CODE
							: EPISODE_MEMORY,
		.api_id = failure->api_id,
		.caller_api = failure->caller_api,
		.kind = (uint32_t)failure->kind,
		.bytes = failure->bytes,
		.stack_id = failure->stack_id,
		.pool = failure->pool,
		.stream = failure->stream,
	};
}

static void ask_other(struct ask *ask, const struct vt_record *record)
{
	struct episode *wanted = &ask->wanted;
	uint64_t result = 0;

	switch (record->kind) {
	case VT_REC_reserve:
		result = record->reserve.result;
		*wanted = (struct episode){.want = EPISODE_ADDRESS_SPACE,
			.api_id = record->reserve.api_id,
			.bytes = record->reserve.bytes,
			.stack_id = record->reserve.stack_id};
		break;
	case VT_REC_map:
		result = record->map.result;
		*wanted = (struct episode){.want = EPISODE_MEMORY,
			.api_id = record->map.api_id,
			.kind = VT_KIND_VMM,
			.bytes = record->map.bytes,
			.stack_id = record->map.stack_id};
		break;
	case VT_REC_graph_alloc:
		result = record->graph_alloc.result;
		*wanted = (struct episode){.want = EPISODE_GRAPH,
			.api_id = record->graph_alloc.api_id,
			.bytes = record->graph_alloc.bytes,
			.stack_id = record->graph_alloc.stack_id};
		break;
	case VT_REC_context:
		result = record->context.result;
		*wanted =
			(struct episode){.want = EPISODE_CONTEXT, .api_id = record->context.api_id};
		break;
	default: /* VT_REC_graph */
		result = record->graph.result;
		*wanted = (struct episode){.want = EPISODE_GRAPH,
			.api_id = record->graph.api_id,
			.stack_id = record->graph.stack_id};
		break;
	}
	ask->refused = result == VT_RESULT_OUT_OF_MEMORY;
}

static int64_t ordinal_in(const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_alloc:
		return record->alloc.device;
	case VT_REC_handle_create:
		return record->handle_create.device;
	case VT_REC_failure:
		return record->failure.device;
	case VT_REC_context:
		return record->context.device;
	case VT_REC_graph_alloc:
		return record->graph_alloc.device;
	case VT_REC_graph:
		return record->graph.device;
	default:
		return MODEL_DEVICE_UNKNOWN;
	}
}

static bool is_ask(enum vt_record_kind kind)
{
	switch (kind) {
	case VT_REC_alloc:
	case VT_REC_handle_create:
	case VT_REC_failure:
	case VT_REC_reserve:
	case VT_REC_map:
	case VT_REC_context:
	case VT_REC_graph_alloc:
	case VT_REC_graph:
		return true;
	default:
		return false;
	}
}

static void ask_of(struct ask *ask, const struct model *model, const struct vt_record *record)
{
	*ask = (struct ask){0};
	switch (record->kind) {
	case VT_REC_alloc:
		ask_alloc(ask, &record->alloc);
		break;
	case VT_REC_handle_create:
		ask->wanted = (struct episode){.want = EPISODE_MEMORY,
			.kind = VT_KIND_VMM,
			.bytes = record->handle_create.bytes};
		break;
	case VT_REC_failure:
		ask_failure(ask, &record->failure);
		break;
	default:
		ask_other(ask, record);
		break;
	}
	ask->wanted.device = ask->wanted.want == EPISODE_HOST
				     ? MODEL_DEVICE_HOST
				     : device_of(model, ordinal_in(record));
	ask->wanted.tid = record->tid;
	ask->wanted.first_ns = ask->wanted.last_ns = record->time_ns;
	ask->wanted.n_calls = 1;
	ask->wanted.moment = (struct replay_moment){
		.at = REPLAY_AT_RECORD, .time_ns = record->time_ns, .tid = record->tid};
}

static bool is_wait_end(const struct vt_record *record)
{
	return record->kind == VT_REC_stream_event && record->stream_event.action != VT_EVENT_WAIT;
}

/* An allocator says that it has nothing for a request. What the driver refused this thread just
 * before was for that. */
static void report(struct episodes *episodes, struct episode_thread *thread,
	const struct model *model, const struct vt_record *record)
{
	const struct vt_rec_block_failure *given = &record->block_failure;
	const struct model_allocator *allocator = model_allocator_find(model, given->allocator_id);
	struct episode *episode = current_of(episodes, thread);

	if (!episode)
		episode = begin(episodes, thread,
			&(struct episode){.want = EPISODE_MEMORY,
				.device = allocator ? allocator->device : MODEL_DEVICE_UNKNOWN,
				.tid = record->tid,
				.first_ns = record->time_ns,
				.bytes = given->bytes,
				.stack_id = given->stack_id});
	episode->reported = true;
	episode->recovered = false;
	episode->allocator_id = given->allocator_id;
	episode->report_bytes = given->bytes;
	episode->report_stack_id = given->stack_id;
	episode->waits_ended = thread->waits_ended;
	episode->last_ns = record->time_ns;
	episode->moment = (struct replay_moment){
		.at = REPLAY_AT_RECORD, .time_ns = record->time_ns, .tid = record->tid};
	thread->open = false;
}

/* Whether two stacks are of one call of a program: outside of the innermost frames they are the
 * same. */
static bool are_one_call(const struct model *model, uint64_t stack_id, uint64_t other_id)
{
	const struct model_stack *a = model_stack_find(model, stack_id);
	const struct model_stack *b = model_stack_find(model, other_id);
	size_t n = 0;

	if (!a || !b || !a->n_frames || !b->n_frames)
		return false;
	while (n < a->n_frames && n < b->n_frames &&
		a->frames[a->n_frames - 1 - n] == b->frames[b->n_frames - 1 - n])
		n++;
	return n && n >= a->n_frames / 2 && n >= b->n_frames / 2 &&
	       a->n_frames - n <= MAX_OWN_FRAMES && b->n_frames - n <= MAX_OWN_FRAMES;
}

/* An allocator hands out a block: if it lies in what was had after the refusal, or the call that it
 * is for was refused memory before, the allocator was who asked, and has found some. */
static void hand_out(struct episodes *episodes, struct episode_thread *thread,
	const struct model *model, const struct vt_record *record)
{
	const struct vt_rec_block_alloc *block = &record->block_alloc;
	struct episode *episode = current_of(episodes, thread);
	bool there = block->address - thread->had_address < thread->had_bytes;

	if (episode && ((episode->recovered && there) ||
			       are_one_call(model, episode->stack_id, block->stack_id))) {
		episode->recovered = true;
		episode->allocator_id = block->allocator_id;
		episode->waits_ended = thread->waits_ended;
	}
	thread->open = false;
}

/* What an allocator never does between two tries for the same memory. */
static bool is_other_work(enum vt_record_kind kind)
{
	switch (kind) {
	case VT_REC_copy:
	case VT_REC_set:
	case VT_REC_migrate:
	case VT_REC_graph:
		return true;
	default:
		return false;
	}
}

/* What is worth showing of what led to an episode. */
static bool is_recent_event(enum vt_record_kind kind)
{
	switch (kind) {
	case VT_REC_copy:
	case VT_REC_set:
	case VT_REC_access:
	case VT_REC_untracked:
	case VT_REC_memory:
	case VT_REC_pool_memory:
	case VT_REC_graph_memory:
	case VT_REC_others:
		return false;
	default:
		return (kind >= VT_REC_alloc && kind < VT_REC_allocator) ||
		       kind == VT_REC_block_alloc || kind == VT_REC_block_free ||
		       kind == VT_REC_block_failure;
	}
}

/* A record of a thread that may have something to do with an episode. refused: what the driver did
 * not give, NULL: nothing; wanted: what the record asks for, if anything. */
static void follow(struct episodes *episodes, const struct model *model,
	const struct vt_record *record, const struct episode *refused, const struct episode *wanted)
{
	struct episode_thread *thread = thread_of(episodes, record->tid);

	if (record->time_ns - thread->last_ns > LONGEST_PAUSE_NS ||
		(is_other_work(record->kind) && !refused))
		thread->open = false;
	thread->last_ns = record->time_ns;
	if (refused)
		refuse(episodes, thread, refused);
	else if (record->kind == VT_REC_alloc)
		succeed(episodes, thread, wanted, record->alloc.address);
	else if (record->kind == VT_REC_handle_create)
		succeed(episodes, thread, wanted, 0);
	else if (record->kind == VT_REC_memory)
		note_sample(episodes, thread, model, record);
	else if (record->kind == VT_REC_block_failure)
		report(episodes, thread, model, record);
	else if (record->kind == VT_REC_block_alloc)
		hand_out(episodes, thread, model, record);
	if (is_wait_end(record))
		thread->waits_ended = true;
	else if (record->kind == VT_REC_block_alloc || record->kind == VT_REC_block_free ||
		 record->kind == VT_REC_block_failure)
		thread->waits_ended = false;
}

/* Nearly all records are of threads that were never refused anything. */
static bool is_followed(const struct episodes *episodes, const struct vt_record *record)
{
	return episodes->threads || is_wait_end(record) || record->kind == VT_REC_block_failure;
}

/* Apart from the rest: what it asks for is large, and most records ask for nothing. */
static void observe_ask(
	struct episodes *episodes, const struct model *model, const struct vt_record *record)
{
	struct ask ask;

	ask_of(&ask, model, record);
	if (ask.refused || is_followed(episodes, record))
		follow(episodes, model, record, ask.refused ? &ask.wanted : NULL, &ask.wanted);
}

void episodes_observe(
	struct episodes *episodes, const struct model *model, const struct vt_record *record)
{
	if (!model_is_event(record) || record->kind > VT_REC_graph_pool)
		return;
	if (is_ask(record->kind))
		observe_ask(episodes, model, record);
	else if (is_followed(episodes, record))
		follow(episodes, model, record, NULL, NULL);
	if (is_recent_event(record->kind))
		episodes->recent[episodes->n_recent++ % EPISODES_N_EVENTS] = *record;
}

void episodes_release(struct episodes *episodes)
{
	while (episodes->threads) {
		struct episode_thread *thread = episodes->threads;

		HASH_DEL(episodes->threads, thread);
		free(thread);
	}
	free(episodes->items);
	*episodes = (struct episodes){0};
}
