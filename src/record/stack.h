/* The call stack of this thread: native return addresses and Python frames, each innermost first.
 * What unwinds is behind native.h, what reads Python behind interpreter.h. */
#ifndef VRAMTRACE_RECORD_STACK_H
#define VRAMTRACE_RECORD_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/native.h"
#include "record/options.h"

struct vt_lane;

/* One stack. words holds a summary, the native addresses and right after them the Python frames:
 * equal words are equal stacks. */
struct stack {
	size_t n_native, n_python;
	uint64_t flags; /* VT_STACK_* */
	uint64_t words[1 + 2 * OPTIONS_MAX_DEPTH + NATIVE_OWN_FRAMES];
};

static inline const uint64_t *stack_native(const struct stack *stack)
{
	return stack->words + 1;
}

static inline const uint64_t *stack_python(const struct stack *stack)
{
	return stack->words + 1 + stack->n_native;
}

/* Completes words once all else is filled. */
static inline void stack_sum_up(struct stack *stack)
{
	stack->words[0] = stack->flags << 32 | (uint64_t)stack->n_native << 16 | stack->n_python;
}

/* Words in use, 0 when there is no frame of either sort. */
static inline size_t stack_n_words(const struct stack *stack)
{
	size_t n_frames = stack->n_native + stack->n_python;

	return n_frames ? 1 + n_frames : 0;
}

/* Opens and looks for what VRAMTRACE_STACK asks for. Calls the loader, so no lock may be held. */
void stack_prepare(void);

/* Why there are no stacks, in words, or NULL when there are. A constant. */
const char *stack_problem(void);

/* Fills stack with the caller's, the recorder's own frames left out. Code objects that are new go
 * to lane, in records of time_ns. Holds no lock while it unwinds, allocates nothing from the
 * process. */
void stack_capture(struct stack *stack, struct vt_lane *lane, uint64_t time_ns);

#endif
