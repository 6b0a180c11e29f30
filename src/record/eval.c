#include "record/eval.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "python/python.h"
#include "record/interpreter.h"
#include "record/native.h"
#include "record/options.h"
#include "record/stack.h"
#include "trace/writer.h"

#define MAX_RANGES 16u
/* Slow unwindings, in the life of a process. */
#define MAX_LESSONS 64u
#define MAX_STEPS   (OPTIONS_MAX_DEPTH + NATIVE_OWN_FRAMES)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	_Atomic uint64_t start, end; /* written under lock, before n_ranges */
} ranges[MAX_RANGES];
static _Atomic unsigned int n_ranges; /* written under lock */
static _Atomic unsigned int n_lessons;

/* Whether the call that returns to address is in the loop. */
static bool is_known(uint64_t address)
{
	unsigned int n = atomic_load_explicit(&n_ranges, memory_order_acquire);

	for (unsigned int i = 0; i < n; i++)
		if (address - 1 >= atomic_load_explicit(&ranges[i].start, memory_order_relaxed) &&
			address - 1 < atomic_load_explicit(&ranges[i].end, memory_order_relaxed))
			return true;
	return false;
}

static bool is_complete(struct stack *stack)
{
	const uint64_t *native = stack->native.frames, *frames = stack_python(stack);
	size_t n_known = 0, n_entries = 0;

	for (size_t i = 0; i < stack->native.n_frames; i++)
		n_known += is_known(native[i]);
	for (size_t i = 0; i < stack->n_python; i++)
		n_entries += (frames[i] & VT_PYTHON_ENTRY) != 0;
	return n_known >= n_entries;
}

static void add(uint64_t start, uint64_t end, struct vt_lane *lane, uint64_t time_ns)
{
	struct vt_rec_eval_range record = {.time_ns = time_ns, .start = start, .end = end};
	unsigned int n;
	bool is_new;

	pthread_mutex_lock(&lock);
	n = atomic_load_explicit(&n_ranges, memory_order_relaxed);
	is_new = n < MAX_RANGES && !is_known(start + 1);
	if (is_new) {
		atomic_store_explicit(&ranges[n].start, start, memory_order_relaxed);
		atomic_store_explicit(&ranges[n].end, end, memory_order_relaxed);
		atomic_store_explicit(&n_ranges, n + 1, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	if (is_new)
		vt_put_eval_range(lane, &record);
}

/* Whether frame, whose memory ends where next's begins, is a call of the loop. */
static bool is_marked(const struct python *python, const struct native_frame *frame,
	const struct native_frame *next, const uint64_t *marks, size_t n_marks)
{
	/* Before 3.10 the loop leaves no mark, and was compiled into one piece. */
	if (!python->layout.thread_cframe && python->layout.chain == PYTHON_FRAME_OBJECTS)
		return frame->address - 1 >= python->eval_start &&
		       frame->address - 1 < python->eval_end;
	for (size_t i = 0; i < n_marks; i++)
		if (frame->stack <= marks[i] && marks[i] < next->stack)
			return true;
	return false;
}

static void learn(const struct python *python, struct vt_lane *lane, uint64_t time_ns)
{
	struct native_frame frames[MAX_STEPS];
	uint64_t marks[OPTIONS_MAX_DEPTH], start, end;
	size_t n_frames = native_step(frames, MAX_STEPS);
	size_t n_marks = python_marks(python, marks, OPTIONS_MAX_DEPTH);

	for (size_t i = 0; i + 1 < n_frames; i++)
		if (!is_known(frames[i].address) &&
			is_marked(python, &frames[i], &frames[i + 1], marks, n_marks) &&
			native_code_around(frames[i].address - 1, &start, &end))
			add(start, end, lane, time_ns);
}

void eval_check(struct stack *stack, struct vt_lane *lane, uint64_t time_ns)
{
	const struct python *python = interpreter_get();

	if (!python || !stack->native.n_frames || !stack->n_python ||
		stack->flags & VT_STACK_NATIVE_CUT || is_complete(stack))
		return;
	if (atomic_fetch_add_explicit(&n_lessons, 1, memory_order_relaxed) < MAX_LESSONS) {
		learn(python, lane, time_ns);
		if (is_complete(stack))
			return;
	}
	interpreter_count(VT_PYTHON_MISMATCH, lane, time_ns);
}

void eval_forget(void)
{
	pthread_mutex_init(&lock, NULL);
	atomic_store_explicit(&n_ranges, 0, memory_order_relaxed);
	atomic_store_explicit(&n_lessons, 0, memory_order_relaxed);
}
