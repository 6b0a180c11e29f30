/* The trace's path from the user's pattern. */
#ifndef VRAMTRACE_RECORD_PATH_H
#define VRAMTRACE_RECORD_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Expands %e exe, %p pid, %h host, %r rank, %t start time (UTC), %% in pattern; number > 0 is put
 * before the ending, as in x.1.vt. Slashes in values become '_'. False when the result does not fit
 * into size bytes. No allocation. */
bool path_expand(char *out, size_t size, const char *pattern, unsigned int number);

#endif
