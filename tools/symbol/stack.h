/*
 * Whole call stacks: native frames with what was inlined, and frames of Python, merged in the order
 * of calls; what to call a stack in one line, and who made the call.
 */
#ifndef VRAMTRACE_SYMBOL_STACK_H
#define VRAMTRACE_SYMBOL_STACK_H

#include "model/model.h"
#include "symbol/symbol.h"

struct symbol_call {
	const struct symbol_frame *frame;
	bool internal; /* code of the Python interpreter itself, beside frames of Python */
};

struct symbol_stack {
	const struct symbol_call *calls; /* innermost first */
	size_t n_calls;
	bool cut; /* there were more than the recorder kept */
	bool gap; /* native frames may be missing: code without unwind information */
};

/*
 * The frames of stack, which is one of model's. Python frames stand where the evaluation loop that
 * ran them was called; where the two do not match they are paired from the innermost on, loops
 * without Python frames stay, and Python frames without a loop come last. Borrowed, valid until a
 * model with other evaluation ranges is used with table or table is freed.
 */
const struct symbol_stack *symbol_stack_get(
	struct symbol_table *table, const struct model *model, const struct model_stack *stack);

/*
 * Who made the call: the label for the first native frame outside CUDA's own libraries, the C and
 * C++ runtimes and libffi: "torch", "nccl", "cublas", "cudnn", "cufft", "cusolver", "cusparse",
 * "triton", "jax", "cupy", or the module's file name. Where that is the Python interpreter, or
 * there is none, the innermost Python frame outside the standard library decides: by its package,
 * else by its file's name. "cuda" when nobody is left. Valid until table is freed; never NULL.
 */
const char *symbol_stack_owner(
	struct symbol_table *table, const struct model *model, const struct model_stack *stack);

/*
 * The frame that names a stack: the innermost that a user would call theirs, in Python if there is
 * one there, else outside of all known libraries; else the innermost that says something. *caller
 * is the next frame of the user's further out, or NULL. Returns NULL for an empty stack.
 */
const struct symbol_frame *symbol_stack_headline(struct symbol_table *table,
	const struct model *model, const struct model_stack *stack,
	const struct symbol_frame **caller);

/* Whether frame is the CUDA runtime's code, wherever that was linked into. */
bool symbol_is_runtime(const struct symbol_frame *frame);

#endif
