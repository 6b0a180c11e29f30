#include "symbol/stack.h"

#include <stdlib.h>
#include <string.h>

#include "model/memory.h"
#include "symbol/table.h"

/* Beginning of the names of instruction handlers, where each is a function of its own. */
#define HANDLER_PREFIX "_TAIL_CALL_"

enum sort {
	SORT_NATIVE,
	SORT_EVAL, /* a native frame of the evaluation loop whose Python frames are not known */
	SORT_PYTHON,
};

/* One frame of a merged stack, before any name is looked up. */
struct item {
	uint64_t value; /* return address, or item of the record's list of Python frames */
	const struct symbol_module *module; /* of a native frame; NULL: in none */
	enum sort sort;
	bool internal;
};

struct known_stack {
	uint64_t stack_id;
	UT_hash_handle hh;
	struct symbol_stack stack;
	struct symbol_call calls[];
};

static void forget_stacks(struct symbol_table *table)
{
	struct known_stack *known, *next;

	HASH_ITER(hh, table->stacks, known, next)
	{
		HASH_DEL(table->stacks, known);
		free(known);
	}
}

void stack_release_all(struct symbol_table *table)
{
	forget_stacks(table);
	span_list_release(&table->evals);
}

/* Takes over the model's ranges; a trace that is being written learns more of them. */
static void update_evals(struct symbol_table *table, const struct model *model)
{
	if (table->n_evals == model->n_eval_ranges)
		return;
	forget_stacks(table);
	span_list_release(&table->evals);
	for (size_t i = 0; i < model->n_eval_ranges; i++) {
		const struct model_eval_range *range = &model->eval_ranges[i];
		struct span span = {.start = range->start, .end = range->end};
		struct symbol_module *module =
			symbol_table_find_module(table, range->start, range->time_ns);

		if (module)
			module->interpreter = true;
		if (!span_list_add(&table->evals, &span))
			memory_exhausted();
	}
	span_list_sort(&table->evals, NULL);
	span_list_index(&table->evals);
	table->n_evals = model->n_eval_ranges;
}

static bool is_eval(const struct symbol_table *table, uint64_t address)
{
	size_t position = table->evals.n_items;

	return span_list_next(&table->evals, address - 1, &position) != NULL;
}

/* Puts the Python frames where their evaluation loops were called. items has room for all frames of
 * stack; returns how many it holds. */
static size_t merge(
	const struct symbol_table *table, const struct model_stack *stack, struct item *items)
{
	size_t n = 0, p = 0;

	for (size_t i = 0; i < stack->n_frames; i++) {
		bool eval = is_eval(table, stack->frames[i]), ended = p == stack->n_python;

		if (!eval || ended) {
			items[n].sort = eval ? SORT_EVAL : SORT_NATIVE;
			items[n++].value = stack->frames[i];
			continue;
		}
		while (!ended) {
			items[n].sort = SORT_PYTHON;
			items[n++].value = stack->python[p];
			ended = stack->python[p++] & VT_PYTHON_ENTRY || p == stack->n_python;
		}
	}
	while (p < stack->n_python) {
		items[n].sort = SORT_PYTHON;
		items[n++].value = stack->python[p++];
	}
	return n;
}

/* Python ran here, whether or not it is known what. */
static bool is_anchor(const struct item *item)
{
	return item->sort != SORT_NATIVE;
}

static bool is_interpreter(const struct item *item)
{
	return item->sort == SORT_NATIVE && item->module && owner_is_interpreter(item->module);
}

/* Generated code between two frames of the interpreter: what `python -X perf` puts there. */
static bool is_trampoline(const struct item *items, size_t n, size_t i)
{
	return items[i].sort == SORT_NATIVE && !items[i].module && i && i + 1 < n &&
	       (is_anchor(&items[i - 1]) || is_interpreter(&items[i - 1])) &&
	       (is_anchor(&items[i + 1]) || is_interpreter(&items[i + 1]));
}

