#include "record/interpreter.h"

#include <stdatomic.h>
#include <string.h>

#include "python/python.h"
#include "record/codes.h"
#include "record/modules.h"
#include "record/options.h"
#include "record/session.h"
#include "trace/writer.h"

enum {
	STATE_ABSENT,
	STATE_LOOKING, /* one thread is at it */
	STATE_FOUND,   /* not checked yet against a real stack */
	STATE_CHECKED,
	STATE_OFF,
};

/* Frames read at a time: the reads of one do not wait for those of another. */
#define BATCH 16u

static _Atomic int state;
static struct python python; /* written while STATE_LOOKING, and its reason before STATE_OFF */
static _Atomic unsigned int looked_at; /* modules_n_opened + 1 when it was looked for last */

/* Each on a line of its own, away from what is only read. */
static struct {
	_Atomic uint64_t n __attribute__((aligned(64)));
} outcomes[VT_N_PYTHON_OUTCOMES];

static void write_python(struct vt_lane *lane, uint64_t time_ns)
{
	struct vt_rec_python record = {
		.time_ns = time_ns,
		.version = python.version,
		.captured = python.is_usable,
		.reason = {python.reason, strlen(python.reason)},
	};

	vt_put_python(lane, &record);
	if (!python.is_usable)
		session_say("no Python stacks: %s", python.reason);
}

static void look(struct vt_lane *lane, uint64_t time_ns)
{
	unsigned int n_opened = atomic_load_explicit(&modules_n_opened, memory_order_acquire) + 1;
	int expected = STATE_ABSENT;
	bool found;

	if (atomic_load_explicit(&looked_at, memory_order_relaxed) == n_opened ||
		!atomic_compare_exchange_strong(&state, &expected, STATE_LOOKING))
		return;
	found = python_find(&python);
	atomic_store_explicit(&looked_at, n_opened, memory_order_relaxed);
	if (found)
		write_python(lane, time_ns);
	atomic_store_explicit(&state,
		!found ? STATE_ABSENT : (python.is_usable ? STATE_FOUND : STATE_OFF),
		memory_order_release);
}

static int current_state(void)
{
	return atomic_load_explicit(&state, memory_order_acquire);
}

bool interpreter_is_known(void)
{
	return current_state() > STATE_LOOKING;
}

const struct python *interpreter_get(void)
{
	int now = current_state();

	return now == STATE_FOUND || now == STATE_CHECKED ? &python : NULL;
}

void interpreter_prepare(void)
{
	uint64_t now_ns = session_clock_ns(), time_ns;
	struct vt_lane *lane;

	if (!options.python_stacks)
		return;
	lane = session_lane(now_ns);
	if (!lane)
		return;
	time_ns = vt_writer_time(&session.writer, now_ns);
	if (interpreter_is_known())
		write_python(lane, time_ns);
	else
		look(lane, time_ns);
}

/* The first capture that finds frames decides whether they are what they should be. */
static bool is_checked(struct vt_lane *lane, uint64_t time_ns)
{
	enum vt_python_outcome outcome = python_check(&python);
	int expected = STATE_FOUND;

	if (outcome == VT_PYTHON_CAPTURED)
		atomic_compare_exchange_strong(&state, &expected, STATE_CHECKED);
	if (outcome != VT_PYTHON_INVALID)
		return true;
	if (atomic_compare_exchange_strong(&state, &expected, STATE_LOOKING)) {
		python.is_usable = false;
		strcpy(python.reason, "the first frames were not what they should be");
		write_python(lane, time_ns);
		atomic_store_explicit(&state, STATE_OFF, memory_order_release);
	}
	return false;
}

void interpreter_count(enum vt_python_outcome outcome, struct vt_lane *lane, uint64_t time_ns)
{
	struct vt_rec_python_stacks record = {.time_ns = time_ns, .outcome = outcome};

	record.count = atomic_fetch_add_explicit(&outcomes[outcome].n, 1, memory_order_relaxed) + 1;
	if (!(record.count & (record.count - 1)))
		vt_put_python_stacks(lane, &record);
}

/* Returns how many words, or -1 when something was not what it should be. */
static int read_frames(struct python_walk *walk, uint64_t *words, size_t max, struct vt_lane *lane)
{
	struct python_frame frames[BATCH];
	size_t n_words = 0, n;

	do {
		n = max - n_words < BATCH ? max - n_words : BATCH;
		n = python_walk_next(&python, walk, frames, n);
		for (size_t i = 0; i < n; i++) {
			uint32_t id = codes_intern(&python, &frames[i].key, lane);

			if (!id)
				return -1;
			words[n_words++] = (uint64_t)id << 32 | frames[i].place;
		}
	} while (n == BATCH && n_words < max);
	return walk->is_invalid ? -1 : (int)n_words;
}

size_t interpreter_capture(
	uint64_t *words, size_t max, bool *is_cut, struct vt_lane *lane, uint64_t time_ns)
{
	int now = current_state(), n_words;
	enum vt_python_outcome outcome;
	struct python_walk walk;

	*is_cut = false;
	if (now == STATE_ABSENT) {
		look(lane, time_ns);
		now = current_state();
	}
	if (now != STATE_CHECKED && (now != STATE_FOUND || !is_checked(lane, time_ns)))
		return 0;
	outcome = python_walk_begin(&python, &walk);
	n_words = outcome == VT_PYTHON_CAPTURED ? read_frames(&walk, words, max, lane) : 0;
	if (n_words < 0)
		outcome = VT_PYTHON_INVALID;
	interpreter_count(outcome, lane, time_ns);
	if (n_words <= 0)
		return 0;
	*is_cut = walk.frame != 0;
	return (size_t)n_words;
}

void interpreter_finish(struct vt_lane *lane, uint64_t time_ns)
{
	for (unsigned int i = 0; i < VT_N_PYTHON_OUTCOMES; i++) {
		struct vt_rec_python_stacks record = {.time_ns = time_ns, .outcome = i};

		record.count = atomic_load_explicit(&outcomes[i].n, memory_order_relaxed);
		if (record.count)
			vt_put_python_stacks(lane, &record);
	}
}

void interpreter_forget(void)
{
	int looking = STATE_LOOKING;

	/* Whoever was looking is not in this process. */
	if (atomic_compare_exchange_strong(&state, &looking, STATE_ABSENT))
		atomic_store_explicit(&looked_at, 0, memory_order_relaxed);
	for (unsigned int i = 0; i < VT_N_PYTHON_OUTCOMES; i++)
		atomic_store_explicit(&outcomes[i].n, 0, memory_order_relaxed);
}
