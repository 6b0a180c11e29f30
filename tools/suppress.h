/* Suppressions of leaks: read from files, and matched with the stacks of a trace. */
#ifndef VRAMTRACE_SUPPRESS_H
#define VRAMTRACE_SUPPRESS_H

#include "analysis/leaks.h"
#include "analysis/suppressions.h"
#include "symbol/symbol.h"

/* The variable that names a file of suppressions. */
#define SUPPRESS_VARIABLE "VRAMTRACE_SUPPRESSIONS"

/* Adds the built-in ones, those of the file that the variable names, and those of path (NULL:
 * none). False after one line on stderr. */
bool suppress_read(struct suppressions *suppressions, const char *path);

/* What the stacks of one trace are matched with; the first two are borrowed. */
struct suppress {
	const struct suppressions *suppressions;
	struct symbol_table *symbols;
	bool grows;
	const struct suppression *found;
};

/* For leak_list_suppress; suppress must outlive it. */
struct leak_suppressor suppress_leaks(struct suppress *suppress);

#endif