/* Marks the interpreter's frames that lead away from a frame of Python, or inwards, up to it. */
static void mark_beside(struct item *items, size_t n, bool inwards)
{
	bool beside = false;

	for (size_t k = 0; k < n; k++) {
		size_t i = inwards ? n - 1 - k : k;

		if (is_anchor(&items[i]))
			beside = true;
		else if (beside && (is_interpreter(&items[i]) || is_trampoline(items, n, i)))
			items[i].internal = true;
		else
			beside = false;
	}
}

/* Marks how the process or thread came to the interpreter, further out than all of Python. */
static void mark_start(struct item *items, size_t n)
{
	size_t end = n, start;

	while (end && items[end - 1].sort == SORT_PYTHON)
		end--;
	start = end;
	while (start && items[start - 1].sort == SORT_NATIVE && items[start - 1].module &&
		(is_interpreter(&items[start - 1]) || owner_is_libc(items[start - 1].module)))
		start--;
	/* Python frames without a loop stand behind the frames that ran them. */
	if (end == n && (!start || !(is_anchor(&items[start - 1]) || items[start - 1].internal)))
		return;
	while (start < end)
		items[start++].internal = true;
}

static size_t merge_and_mark(
	struct symbol_table *table, const struct model_stack *stack, struct item *items)
{
	size_t n = merge(table, stack, items);

	if (!stack->n_python)
		return n;
	for (size_t i = 0; i < n; i++)
		if (items[i].sort != SORT_PYTHON)
			items[i].module =
				symbol_table_find_module(table, items[i].value - 1, stack->time_ns);
	mark_beside(items, n, false);
	mark_beside(items, n, true);
	mark_start(items, n);
	return n;
}

/* A handler is entered by a jump from the loop, or from another handler: it is no call. */
static bool is_handler(const struct symbol_frame *frame)
{
	return frame->function && !strncmp(frame->function, HANDLER_PREFIX, strlen(HANDLER_PREFIX));
}

struct calls {
	struct symbol_call *items;
	size_t n_items;
	size_t room;
};

static void add_call(struct calls *calls, const struct symbol_frame *frame, bool internal)
{
	calls->items =
		memory_grow(calls->items, calls->n_items, &calls->room, sizeof(*calls->items));
	calls->items[calls->n_items++] = (struct symbol_call){frame, internal};
}

static void add_calls(struct calls *calls, struct symbol_table *table, const struct model *model,
	const struct item *item, uint64_t time_ns)
{
	const struct symbol_frame *frames;
	size_t n;

	if (item->sort == SORT_PYTHON) {
		add_call(calls, python_frame_get(table, model, item->value), false);
		return;
	}
	n = symbol_table_resolve(table, item->value, time_ns, &frames);
	if (frames == &table->unknown)
		memory_exhausted();
	for (size_t i = 0; i < n; i++)
		if (!item->internal || !is_handler(&frames[i]))
			add_call(calls, &frames[i], item->internal);
}

const struct symbol_stack *symbol_stack_get(
	struct symbol_table *table, const struct model *model, const struct model_stack *stack)
{
	struct calls calls = {0};
	struct known_stack *known;
	struct item *items;
	size_t n;

	update_evals(table, model);
	HASH_FIND(hh, table->stacks, &stack->stack_id, sizeof(stack->stack_id), known);
	if (known)
		return &known->stack;
	items = memory_new(stack->n_frames + stack->n_python, sizeof(*items));
	n = merge_and_mark(table, stack, items);
	for (size_t i = 0; i < n; i++)
		add_calls(&calls, table, model, &items[i], stack->time_ns);
	free(items);
	known = memory_new(1, sizeof(*known) + calls.n_items * sizeof(*calls.items));
	if (calls.n_items)
		memcpy(known->calls, calls.items, calls.n_items * sizeof(*calls.items));
	known->stack_id = stack->stack_id;
	known->stack = (struct symbol_stack){known->calls, calls.n_items,
		stack->flags & (VT_STACK_NATIVE_CUT | VT_STACK_PYTHON_CUT),
		stack->flags & VT_STACK_NATIVE_GAP};
	free(calls.items);
	HASH_ADD(hh, table->stacks, stack_id, sizeof(known->stack_id), known);
	return &known->stack;
}
