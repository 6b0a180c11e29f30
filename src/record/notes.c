#include "record/notes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "record/session.h"

enum { NOTE_UNSAID, NOTE_WAITING, NOTE_WRITTEN };

static _Atomic int states[N_NOTES];
static _Atomic uint64_t n_bypassed;

static const char *const texts[N_NOTES] = {
	[NOTE_DEEPBIND_CLEARED] =
		("a library was opened with RTLD_DEEPBIND; the flag was taken out "
		 "so that its CUDA calls are seen "
		 "(VRAMTRACE_DEEPBIND=keep leaves it in)"),
	[NOTE_DEEPBIND_KEPT] = ("a library was opened with RTLD_DEEPBIND, left in by "
				"VRAMTRACE_DEEPBIND=keep: CUDA calls of it and of "
				"its libraries may be missing"),
	[NOTE_BYPASSED] = ("the driver was reached past its hooks: allocations are known only from "
			   "the calls of the runtime, and "
			   "copies are missing"),
	[NOTE_SPARSE] = ("memory mapped into sparse arrays counts while its handle is held, not "
			 "while it is mapped"),
	[NOTE_DECOMPRESSED] =
		"batches were decompressed on the device: what they wrote is not counted",
	[NOTE_TORCH_POOL] = ("PyTorch used a pool that the program made (MemPool): its segments "
			     "look like any others"),
	[NOTE_MANY_STACKS] = ("there were more distinct call stacks than a bounded trace keeps "
			      "(65536): later ones are missing"),
	[NOTE_MANY_POOLS] = "the program told blocks of more pools than are kept apart",
};

static void write_text(const char *text)
{
	struct vt_lane *lane = session_lane(session_clock_ns());
	struct vt_rec_note record = {.text = {text, strlen(text)}};

	if (lane)
		vt_put_note(lane, &record);
}

void notes_say(enum note note)
{
	int unsaid = NOTE_UNSAID;

	if (atomic_compare_exchange_strong(&states[note], &unsaid, NOTE_WAITING) && session_is_on())
		notes_flush();
}

void notes_flush(void)
{
	for (unsigned int i = 0; i < N_NOTES; i++) {
		int waiting = NOTE_WAITING;

		if (atomic_compare_exchange_strong(&states[i], &waiting, NOTE_WRITTEN))
			write_text(texts[i]);
	}
}

void notes_count_bypassed(void)
{
	atomic_fetch_add_explicit(&n_bypassed, 1, memory_order_relaxed);
	notes_say(NOTE_BYPASSED);
}

void notes_finish(void)
{
	uint64_t n = atomic_load_explicit(&n_bypassed, memory_order_relaxed);
	char text[100];

	if (!n)
		return;
	snprintf(text, sizeof(text), "driver hooks were bypassed for %llu runtime call%s",
		(unsigned long long)n, n == 1 ? "" : "s");
	write_text(text);
}

void notes_forget(void)
{
	atomic_store_explicit(&n_bypassed, 0, memory_order_relaxed);
	for (unsigned int i = 0; i < N_NOTES; i++) {
		int written = NOTE_WRITTEN;

		atomic_compare_exchange_strong(&states[i], &written, NOTE_WAITING);
	}
	atomic_store_explicit(&states[NOTE_BYPASSED], NOTE_UNSAID, memory_order_relaxed);
}
