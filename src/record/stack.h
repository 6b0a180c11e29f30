/* The call stack of this thread: native return addresses and Python frames, each innermost first.
 * What unwinds is behind native.h, what reads Python behind interpreter.h. */
#ifndef VRAMTRACE_RECORD_STACK_H
#define VRAMTRACE_RECORD_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/native.h"
#include "record/options.h"
#include "record/stackset.h"

struct vt_lane;

/* One stack. */
struct stack {
	struct native native;
	size_t n_python;
	uint64_t flags;			      /* VT_STACK_* */
	uint64_t rest[1 + OPTIONS_MAX_DEPTH]; /* a summary, and the Python frames */
};

static inline uint64_t *stack_python(struct stack *stack)
{
	return stack->rest + 1;
}

/* What tells stacks apart, once all is filled. */
static inline struct stackset_key stack_key(struct stack *stack)
{
	size_t n_native = stack->native.n_frames;

	stack->rest[0] = stack->flags << 32 | (uint64_t)n_native << 16 | stack->n_python;
	return (struct stackset_key){.native = stack->native.frames,
		.n_native = n_native,
		.native_id = stack->native.id,
		.rest = stack->rest,
		.n_rest = n_native + stack->n_python ? 1 + stack->n_python : 0};
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
