/*
 * Every distinct stack once, with a number. Entries live as long as the session and never change,
 * so a thread may remember pointers to those it met last.
 */
#ifndef VRAMTRACE_RECORD_STACKSET_H
#define VRAMTRACE_RECORD_STACKSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of the stack that words[0..n_words) are, see stack.h; 0 when n_words is 0 or there is
 * no memory. *is_new tells whether this call made it: then the caller writes it to the trace. */
uint64_t stackset_intern(const uint64_t *words, size_t n_words, bool *is_new);

/* Empty, with fresh locks: in a forked child. */
void stackset_forget(void);

#endif
