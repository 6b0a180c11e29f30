/* Which frame stands for a stack. Names are looked up only for frames that may be it: most stacks
 * of a Python program need none of the symbols of its libraries. */
#include <ctype.h>
#include <string.h>

#include "symbol/table.h"

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* It may be linked into the program itself, where only names tell it apart. */
bool symbol_is_runtime(const struct symbol_frame *frame)
{
	const char *name = frame->function;

	if (!name)
		return false;
	if (starts_with(name, "vt_block_"))
		return true; /* vramtrace.h's own, inlined */
	if (starts_with(name, "cudart::") || starts_with(name, "__cudart") ||
		starts_with(name, "libcudart_static"))
		return true;
	return starts_with(name, "cuda") && isupper((unsigned char)name[4]);
}

/* The frame found so far and its caller. */
struct pick {
	const struct symbol_frame *frame;
	const struct symbol_frame *caller;
};

/* One more frame of the user's, further out. Returns true when no more are needed. */
static bool picked(struct pick *pick, const struct symbol_frame *frame)
{
	if (!pick->frame)
		pick->frame = frame;
	else
		pick->caller = frame;
	return pick->caller != NULL;
}

static struct pick users_python(
	struct symbol_table *table, const struct model *model, const struct model_stack *stack)
{
	struct pick pick = {0};

	for (size_t i = 0; i < stack->n_python; i++) {
		const struct symbol_frame *frame = python_frame_get(table, model, stack->python[i]);

		if (frame->file && owner_is_users_source(frame->file) && picked(&pick, frame))
			break;
	}
	return pick;
}

/* Code of no known library is owned by its own file. Beside Python frames, those of installed
 * packages and of the interpreter say less. */
static bool may_be_users(const struct symbol_module *module, const struct model_stack *stack)
{
	return module && owner_of_module(module) == module->name && !owner_is_interpreter(module) &&
	       !(stack->n_python && owner_is_package(module->path));
}

static struct pick users_native(struct symbol_table *table, const struct model_stack *stack)
{
	struct pick pick = {0};

	for (size_t i = 0; i < stack->n_frames; i++) {
		const struct symbol_frame *frames;
		size_t n;

		if (!may_be_users(
			    symbol_table_find_module(table, stack->frames[i] - 1, stack->time_ns),
			    stack))
			continue;
		n = symbol_table_resolve(table, stack->frames[i], stack->time_ns, &frames);
		for (size_t k = 0; k < n; k++)
			if (!symbol_is_runtime(&frames[k]) &&
				!(frames[k].function && !strcmp(frames[k].function, "_start")) &&
				picked(&pick, &frames[k]))
				return pick;
	}
	return pick;
}

/* The innermost native frame outside CUDA's own libraries, else the innermost. */
static const struct symbol_frame *first_native(
	struct symbol_table *table, const struct model_stack *stack)
{
	const struct symbol_frame *innermost = NULL, *frames;

	for (size_t i = 0; i < stack->n_frames; i++) {
		const struct symbol_module *module =
			symbol_table_find_module(table, stack->frames[i] - 1, stack->time_ns);
		bool outside = module && owner_of_module(module);
		size_t n;

		if (!outside && innermost)
			continue;
		n = symbol_table_resolve(table, stack->frames[i], stack->time_ns, &frames);
		if (!innermost)
			innermost = &frames[0];
		for (size_t k = 0; k < n && outside; k++)
			if (!symbol_is_runtime(&frames[k]))
				return &frames[k];
	}
	return innermost;
}

/* The innermost Python frame outside the standard library, else the innermost that is known. */
static const struct symbol_frame *first_python(
	struct symbol_table *table, const struct model *model, const struct model_stack *stack)
{
	const struct symbol_frame *first = NULL;

	for (size_t i = 0; i < stack->n_python; i++) {
		const struct symbol_frame *frame = python_frame_get(table, model, stack->python[i]);

		if (frame->file && !owner_is_standard(frame->file))
			return frame;
		if (!first || !first->function)
			first = frame;
	}
	return first;
}

const struct symbol_frame *symbol_stack_headline(struct symbol_table *table,
	const struct model *model, const struct model_stack *stack,
	const struct symbol_frame **caller)
{
	struct pick pick = users_python(table, model, stack);

	if (!pick.frame)
		pick = users_native(table, stack);
	if (!pick.frame)
		pick.frame = first_python(table, model, stack);
	if (!pick.frame)
		pick.frame = first_native(table, stack);
	*caller = pick.caller;
	return pick.frame;
}
