/* Traces that processes are writing to. */
#ifndef VRAMTRACE_RUNNING_H
#define VRAMTRACE_RUNNING_H

#include <stddef.h>
#include <stdint.h>

/* A process id, when that is what text says; else 0. */
uint64_t running_pid(const char *text);

/* The traces that process pid has mapped to write to: *paths is to be freed, with its items.
 * Returns how many; 0 with errno set when the process cannot be looked at, and with errno 0 when it
 * has none. */
size_t running_find_traces(uint64_t pid, char ***paths);

#endif
