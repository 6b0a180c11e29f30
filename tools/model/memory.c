#include "model/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void memory_exhausted(void)
{
	fputs("vramtrace: out of memory\n", stderr);
	exit(3);
}

void *memory_new(size_t n, size_t bytes)
{
	void *p = calloc(n ? n : 1, bytes);

	if (!p)
		memory_exhausted();
	return p;
}

void *memory_grow(void *items, size_t n, size_t *room, size_t bytes)
{
	if (n < *room)
		return items;
	*room = *room ? 2 * *room : 8;
	items = reallocarray(items, *room, bytes);
	if (!items)
		memory_exhausted();
	return items;
}

char *memory_text(const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		memory_exhausted();
	return copy;
}
