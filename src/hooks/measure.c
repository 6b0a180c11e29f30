#include "hooks/measure.h"

#include <stdatomic.h>

#include "hooks/contexts.h"
#include "hooks/driver.h"
#include "hooks/sample.h"
#include "record/options.h"

static bool read_free(size_t *free_bytes, size_t *total_bytes)
{
	__typeof__(&cuMemGetInfo_v2) get_info = DRIVER_ORIGINAL(cuMemGetInfo_v2);

	return get_info && !get_info(free_bytes, total_bytes);
}

static bool is_wanted(void)
{
	return !session_thread.depth && session_is_possible() && options.memory_samples &&
	       !sample_captures_open();
}

struct measurement measure_begin(void)
{
	struct measurement before = {0};
	size_t total_bytes;
	int saved = errno;

	if (is_wanted() && session_is_on()) {
		/* A driver call of our own must not be taken for the program's. */
		session_thread.depth++;
		before.n_changes = events_n_changes();
		before.valid = read_free(&before.free_bytes, &total_bytes);
		session_thread.depth--;
	}
	errno = saved;
	return before;
}

void measure_end(const struct call *call, const struct measurement *before, enum vt_cause cause)
{
	uint64_t n_own = cause == VT_CAUSE_GRAPH_EXEC ? 1 : 0; /* the call's own event */
	size_t free_bytes, total_bytes;

	/* Graphs have records of their own for this. */
	if (call->result == CUDA_ERROR_OUT_OF_MEMORY && cause != VT_CAUSE_GRAPH_EXEC)
		event_alloc(call, VT_KIND_NONE, 0, 0, 0, 0);
	if (!before->valid || call->result || call->device < 0 ||
		!read_free(&free_bytes, &total_bytes) ||
		events_n_changes() != before->n_changes + n_own || free_bytes == before->free_bytes)
		return;
	event_untracked(call, cause, call->device, (int64_t)(before->free_bytes - free_bytes));
	event_memory(call->device, free_bytes, total_bytes);
}

#define MAX_DEVICES 64

/* Calls that may make a context, by device: those that began, and those that are under way. */
static _Atomic unsigned int n_begun[MAX_DEVICES], n_open[MAX_DEVICES];

struct context_measurement measure_context_begin(int device, bool primary)
{
	struct context_measurement before = {{false, 0}, 0, 0};
	bool alone;

	if (device < 0 || device >= MAX_DEVICES)
		return before;
	alone = !atomic_fetch_add(&n_open[device], 1);
	before.serial = atomic_fetch_add(&n_begun[device], 1) + 1;
	before.n_changes = events_n_changes();
	/* Looked up only now: whoever made the context alone has said so before its call ended. */
	if (alone && !(primary && contexts_get_primary(device)) && is_wanted()) {
		session_thread.depth++;
		before.reading = nvml_read(device);
		session_thread.depth--;
	}
	return before;
}

void measure_context_end(
	const struct call *call, int device, const struct context_measurement *before)
{
	struct nvml_reading after;

	if (!before->serial)
		return;
	atomic_fetch_sub(&n_open[device], 1);
	if (!before->reading.known || call->result || !call->recorded || !session_is_on() ||
		atomic_load(&n_begun[device]) != before->serial ||
		events_n_changes() != before->n_changes)
		return;
	after = nvml_read(device);
	/* Somebody else had made the context: it was in use before, and is not the others'. */
	if (!after.known || after.used_bytes == before->reading.used_bytes)
		return;
	event_others(device, &(struct event_others){.used_bytes = before->reading.used_bytes});
	event_untracked(call, VT_CAUSE_CONTEXT, device,
		(int64_t)(after.used_bytes - before->reading.used_bytes));
}
