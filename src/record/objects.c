#include "record/objects.h"

#include <stdatomic.h>

static struct {
	_Atomic uint64_t n_created, n_destroyed;
	_Atomic uint64_t n_told; /* their sum, as last written */
} counts[VT_N_OBJECTS];

void objects_created(const struct call *call, enum vt_object object)
{
	if (call->recorded && !call->result)
		atomic_fetch_add_explicit(&counts[object].n_created, 1, memory_order_relaxed);
}

void objects_destroyed(const struct call *call, enum vt_object object)
{
	if (call->recorded && !call->result)
		atomic_fetch_add_explicit(&counts[object].n_destroyed, 1, memory_order_relaxed);
}

/* Of two threads that write at the same time the one with the lower counts may be the later one. */
static void write_one(enum vt_object object)
{
	struct vt_rec_objects record = {.sort = object,
		.destroyed =
			atomic_load_explicit(&counts[object].n_destroyed, memory_order_relaxed),
		.created = atomic_load_explicit(&counts[object].n_created, memory_order_relaxed)};
	uint64_t n = record.created + record.destroyed;
	uint64_t told = atomic_load_explicit(&counts[object].n_told, memory_order_relaxed);
	struct vt_lane *lane;

	if (n <= told || !atomic_compare_exchange_strong_explicit(&counts[object].n_told, &told, n,
				 memory_order_relaxed, memory_order_relaxed))
		return;
	lane = session_lane(session_clock_ns());
	record.time_ns = vt_writer_time(&session.writer, session_clock_ns());
	if (lane)
		vt_put_objects(lane, &record);
}

void objects_write(void)
{
	for (unsigned int object = 0; object < VT_N_OBJECTS; object++)
		write_one((enum vt_object)object);
}

void objects_forget(void)
{
	for (unsigned int object = 0; object < VT_N_OBJECTS; object++) {
		atomic_store_explicit(&counts[object].n_created, 0, memory_order_relaxed);
		atomic_store_explicit(&counts[object].n_destroyed, 0, memory_order_relaxed);
		atomic_store_explicit(&counts[object].n_told, 0, memory_order_relaxed);
	}
}
