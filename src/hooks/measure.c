#include "hooks/measure.h"

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
	return !session_thread.depth && session_is_possible() && options.memory_samples && !sample_captures_open();
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

	if (!before->valid || call->result || call->device < 0 || !read_free(&free_bytes, &total_bytes) ||
		events_n_changes() != before->n_changes + n_own || free_bytes == before->free_bytes)
		return;
	event_untracked(call, cause, call->device, (int64_t)(before->free_bytes - free_bytes));
	event_memory(call->device, free_bytes, total_bytes);
}

struct nvml_reading measure_context_begin(int device, bool wanted)
{
	struct nvml_reading reading = {false, 0};

	if (wanted && is_wanted()) {
		session_thread.depth++;
		reading = nvml_read(device);
		session_thread.depth--;
	}
	return reading;
}

void measure_context_end(const struct call *call, int device, const struct nvml_reading *before)
{
	struct nvml_reading after;

	if (!before->known || call->result || !call->recorded || !session_is_on())
		return;
	after = nvml_read(device);
	if (!after.known)
		return;
	event_others(device, before->used_bytes);
	event_untracked(call, VT_CAUSE_CONTEXT, device, (int64_t)(after.used_bytes - before->used_bytes));
}
