#include "output/stack_table.h"

#include <stdlib.h>
#include <uthash.h>

#include "model/memory.h"
#include "symbol/stack.h"

struct frame_entry {
	struct frame_key {
		const struct symbol_frame *frame;
		uint64_t internal;
	} key;
	uint64_t number;
	const struct show *show; /* of the stack that it was first in */
	UT_hash_handle hh;
};

struct stack_entry {
	struct stack_key {
		const struct model *model;
		uint64_t stack_id;
	} key;
	uint64_t number;
	struct show show;
	uint64_t *frames; /* their numbers */
	size_t n_frames;
	UT_hash_handle hh;
};

/* Each in the order of its numbers. */
struct stack_table {
	struct stack_entry *stacks;
	struct frame_entry *frames;
};

struct stack_table *stack_table_new(void)
{
	return memory_new(1, sizeof(struct stack_table));
}

static uint64_t frame_number(
	struct stack_table *table, const struct symbol_call *call, const struct show *show)
{
	struct frame_key key = {call->frame, call->internal};
	struct frame_entry *entry;

	HASH_FIND(hh, table->frames, &key, sizeof(key), entry);
	if (!entry) {
		entry = memory_new(1, sizeof(*entry));
		entry->key = key;
		entry->number = HASH_COUNT(table->frames);
		entry->show = show;
		HASH_ADD(hh, table->frames, key, sizeof(entry->key), entry);
	}
	return entry->number;
}

static struct stack_entry *stack_entry_new(
	struct stack_table *table, const struct stack_source *source, uint64_t stack_id)
{
	const struct symbol_stack *stack = symbol_stack_get(
		source->symbols, source->model, model_stack_find(source->model, stack_id));
	struct stack_entry *entry = memory_new(1, sizeof(*entry));

	entry->key = (struct stack_key){source->model, stack_id};
	entry->number = HASH_COUNT(table->stacks);
	entry->show = source->show;
	entry->n_frames = stack->n_calls;
	entry->frames = memory_new(stack->n_calls, sizeof(*entry->frames));
	for (size_t i = 0; i < stack->n_calls; i++)
		entry->frames[i] = frame_number(table, &stack->calls[i], &entry->show);
	return entry;
}

uint64_t stack_table_number(
	struct stack_table *table, const struct stack_source *source, uint64_t stack_id)
{
	struct stack_key key = {source->model, stack_id};
	struct stack_entry *entry;

	HASH_FIND(hh, table->stacks, &key, sizeof(key), entry);
	if (!entry) {
		entry = stack_entry_new(table, source, stack_id);
		HASH_ADD(hh, table->stacks, key, sizeof(entry->key), entry);
	}
	return entry->number;
}

void stack_table_json(struct json *json, const struct stack_table *table)
{
	json_open(json, "frames", '[');
	for (const struct frame_entry *entry = table->frames; entry; entry = entry->hh.next) {
		struct symbol_call call = {entry->key.frame, entry->key.internal};

		stack_frame_json(json, entry->show, &call);
	}
	json_close(json, ']');
	json_open(json, "stacks", '[');
	for (const struct stack_entry *entry = table->stacks; entry; entry = entry->hh.next) {
		json_open(json, NULL, '[');
		for (size_t i = 0; i < entry->n_frames; i++)
			json_number(json, NULL, entry->frames[i]);
		json_close(json, ']');
	}
	json_close(json, ']');
}

void stack_table_free(struct stack_table *table)
{
	struct stack_entry *stack, *next_stack;
	struct frame_entry *frame, *next_frame;

	HASH_ITER(hh, table->stacks, stack, next_stack)
	{
		HASH_DEL(table->stacks, stack);
		free(stack->frames);
		free(stack);
	}
	HASH_ITER(hh, table->frames, frame, next_frame)
	{
		HASH_DEL(table->frames, frame);
		free(frame);
	}
	free(table);
}
