#include "record/stack.h"

#include "record/interpreter.h"
#include "vramtrace/format.h"

void stack_prepare(void)
{
	native_prepare();
	interpreter_prepare();
}

const char *stack_problem(void)
{
	if (!options.native_stacks && !options.python_stacks)
		return "stacks were turned off by VRAMTRACE_STACK";
	if (!options.native_stacks && !interpreter_is_known())
		return "VRAMTRACE_STACK=python, but there was no Python interpreter when the first "
		       "events came";
	if (native_is_missing())
		return "no native stacks: libunwind.so.8 was not found; install libunwind8 or put "
		       "it beside libvramtrace.so";
	return NULL;
}

void stack_capture(struct stack *stack, struct vt_lane *lane, uint64_t time_ns)
{
	bool is_cut = false;

	stack->native.frames = stack->native.room;
	stack->native.n_frames = stack->n_python = 0;
	stack->native.id = 0;
	stack->flags = 0;
	if (options.native_stacks)
		native_capture(&stack->native, options.depth);
	if (stack->native.n_frames && stack->native.is_cut)
		stack->flags |= VT_STACK_NATIVE_CUT;
	if (stack->native.n_frames && stack->native.has_gap)
		stack->flags |= VT_STACK_NATIVE_GAP;
	if (options.python_stacks)
		stack->n_python = interpreter_capture(
			stack_python(stack), options.depth, &is_cut, lane, time_ns);
	if (is_cut)
		stack->flags |= VT_STACK_PYTHON_CUT;
}
