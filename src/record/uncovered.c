#include "record/uncovered.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "record/session.h"
#include "vramtrace/memory_names.h"

#define MAX_NAMES 256u

static struct uncovered_name {
	_Atomic int state; /* 0 free, 1 being filled, 2 kept, 3 written */
	char name[60];
} names[MAX_NAMES];

void uncovered_note(const char *name)
{
	size_t bytes = strlen(name);

	if (!vt_name_is_memory_call(name) || bytes >= sizeof(names[0].name))
		return;
	for (size_t i = 0; i < MAX_NAMES; i++) {
		int state = atomic_load_explicit(&names[i].state, memory_order_acquire);

		if (state >= 2 && !strcmp(names[i].name, name))
			return;
		if (state || !atomic_compare_exchange_strong(&names[i].state, &state, 1))
			continue;
		memcpy(names[i].name, name, bytes + 1);
		atomic_store_explicit(&names[i].state, 2, memory_order_release);
		break;
	}
	if (session_is_on())
		uncovered_flush();
}

void uncovered_flush(void)
{
	struct vt_lane *lane = session_lane(session_clock_ns());

	for (size_t i = 0; lane && i < MAX_NAMES; i++) {
		int kept = 2;
		struct vt_rec_uncovered record;

		if (!atomic_compare_exchange_strong(&names[i].state, &kept, 3))
			continue;
		record.name = (struct vt_text){names[i].name, strlen(names[i].name)};
		vt_put_uncovered(lane, &record);
	}
}

void uncovered_forget(void)
{
	for (size_t i = 0; i < MAX_NAMES; i++)
		if (atomic_load(&names[i].state) == 3)
			atomic_store(&names[i].state, 2);
}
