/*
 * Idle contexts: a process has a context on a GPU, which takes memory there, and allocated nothing
 * on it, ever. Said only of traces that lost nothing.
 */
#ifndef VRAMTRACE_ANALYSIS_IDLE_H
#define VRAMTRACE_ANALYSIS_IDLE_H

#include "analysis/facts.h"

enum idle_advice {
	IDLE_CHOOSE_DEVICE, /* the process works on another GPU */
	IDLE_KEEP_OUT,	    /* it allocates on none */
	IDLE_PINS_ELSEWHERE /* it only page-locks host memory */
};

struct idle_context {
	int device;
	bool bytes_known;
	uint64_t bytes; /* that contexts took there, as measured */
	uint64_t since_ns;
	uint64_t until_ns; /* 0: not destroyed, as far as was seen */
	uint64_t api_id;   /* the call that made it */
	uint64_t stack_id; /* and from where; 0 not known */
	enum idle_advice advice;
};

/* All zero is an empty list; release it with idle_list_release. */
struct idle_list {
	struct idle_context *items;
	size_t n_items, room;
};

/* The idle contexts of model at its end. */
void idle_list_make(
	struct idle_list *list, const struct model *model, const struct trace_facts *facts);

/* "choose_device", ..., as in the JSON. */
const char *idle_advice_name(enum idle_advice advice);

void idle_list_release(struct idle_list *list);

#endif
