/*
 * Suppressions in the syntax of LeakSanitizer: a line "leak:PATTERN" each, '#' begins a comment. A
 * pattern is looked for anywhere in the names of a stack's functions, source files and modules; '*'
 * stands for any text, '^' at its start and '$' at its end for those of the name.
 *
 * A few are built in: what libraries keep on purpose, once.
 */
#ifndef VRAMTRACE_ANALYSIS_SUPPRESSIONS_H
#define VRAMTRACE_ANALYSIS_SUPPRESSIONS_H

#include <stdbool.h>
#include <stddef.h>

struct suppression {
	char *pattern;
	bool built_in;
};

/* All zero is empty; release it with suppressions_release. */
struct suppressions {
	struct suppression *items;
	size_t n_items, room;
};

void suppressions_add_built_in(struct suppressions *suppressions);

/* Adds the lines of text. Returns 0, or the number of the first line that is no suppression: those
 * before it were added. */
size_t suppressions_add(struct suppressions *suppressions, const char *text);

/* Whether name matches pattern. */
bool suppression_matches(const char *pattern, const char *name);

void suppressions_release(struct suppressions *suppressions);

#endif
