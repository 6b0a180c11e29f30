/*
 * Several processes seen together: who started whom, and on which clock they share their traces
 * lie. A parent is known when it left a trace, too. The clock is the monotonic one where processes
 * are of one boot of one machine, else that of the day.
 *
 * One whose end was not recorded is taken to have lived, and held what it did, as long as its
 * children did: most wait for them. Not so when it is known to be gone before, or its id was given
 * out again.
 */
#ifndef VRAMTRACE_ANALYSIS_PROCESSES_H
#define VRAMTRACE_ANALYSIS_PROCESSES_H

#include "analysis/facts.h"

#define PROCESS_NONE SIZE_MAX

/* What something holds over time. */
struct held_sum {
	uint64_t now_bytes;
	uint64_t peak_bytes;
	uint64_t peak_ns; /* on the common clock */
};

/* A process, or what it was before or after an exec: one for each trace. Others are named by their
 * place in the list, which is that of their trace. */
struct process {
	const struct trace_facts *facts;
	size_t parent;	  /* PROCESS_NONE: it left no trace */
	size_t exec_from; /* what the same process was before; PROCESS_NONE: nothing that is known
			   */
	bool outlived_parent; /* known to have gone on when its parent had ended */
	size_t depth;	      /* in the tree: below its parent, or what it was before */
	uint64_t start_ns; /* of the trace, on the common clock, which begins with the first one */
	uint64_t last_ns;  /* the last thing recorded */
	uint64_t alive_ns; /* as long as this it lived: as last_ns, or later by its children */
	struct held_sum tracked; /* on all its GPUs */
};

/* All zero is an empty list; release it with process_list_release. */
struct process_list {
	struct process *items;
	size_t *order; /* the tree: each before its children; those that started first come first */
	size_t n_items;
	uint64_t start_realtime_ns; /* when the common clock was 0 */
};

/* A list of the n traces with these facts, which must outlive it; nothing is in .tracked yet. */
void process_list_make(struct process_list *list, const struct trace_facts *const *facts, size_t n);

/* Another one has the same parent, which left no trace. */
bool process_has_siblings(const struct process_list *list, size_t process);

/* Adds to what it held: more, or less where the change is negative. */
void held_sum_add(struct held_sum *sum, int64_t bytes, uint64_t time_ns);

void process_list_release(struct process_list *list);

#endif
