/* Call stacks as recorded, and what the frames of the Python interpreter in them mean. */
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"
#include "model/memory.h"

static const uint64_t *copy_list(uint64_t *to, const struct vt_list *list)
{
	if (list->n_items)
		memcpy(to, list->items, list->n_items * sizeof(*to));
	return to;
}

static void apply_stack(struct model *model, const struct vt_rec_stack *given)
{
	size_t n_items = given->frames.n_items + given->python.n_items;
	struct model_stack *stack;
	uint64_t *items;

	if (!given->stack_id || model_stack_find(model, given->stack_id))
		return;
	stack = memory_new(1, sizeof(*stack) + n_items * sizeof(*items));
	items = (uint64_t *)(stack + 1);
	stack->stack_id = given->stack_id;
	stack->time_ns = given->time_ns;
	stack->flags = given->flags;
	stack->n_frames = given->frames.n_items;
	stack->n_python = given->python.n_items;
	stack->frames = copy_list(items, &given->frames);
	stack->python = copy_list(items + stack->n_frames, &given->python);
	HASH_ADD(hh, model->stacks, stack_id, sizeof(stack->stack_id), stack);
}

static struct model_code *code_find(const struct model *model, uint64_t code_id)
{
	struct model_code *code;

	HASH_FIND(hh, model->codes, &code_id, sizeof(code_id), code);
	return code;
}

static void apply_code(struct model *model, const struct vt_rec_python_code *given)
{
	struct model_code *code;

	if (!given->code_id || code_find(model, given->code_id))
		return;
	code = memory_new(1, sizeof(*code));
	code->code_id = given->code_id;
	code->first_line = given->first_line;
	code->line_table = given->line_table;
	code->file = given->file;
	code->function = given->function;
	code->lines = given->lines;
	HASH_ADD(hh, model->codes, code_id, sizeof(code->code_id), code);
}

static void apply_lines(struct model *model, const struct vt_rec_python_lines *given)
{
	struct model_code *code = code_find(model, given->code_id);
	size_t bytes = code ? code->lines.bytes : 0;
	char *joined;

	if (!code || !given->lines.bytes)
		return;
	joined = realloc(code->joined, bytes + given->lines.bytes);
	if (!joined)
		memory_exhausted();
	if (!code->joined && bytes)
		memcpy(joined, code->lines.data, bytes);
	memcpy(joined + bytes, given->lines.data, given->lines.bytes);
	code->joined = joined;
	code->lines = (struct vt_text){joined, bytes + given->lines.bytes};
}

static void apply_eval_range(struct model *model, const struct vt_rec_eval_range *given)
{
	if (given->start >= given->end)
		return;
	model->eval_ranges = memory_grow(model->eval_ranges, model->n_eval_ranges,
		&model->eval_ranges_room, sizeof(*model->eval_ranges));
	model->eval_ranges[model->n_eval_ranges++] =
		(struct model_eval_range){given->time_ns, given->start, given->end};
}

static void apply_python(struct model_python *python, const struct vt_rec_python *given)
{
	python->seen = true;
	if (given->version)
		python->version = given->version;
	python->captured = given->captured;
	python->reason = given->reason;
}

void stack_apply(struct model *model, const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_stack:
		apply_stack(model, &record->stack);
		break;
	case VT_REC_python:
		apply_python(&model->python, &record->python);
		break;
	case VT_REC_python_code:
		apply_code(model, &record->python_code);
		break;
	case VT_REC_python_lines:
		apply_lines(model, &record->python_lines);
		break;
	case VT_REC_eval_range:
		apply_eval_range(model, &record->eval_range);
		break;
	case VT_REC_python_stacks:
		model->python.counted = true;
		if (record->python_stacks.outcome < VT_N_PYTHON_OUTCOMES)
			model->python.n_stacks[record->python_stacks.outcome] =
				record->python_stacks.count;
		break;
	default:
		break;
	}
}

void stack_release(struct model *model)
{
	struct model_stack *stack, *next_stack;
	struct model_code *code, *next_code;

	HASH_ITER(hh, model->stacks, stack, next_stack)
	{
		HASH_DEL(model->stacks, stack);
		free(stack);
	}
	HASH_ITER(hh, model->codes, code, next_code)
	{
		HASH_DEL(model->codes, code);
		free(code->joined);
		free(code);
	}
	free(model->eval_ranges);
}

const struct model_stack *model_stack_find(const struct model *model, uint64_t stack_id)
{
	struct model_stack *stack;

	HASH_FIND(hh, model->stacks, &stack_id, sizeof(stack_id), stack);
	return stack;
}

const struct model_code *model_code_find(const struct model *model, uint64_t code_id)
{
	return code_find(model, code_id);
}
