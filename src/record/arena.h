/*
 * The recorder's own memory: taken from the kernel in blocks, never from the process's malloc.
 * Freed pieces are kept by size and used again. Not locked: an arena belongs to
 * whatever lock guards its table.
 */
#ifndef VRAMTRACE_RECORD_ARENA_H
#define VRAMTRACE_RECORD_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#define ARENA_SMALL_BYTES 1024u
#define ARENA_CLASSES	  96

struct arena {
	char *at;
	size_t left;
	bool failed;		   /* there was no memory, at least once */
	void *idle[ARENA_CLASSES]; /* freed pieces by size, linked through their first word */
};

/* bytes of memory, 16-byte aligned, not cleared. NULL when the kernel has none. Sizes are rounded
 * up a little, those of more than ARENA_SMALL_BYTES to powers of two. */
void *arena_alloc(struct arena *arena, size_t bytes);

/* Gives back a piece that was asked for with the same bytes. */
void arena_free(struct arena *arena, void *piece, size_t bytes);

/* As arena_alloc, but packed and never to be freed: for what lives as long as the process. */
void *arena_alloc_forever(struct arena *arena, size_t bytes);

#endif
