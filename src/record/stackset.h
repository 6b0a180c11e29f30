/*
 * Every distinct stack once, with a number. Entries live as long as the session and never change,
 * so a thread may remember pointers to those it met last.
 */
#ifndef VRAMTRACE_RECORD_STACKSET_H
#define VRAMTRACE_RECORD_STACKSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stack in two pieces: equal words are equal stacks. */
struct stackset_key {
	const uint64_t *native;
	size_t n_native;
	uint64_t native_id; /* not 0: this thread's stacks with the same have the same native words
			     */
	const uint64_t *rest;
	size_t n_rest;
};

/* At most so many words in both pieces. */
#define STACKSET_MAX_WORDS 520u

/* Distinct stacks of a bounded trace: each is in every part. */
#define STACKSET_MOST_BOUNDED 65536u

/* The number of the stack; 0 when it has no words, there is no memory, or a bounded trace has too
 * many. *is_new tells whether this
 * call made it: then the caller writes it to the trace. */
uint64_t stackset_intern(const struct stackset_key *key, bool *is_new);

/* Empty, with fresh locks: in a forked child. */
void stackset_forget(void);

#endif
