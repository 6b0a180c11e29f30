/* From records to steps: the order of what PyTorch's allocator was asked for. */
#include "analysis/whatif_recording.h"

#include <stdlib.h>

#include "analysis/whatif_parts.h"
#include "model/blocks.h"
#include "model/hash.h"
#include "model/memory.h"

/* A block that is live, or pending. */
struct live {
	uint64_t address;
	uint32_t block;
	UT_hash_handle hh;
};

struct builder {
	struct whatif_built *built;
	size_t steps_room;
	uint64_t allocator_id;
	uint64_t cap_bytes; /* known from an earlier pass, or from the settings; UINT64_MAX: none */
	uint64_t reserved_bytes; /* at the last report */
	struct whatif_driver driver;
	struct whatif_pools pools;
	struct live *live, *pending;
	size_t n_pending;
	/* Since the last report: events waited for, and memory given back. Only what follows tells
	 * whether it was in the course of a request. */
	uint32_t *ready;
	size_t n_ready, ready_room;
	bool has_waited;
	size_t n_frees_before; /* driver.n_torch_frees at the last report */
	uint64_t last_stream;
	bool streams_missing, outside;
	uint64_t guess_bytes; /* the cap is below this; UINT64_MAX: there is none */
	bool sample_follows;  /* the driver just refused: what it says next is what it has */
};

static struct whatif_step *add_step(struct builder *builder, enum whatif_kind kind)
{
	struct whatif_built *built = builder->built;
	size_t *n = &built->recording.n_steps;

	built->steps = memory_grow(built->steps, *n, &builder->steps_room, sizeof(*built->steps));
	built->steps[*n] = (struct whatif_step){.kind = kind};
	return &built->steps[(*n)++];
}

static void flush_ready(struct builder *builder)
{
	for (size_t i = 0; i < builder->n_ready; i++)
		add_step(builder, WHATIF_READY)->block = builder->ready[i];
	builder->n_ready = 0;
}

static bool has_released(const struct builder *builder)
{
	return builder->has_waited || builder->driver.n_torch_frees != builder->n_frees_before;
}

/* What was given back since the last report was so for its own sake: empty_cache. */
static void end_release(struct builder *builder)
{
	if (has_released(builder))
		add_step(builder, WHATIF_EMPTY_CACHE);
	flush_ready(builder);
	builder->has_waited = false;
	builder->n_frees_before = builder->driver.n_torch_frees;
}

/* Blocks that the model no longer holds as pending are ready. */
static void note_ready(struct builder *builder, const struct model_allocator *allocator)
{
	struct live *live, *next;

	if (!allocator || allocator->pending.n_nodes == builder->n_pending)
		return;
	HASH_ITER(hh, builder->pending, live, next)
	{
		if (tree_find(&allocator->pending, live->address))
			continue;
		builder->ready = memory_grow(builder->ready, builder->n_ready, &builder->ready_room,
			sizeof(*builder->ready));
		builder->ready[builder->n_ready++] = live->block;
		HASH_DEL(builder->pending, live);
		free(live);
		builder->n_pending--;
	}
}

static void apply_event(struct builder *builder, const struct model_allocator *allocator,
	const struct vt_rec_stream_event *given, uint32_t tid)
{
	size_t n_before = builder->n_pending, n_ready = builder->n_ready;

	/* Looked for only at the start of a request: what came before is over. */
	if (given->action == VT_EVENT_QUERIED && allocator &&
		allocator->pending.n_nodes != n_before) {
		whatif_driver_settle(&builder->driver, tid, has_released(builder));
		end_release(builder);
	}
	note_ready(builder, allocator);
	if (given->action != VT_EVENT_SYNCHRONISED)
		flush_ready(builder);
	else if (builder->n_ready != n_ready)
		builder->has_waited = true;
}

static bool has_open(const struct builder *builder, uint32_t tid)
{
	for (size_t i = 0; i < builder->driver.n_open; i++)
		if (builder->driver.open[i].tid == tid)
			return true;
	return false;
}

/* Before the step of a report; new_bytes: what new memory it took or wanted, 0 none. What was given
 * back for its sake is no step, and blocks that became ready then are so after it. */
static void begin_report(struct builder *builder, uint32_t tid, uint64_t new_bytes)
{
	bool refused = has_open(builder, tid);
	bool is_capped = builder->cap_bytes != UINT64_MAX &&
			 builder->reserved_bytes + new_bytes > builder->cap_bytes;
	bool is_collecting = builder->cap_bytes != UINT64_MAX &&
			     builder->built->recording.settings.collection_threshold > 0;

	whatif_driver_settle(&builder->driver, tid, new_bytes || has_released(builder));
	if (!new_bytes || !(refused || is_capped || is_collecting))
		end_release(builder);
}

static void end_report(struct builder *builder, const struct model_allocator *allocator)
{
	flush_ready(builder);
	builder->reserved_bytes = allocator->reserved_bytes;
	builder->has_waited = false;
	builder->n_frees_before = builder->driver.n_torch_frees;
}

