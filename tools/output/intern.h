/* Numbers for keys that come again: texts, frames, stacks of a document. */
#ifndef VRAMTRACE_OUTPUT_INTERN_H
#define VRAMTRACE_OUTPUT_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is an empty table; release it with intern_release. */
struct intern_table {
	struct intern_entry *entries;
	uint64_t n_entries;
};

/* The number of the key of so many bytes, which is copied: 1, 2, ... in the order in which keys
 * first come. *is_new tells whether this is the first time. */
uint64_t intern(struct intern_table *table, const void *key, size_t bytes, bool *is_new);

/* The same for a text, and for a number or pointer. */
uint64_t intern_text(struct intern_table *table, const char *text, bool *is_new);
uint64_t intern_number(struct intern_table *table, uint64_t key, bool *is_new);

void intern_release(struct intern_table *table);

#endif
