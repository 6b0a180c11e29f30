#include "record/pause.h"

_Atomic int pause_noted;

void pause_note(struct vt_lane *lane, uint64_t monotonic_ns)
{
	int on = pause_is_on(), before = !on;
	struct vt_rec_pause record = {
		.time_ns = vt_writer_time(&session.writer, monotonic_ns),
		.paused = (uint64_t)on,
	};

	/* A call may write several records, and the word may change between two of them. */
	if (record.time_ns < lane->delta.time_ns)
		record.time_ns = lane->delta.time_ns;
	if (atomic_compare_exchange_strong(&pause_noted, &before, on))
		vt_put_pause(lane, &record);
}

void pause_forget(void)
{
	atomic_store_explicit(&pause_noted, 0, memory_order_relaxed);
}