static void apply_alloc(struct builder *builder, const struct model_allocator *allocator,
	const struct vt_record *record)
{
	const struct vt_rec_block_alloc *given = &record->block_alloc;
	struct whatif_region *region = whatif_driver_find(&builder->driver, given->address);
	struct whatif_step *step;
	uint64_t new_bytes = 0;
	struct live *live;

	if (!region) {
		builder->outside = true;
		return;
	}
	builder->streams_missing |= region->is_torch && !region->stream_known;
	note_ready(builder, allocator);
	if (whatif_driver_use(&builder->driver, region))
		new_bytes = region->is_range
				    ? allocator_segment_bytes(
					      &builder->built->recording.settings, given->bytes)
				    : region->bytes;
	begin_report(builder, record->tid, new_bytes);
	step = add_step(builder, WHATIF_GET);
	step->block = (uint32_t)builder->built->recording.n_blocks++;
	step->bytes = step->likely_bytes = given->bytes;
	step->address = given->address;
	step->stream = region->stream;
	step->pool = region->pool;
	step->stack_id = given->stack_id;
	step->time_ns = given->time_ns;
	step->is_fresh = new_bytes;
	live = memory_new(1, sizeof(*live));
	live->address = given->address;
	live->block = step->block;
	HASH_ADD(hh, builder->live, address, sizeof(live->address), live);
	builder->last_stream = region->stream;
	end_report(builder, allocator);
}

static void apply_free(struct builder *builder, const struct model_allocator *allocator,
	const struct vt_record *record)
{
	const uint64_t address = record->block_free.address;
	bool is_pending = tree_find(&allocator->pending, address);
	struct whatif_step *step;
	struct live *live;

	HASH_FIND(hh, builder->live, &address, sizeof(address), live);
	if (!live)
		return;
	begin_report(builder, record->tid, 0);
	step = add_step(builder, is_pending ? WHATIF_PUT_PENDING : WHATIF_PUT);
	step->block = live->block;
	step->time_ns = record->block_free.time_ns;
	HASH_DEL(builder->live, live);
	if (is_pending) {
		HASH_ADD(hh, builder->pending, address, sizeof(live->address), live);
		builder->n_pending++;
	} else {
		free(live);
	}
}

static void apply_refused(struct builder *builder, const struct model_allocator *allocator,
	const struct vt_record *record)
{
	const struct vt_rec_block_failure *given = &record->block_failure;
	uint64_t new_bytes =
		allocator_segment_bytes(&builder->built->recording.settings, given->bytes);
	struct whatif_step *step;

	if (!has_open(builder, record->tid) &&
		given->reserved_bytes + new_bytes < builder->guess_bytes)
		builder->guess_bytes = given->reserved_bytes + new_bytes;
	begin_report(builder, record->tid, new_bytes);
	step = add_step(builder, WHATIF_REFUSED);
	step->bytes = step->likely_bytes = given->bytes;
	step->stream = builder->last_stream;
	step->pool = whatif_pools_on(&builder->pools, (int64_t)builder->last_stream, false);
	step->stack_id = given->stack_id;
	step->time_ns = given->time_ns;
	end_report(builder, allocator);
}

/* The block of the last step is the first in memory that belongs to a stream. */
static void apply_stream(struct builder *builder, const struct vt_rec_block_stream *given)
{
	struct whatif_region *region = whatif_driver_find(&builder->driver, given->address);
	struct whatif_built *built = builder->built;
	struct whatif_step *last = &built->steps[built->recording.n_steps - 1];

	if (!region || region->stream_known)
		return;
	region->stream_known = true;
	region->stream = (uint64_t)given->stream;
	region->pool =
		whatif_pools_on(&builder->pools, given->stream, given->flags & VT_STREAM_CAPTURED);
	while (last > built->steps && last->kind != WHATIF_GET)
		last--;
	if (last->address == given->address) {
		last->stream = builder->last_stream = region->stream;
		last->pool = region->pool;
	}
}

static void apply_pools(struct builder *builder, const struct vt_record *record)
{
	struct whatif_step steps[2];
	size_t n;

	if (record->kind == VT_REC_graph_pool &&
		record->graph_pool.action == VT_GRAPH_POOL_USER_MADE)
		builder->built->has_user_pools = true;
	n = whatif_pools_observe(&builder->pools, record, steps);
	if (n)
		end_release(builder);
	for (size_t i = 0; i < n; i++)
		*add_step(builder, steps[i].kind) = steps[i];
}

/* What PyTorch could have had in all when the driver had just refused. */
static void apply_memory(struct builder *builder, const struct model_allocator *allocator,
	const struct vt_rec_memory *given)
{
	if (!builder->sample_follows || given->device != builder->built->device)
		return;
	builder->sample_follows = false;
	if (allocator)
		builder->built->recording.driver_bytes =
			given->free_bytes + allocator->reserved_bytes;
}

