#include "record/unwind/unwind.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "record/unwind/area.h"
#include "record/unwind/code.h"
#include "record/unwind/memo.h"
#include "record/unwind/pages.h"
#include "record/unwind/row.h"
#include "record/unwind/rows.h"
#include "record/unwind/walk.h"

#define SEEN_BITS 65536u
#define MAX_SEEN  (SEEN_BITS / 16)

/* A walk costs about four looks into a chain. */
#define LUCK_GAIN 4u
#define MAX_LUCK  64u

/* What one thread has learnt. */
struct context {
	struct context *next_idle; /* idle_lock */
	uint64_t word;		   /* code_word, no closers, that all of it belongs to */
	struct memo_table *memos;
	struct rows rows;
	struct area area;
	uint32_t luck; /* with chains: 0 when they hardly ever have what is looked for */
	uint32_t n_seen;
	uint64_t seen[SEEN_BITS / 64]; /* walks seen once: a bit each, by hash */
	struct trail trail;	       /* of the last walk */
};

/* A thread's way to it. */
struct unwind_thread {
	uint64_t
		word; /* code_word with which the memos count; 0: they do not, ask capture_slowly */
	struct memo_table *memos;
	struct context *context;
	bool busy; /* inside capture_slowly */
};

static __thread struct unwind_thread this_thread __attribute__((tls_model("initial-exec")));

static struct unwind_setup setup;
static struct walk_limits limits;

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf */
static struct context *idle;				      /* idle_lock */

void unwind_init(const struct unwind_setup *given)
{
	setup = *given;
	limits =
		(struct walk_limits){(uint32_t)given->max_frames, given->own_start, given->own_end};
	code_init();
}

static struct context *make_context(void)
{
	struct context *context = pages_take(sizeof(*context));

	if (!context)
		return NULL;
	memset(context, 0, offsetof(struct context, trail));
	rows_init(&context->rows, code_row);
	context->memos = memo_new();
	if (context->memos && rows_prepare(&context->rows))
		return context;
	if (context->memos)
		memo_free(context->memos);
	pages_give(context, sizeof(*context));
	return NULL;
}

static struct context *take_context(void)
{
	struct context *context;

	pthread_mutex_lock(&idle_lock);
	context = idle;
	if (context)
		idle = context->next_idle;
	pthread_mutex_unlock(&idle_lock);
	if (!context)
		return make_context();
	context->area = (struct area){0};
	return context;
}

void unwind_thread_ended(void)
{
	struct context *context = this_thread.context;

	if (!context || this_thread.busy)
		return;
	this_thread = (struct unwind_thread){.busy = true};
	atomic_signal_fence(memory_order_seq_cst);
	pthread_mutex_lock(&idle_lock);
	context->next_idle = idle;
	idle = context;
	pthread_mutex_unlock(&idle_lock);
	atomic_signal_fence(memory_order_seq_cst);
	this_thread.busy = false;
}

void unwind_forget(void)
{
	pthread_mutex_init(&idle_lock, NULL);
	idle = NULL;
	pages_forget();
	code_forget();
}

static void forget_seen(struct context *context)
{
	memset(context->seen, 0, sizeof(context->seen));
	context->n_seen = 0;
}

static void forget_code(struct context *context, uint64_t word)
{
	memo_clear(context->memos);
	rows_clear(&context->rows);
	forget_seen(context);
	context->word = word;
}

/* A walk is worth remembering when it comes a second time. */
static bool is_seen_again(struct context *context, uint64_t hash)
{
	uint64_t *word = &context->seen[hash >> 32 & (SEEN_BITS / 64 - 1)];
	uint64_t bit = (uint64_t)1 << (hash >> 58);

	if (*word & bit)
		return true;
	if (context->n_seen++ == MAX_SEEN)
		forget_seen(context);
	*word |= bit;
	return false;
}

static void give_memo(struct unwind_stack *stack, const struct memo *memo, enum unwind_how how)
{
	stack->frames = memo_frames(memo);
	stack->n_frames = memo->n_frames;
	stack->memo_id = memo->id;
	stack->how = how;
	stack->has_gap = memo->has_gap;
	stack->n_likely = memo->n_frames;
}

static void give_frames(struct unwind_stack *stack, struct context *context, enum unwind_how how)
{
	*stack = (struct unwind_stack){.frames = context->trail.frames,
		.n_frames = context->trail.n_frames,
		.how = how,
		.has_gap = context->trail.has_gap,
		.n_likely = context->trail.n_frames};
}

