/*
 * Memory of the command: there is nothing sensible to do without it, so these never return NULL.
 * They print one line and exit with status 3.
 */
#ifndef VRAMTRACE_MODEL_MEMORY_H
#define VRAMTRACE_MODEL_MEMORY_H

#include <stddef.h>

/* Says that memory ran out and exits. */
void memory_exhausted(void) __attribute__((noreturn, cold));

/* n zeroed items of `bytes` bytes each; free() releases them. */
void *memory_new(size_t n, size_t bytes) __attribute__((returns_nonnull, malloc));

/* Room for one more item behind the n that are used; *room is the number there is room for now.
 * Returns the array, which may have moved. The new room is not zeroed. */
void *memory_grow(void *items, size_t n, size_t *room, size_t bytes)
	__attribute__((returns_nonnull));

/* A copy of text; free() releases it. */
char *memory_text(const char *text) __attribute__((returns_nonnull, malloc));

#endif