static bool is_own(const struct builder *builder, const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_block_alloc:
		return record->block_alloc.allocator_id == builder->allocator_id;
	case VT_REC_block_free:
		return record->block_free.allocator_id == builder->allocator_id;
	case VT_REC_block_failure:
		return record->block_failure.allocator_id == builder->allocator_id;
	case VT_REC_block_stream:
		return record->block_stream.allocator_id == builder->allocator_id;
	default:
		return true;
	}
}

static void observe(void *user, const struct model *model, const struct vt_record *record)
{
	struct builder *builder = user;
	const struct model_allocator *allocator;

	if (!is_own(builder, record))
		return;
	allocator = model_allocator_find(model, builder->allocator_id);
	switch (record->kind) {
	case VT_REC_block_alloc:
		apply_alloc(builder, allocator, record);
		break;
	case VT_REC_block_free:
		apply_free(builder, allocator, record);
		break;
	case VT_REC_block_failure:
		apply_refused(builder, allocator, record);
		break;
	case VT_REC_block_stream:
		if (builder->built->recording.n_steps)
			apply_stream(builder, &record->block_stream);
		break;
	case VT_REC_stream_event:
		apply_event(builder, allocator, &record->stream_event, record->tid);
		break;
	case VT_REC_graph_pool:
	case VT_REC_capture:
		apply_pools(builder, record);
		break;
	case VT_REC_memory:
		apply_memory(builder, allocator, &record->memory);
		break;
	default:
		whatif_driver_observe(&builder->driver, record);
		builder->sample_follows |= record->kind == VT_REC_failure;
		break;
	}
}

static void forget(struct live **all)
{
	struct live *live, *next;

	HASH_ITER(hh, *all, live, next)
	{
		HASH_DEL(*all, live);
		free(live);
	}
}

static void builder_release(struct builder *builder)
{
	forget(&builder->live);
	forget(&builder->pending);
	whatif_driver_release(&builder->driver);
	whatif_pools_release(&builder->pools);
	free(builder->ready);
}

/* Where PyTorch refused without asking the driver, its program set a memory fraction. Any cap
 * between the peak and the least sum that was refused gives the same run; pages of expandable
 * segments may pass a cap. */
static uint64_t guess_cap(const struct builder *builder)
{
	if (builder->guess_bytes == UINT64_MAX)
		return 0;
	return builder->built->recording.settings.expandable ? builder->guess_bytes - 1
							     : builder->built->peak_reserved_bytes;
}

/* The shortest: how they are rounded is not worth a rule. */
static uint64_t find_range_bytes(const struct whatif_recording *recording)
{
	uint64_t least = 0;

	for (size_t i = 0; i < recording->n_answers; i++) {
		const struct whatif_answer *answer = &recording->answers[i];

		if (answer->request == ALLOCATOR_RANGE && answer->address &&
			(!least || answer->bytes < least))
			least = answer->bytes;
	}
	return least;
}

static int pass(struct whatif_built *built, struct replay *replay, uint64_t allocator_id)
{
	struct whatif_recording *recording = &built->recording;
	const struct settings *settings = &recording->settings;
	struct builder builder = {
		.built = built,
		.allocator_id = allocator_id,
		.cap_bytes = recording->cap_bytes ? recording->cap_bytes
			     : settings->memory_fraction < 1
				     ? (uint64_t)(settings->memory_fraction *
						  (double)recording->device_bytes)
				     : UINT64_MAX,
		.driver.device = built->device,
		.guess_bytes = UINT64_MAX,
	};
	int error;

	free(built->steps);
	free(built->answers);
	built->steps = NULL;
	recording->n_steps = recording->n_blocks = 0;
	recording->driver_bytes = 0;
	error = replay_aside(replay, observe, &builder);
	end_release(&builder);
	if (!recording->driver_bytes)
		recording->driver_bytes = recording->device_bytes;
	if (recording->driver_bytes < built->peak_reserved_bytes)
		recording->driver_bytes = built->peak_reserved_bytes;
	recording->steps = built->steps;
	recording->answers = built->answers =
		whatif_driver_answers(&builder.driver, &recording->n_answers);
	recording->range_bytes = find_range_bytes(recording);
	built->n_device_frees = builder.driver.n_segment_frees;
	if (settings->memory_fraction >= 1)
		recording->cap_bytes = guess_cap(&builder);
	if (!error && builder.outside)
		whatif_refuse_outside(built);
	built->streams_known = !builder.streams_missing;
	whatif_note_streams(built);
	builder_release(&builder);
	return error;
}

int whatif_build(struct whatif_built *built, struct replay *replay, int device)
{
	const struct model_allocator *allocator;
	uint64_t allocator_id;
	int error;

	*built = (struct whatif_built){.device = device};
	allocator = whatif_source(built, replay, device);
	if (!allocator)
		return 0;
	allocator_id = allocator->allocator_id;
	error = pass(built, replay, allocator_id);
	/* With a cap, what was given back reads in another way. */
	if (!error && built->recording.cap_bytes) {
		built->cap_is_guessed = true;
		error = pass(built, replay, allocator_id);
	}
	return error;
}