/* Out of code without unwind information libunwind takes what lies where rbp points: mostly a
 * frame, but it may be anything. */
static size_t count_likely(struct rows *rows, const struct unwind_stack *stack)
{
	uint32_t entry = 0;

	for (size_t i = 1; i < stack->n_frames; i++) {
		enum row_kind kind;

		entry = rows_after(rows, entry, stack->frames[i - 1] - 1);
		kind = row_kind(rows->entries[entry].row);
		if ((kind == ROW_NONE || kind == ROW_GUESSED) &&
			!code_is_after_call(stack->frames[i]))
			return i;
	}
	return stack->n_frames;
}

static void delegate(struct unwind_stack *stack, struct context *context)
{
	context->memos->previous = 0;
	context->trail.n_frames = (uint32_t)setup.fallback(context->trail.frames, setup.max_frames);
	give_frames(stack, context, UNWIND_DELEGATED);
	if (stack->has_gap)
		stack->n_likely = count_likely(&context->rows, stack);
}

static void be_lucky(struct context *context)
{
	if (context->luck < MAX_LUCK)
		context->luck += LUCK_GAIN;
}

static void walk_and_learn(
	struct unwind_stack *stack, struct context *context, const struct walk_start *start)
{
	const struct memo *memo;
	uint64_t hash;

	if (!walk_stack(&context->trail, &context->rows, &context->area, &limits, start)) {
		delegate(stack, context);
		return;
	}
	hash = trail_hash(&context->trail, start);
	memo = memo_find_walked(context->memos, hash, start);
	if (memo)
		be_lucky(context);
	else if (is_seen_again(context, hash))
		memo = memo_add(&context->memos, &context->trail, hash, start);
	if (memo) {
		give_memo(stack, memo, UNWIND_WALKED);
		return;
	}
	context->memos->previous = 0;
	give_frames(stack, context, UNWIND_WALKED);
}

static void capture_in(
	struct unwind_stack *stack, struct context *context, const struct walk_start *start)
{
	uint64_t word = atomic_load_explicit(&code_word, memory_order_acquire);
	const struct memo *memo;

	if (context->word != (word & ~(uint64_t)CODE_CLOSERS) || context->rows.full)
		forget_code(context, word & ~(uint64_t)CODE_CLOSERS);
	if (word & CODE_CLOSERS || !start->ip) {
		context->trail.has_gap = false;
		delegate(stack, context);
		return;
	}
	memo = context->luck ? memo_find(context->memos, start) : NULL;
	if (memo) {
		be_lucky(context);
		give_memo(stack, memo, UNWIND_FOUND);
		return;
	}
	context->luck -= context->luck > 0;
	walk_and_learn(stack, context, start);
}

/* All but a good first guess. Signal handlers that come in between find this thread busy. */
static void capture_slowly(
	struct unwind_thread *self, const struct walk_start *start, struct unwind_stack *stack)
{
	int saved = errno;

	*stack = (struct unwind_stack){0};
	if (self->busy || !setup.fallback)
		return;
	self->busy = true;
	self->word = 0;
	atomic_signal_fence(memory_order_seq_cst);
	if (!self->context)
		self->context = take_context();
	if (self->context) {
		capture_in(stack, self->context, start);
		self->memos = self->context->memos;
	}
	atomic_signal_fence(memory_order_seq_cst);
	self->word = self->context ? self->context->word : 0;
	self->busy = false;
	errno = saved;
}

/* From frame record to frame record, out of the recorder. ip 0: no way out was found. */
AREA_RAW static inline struct walk_start find_start(const uint64_t *frame)
{
	uint64_t own_bytes = limits.own_end - limits.own_start;

	while (frame[1] - limits.own_start < own_bytes) {
		const uint64_t *next = (const uint64_t *)(uintptr_t)frame[0];

		if (next <= frame || (uintptr_t)next & 7)
			return (struct walk_start){.cfa = (uint64_t)(uintptr_t)frame};
		frame = next;
	}
	return (struct walk_start){frame[1], (uint64_t)(uintptr_t)(frame + 2), frame[0]};
}

__attribute__((noinline)) void unwind_capture(struct unwind_stack *stack)
{
	struct walk_start start = find_start(__builtin_frame_address(0));
	struct unwind_thread *self = &this_thread;
	const struct memo *memo;

	if (self->word == atomic_load_explicit(&code_word, memory_order_acquire)) {
		memo = memo_guess(self->memos, &start);
		if (memo) {
			give_memo(stack, memo, UNWIND_GUESSED);
			return;
		}
	}
	capture_slowly(self, &start, stack);
}
