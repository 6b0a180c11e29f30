/* Call stacks of one JSON document, each written once and then told by its number. */
#ifndef VRAMTRACE_OUTPUT_STACK_TABLE_H
#define VRAMTRACE_OUTPUT_STACK_TABLE_H

#include "output/stack.h"

struct stack_table;

/* To be ended with stack_table_free. */
struct stack_table *stack_table_new(void);

/* The number of a stack that was recorded; a new one when it is seen for the first time. */
uint64_t stack_table_number(
	struct stack_table *table, const struct stack_source *source, uint64_t stack_id);

/* Keys "frames", each as in a stack of stack_json, and "stacks", of numbers of frames, of the open
 * object. The models and symbols of all sources must still be there. */
void stack_table_json(struct json *json, const struct stack_table *table);

void stack_table_free(struct stack_table *table);

#endif
