#include "record/events_block.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "record/events_internal.h"
#include "record/pause.h"
#include "record/session.h"
#include "trace/near.h"
#include "trace/writer.h"

/* The sums are written whole now and then: a reader finds out where reports are missing. */
#define TOTALS_EVERY 1024u

/* What was said of each allocator. The sums are those of its last report; reports with sums do not
 * overlap, so that plain loads and stores are enough. */
static struct {
	_Atomic bool announced;
	_Atomic unsigned int n_reports;
	_Atomic uint64_t allocated_bytes;
	_Atomic uint64_t reserved_bytes;
} books[EVENT_MAX_ALLOCATORS];

struct moment {
	struct vt_lane *lane; /* NULL: nothing is recorded */
	uint64_t time_ns;
};

static struct moment begin(void)
{
	struct moment moment = {0};
	uint64_t now;

	if (!session_is_on())
		return moment;
	now = session_clock_ns();
	moment.lane = session_lane(now);
	if (moment.lane)
		pause_check(moment.lane, now);
	moment.time_ns = vt_writer_time(&session.writer, now);
	return moment;
}

static struct vt_text text_of(const char *text)
{
	return (struct vt_text){text, strlen(text)};
}

static void announce(const struct moment *moment, const struct event_allocator *allocator)
{
	_Atomic bool *announced = &books[allocator->id].announced;
	struct vt_rec_allocator record;

	if (atomic_load_explicit(announced, memory_order_relaxed) ||
		atomic_exchange_explicit(announced, true, memory_order_relaxed))
		return;
	record = (struct vt_rec_allocator){
		.time_ns = moment->time_ns,
		.allocator_id = allocator->id,
		.layer = allocator->layer,
		.device = allocator->device,
		.name = text_of(allocator->name),
		.version = text_of(allocator->version),
		.path = text_of(allocator->path),
	};
	vt_put_allocator(moment->lane, &record);
}

static struct moment begin_of(const struct event_allocator *allocator)
{
	struct moment moment = begin();

	if (moment.lane)
		announce(&moment, allocator);
	return moment;
}

struct jumps {
	int64_t allocated;
	int64_t reserved;
};

/* How much the sums differ from those of the report before and this block, of which bytes came or
 * went. Nearly always nothing: cheap to write, and easy to check. */
static struct jumps jumps_of(const struct moment *moment, const struct event_allocator *allocator,
	int64_t bytes, const struct event_totals *totals)
{
	__typeof__(&books[0]) book = &books[allocator->id];
	unsigned int n = atomic_load_explicit(&book->n_reports, memory_order_relaxed);
	struct jumps jumps;

	if (!totals)
		return (struct jumps){0, 0};
	jumps.allocated =
		(int64_t)(totals->allocated_bytes - (uint64_t)bytes -
			  atomic_load_explicit(&book->allocated_bytes, memory_order_relaxed));
	jumps.reserved =
		(int64_t)(totals->reserved_bytes -
			  atomic_load_explicit(&book->reserved_bytes, memory_order_relaxed));
	atomic_store_explicit(
		&book->allocated_bytes, totals->allocated_bytes, memory_order_relaxed);
	atomic_store_explicit(&book->reserved_bytes, totals->reserved_bytes, memory_order_relaxed);
	atomic_store_explicit(&book->n_reports, n + 1, memory_order_relaxed);
	if (n % TOTALS_EVERY == 0) {
		struct vt_rec_block_totals record = {
			.time_ns = moment->time_ns,
			.allocator_id = allocator->id,
			.allocated_bytes = totals->allocated_bytes,
			.reserved_bytes = totals->reserved_bytes,
		};

		vt_put_block_totals(moment->lane, &record);
	}
	return jumps;
}

void event_block_alloc(const struct event_allocator *allocator, uint64_t address, uint64_t bytes,
	const struct event_totals *totals)
{
	struct moment moment = begin_of(allocator);
	struct vt_rec_block_alloc record;
	struct jumps jumps;

	if (!moment.lane)
		return;
	record = (struct vt_rec_block_alloc){
		.time_ns = moment.time_ns,
		.allocator_id = allocator->id,
		.address = address,
		.bytes = bytes,
		.stack_id = current_stack(moment.lane, moment.time_ns),
	};
	/* Right before the record: the two stand together. */
	jumps = jumps_of(&moment, allocator, (int64_t)bytes, totals);
	record.allocated_jump = jumps.allocated;
	record.reserved_jump = jumps.reserved;
	vt_near_put_alloc(moment.lane, &record);
}

void event_block_free(const struct event_allocator *allocator, uint64_t address, uint64_t bytes,
	const struct event_totals *totals)
{
	struct moment moment = begin_of(allocator);
	struct vt_rec_block_free record;
	struct jumps jumps;

	if (!moment.lane)
		return;
	jumps = jumps_of(&moment, allocator, -(int64_t)bytes, totals);
	record = (struct vt_rec_block_free){
		.time_ns = moment.time_ns,
		.allocator_id = allocator->id,
		.address = address,
		.bytes = bytes,
		.allocated_jump = jumps.allocated,
		.reserved_jump = jumps.reserved,
	};
	vt_near_put_free(moment.lane, &record);
}

void event_block_failure(
	const struct event_allocator *allocator, uint64_t bytes, const struct event_totals *totals)
{
	struct moment moment = begin_of(allocator);
	struct vt_rec_block_failure record;

	if (!moment.lane)
		return;
	record = (struct vt_rec_block_failure){
		.time_ns = moment.time_ns,
		.allocator_id = allocator->id,
		.bytes = bytes,
		.allocated_bytes = totals->allocated_bytes,
		.reserved_bytes = totals->reserved_bytes,
		.stack_id = stack_of_refusal(moment.lane, moment.time_ns),
	};
	vt_put_block_failure(moment.lane, &record);
}

void event_block_stream(const struct event_allocator *allocator, uint64_t address, int64_t stream,
	unsigned int flags)
{
	struct moment moment = begin_of(allocator);
	struct vt_rec_block_stream record = {
		.time_ns = moment.time_ns,
		.allocator_id = allocator->id,
		.address = address,
		.stream = stream,
		.flags = flags,
	};

	if (moment.lane)
		vt_put_block_stream(moment.lane, &record);
}

void event_block_wait(const struct event_wait *wait)
{
	struct moment moment = begin();
	struct vt_rec_stream_event record = {
		.time_ns = moment.time_ns,
		.action = VT_EVENT_WAIT,
		.event = wait->event,
		.stream = wait->stream,
		.address = wait->address,
		.caller = wait->caller,
		.distance = wait->distance,
	};

	if (moment.lane)
		vt_put_stream_event(moment.lane, &record);
}

void event_stream_done(enum vt_event_action action, uint64_t event)
{
	struct moment moment = begin();
	struct vt_rec_stream_event record = {
		.time_ns = moment.time_ns, .action = action, .event = event};

	if (moment.lane)
		vt_put_stream_event(moment.lane, &record);
}

void event_graph_pool(const struct event_graph_pool *pool)
{
	struct moment moment = begin();
	struct vt_rec_graph_pool record = {
		.time_ns = moment.time_ns,
		.action = pool->action,
		.object = pool->object,
		.first = pool->first,
		.second = pool->second,
		.stream = pool->stream,
	};

	if (moment.lane)
		vt_put_graph_pool(moment.lane, &record);
}

void events_block_forget(void)
{
	memset(books, 0, sizeof(books));
}
