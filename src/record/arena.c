#include "record/arena.h"

#include <stdint.h>
#include <sys/mman.h>

#define BLOCK_BYTES (256u << 10)
#define ALIGN	    16u

static void *map_block(size_t bytes)
{
	void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return block == MAP_FAILED ? NULL : block;
}

void *arena_alloc_forever(struct arena *arena, size_t bytes)
{
	char *piece;

	bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (bytes > BLOCK_BYTES / 4) {
		piece = map_block(bytes);
		arena->failed |= !piece;
		return piece;
	}
	if (bytes > arena->left) {
		piece = map_block(BLOCK_BYTES);
		arena->failed |= !piece;
		if (!piece)
			return NULL;
		arena->at = piece;
		arena->left = BLOCK_BYTES;
	}
	piece = arena->at;
	arena->at += bytes;
	arena->left -= bytes;
	return piece;
}

/* Small pieces in steps of ALIGN, so that little is wasted; larger ones in powers of two. */
static unsigned int size_class(size_t bytes)
{
	if (bytes <= ARENA_SMALL_BYTES)
		return bytes ? (unsigned int)((bytes - 1) / ALIGN) : 0;
	return ARENA_SMALL_BYTES / ALIGN +
	       (unsigned int)(__builtin_clzll(ARENA_SMALL_BYTES) -
			      __builtin_clzll((unsigned long long)bytes - 1));
}

static size_t class_bytes(unsigned int class)
{
	unsigned int n_small = ARENA_SMALL_BYTES / ALIGN;

	return class < n_small ? (class + 1) * (size_t)ALIGN
			       : (size_t)ARENA_SMALL_BYTES << (class - n_small + 1);
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
	unsigned int class = size_class(bytes);
	void **piece;

	if (class >= ARENA_CLASSES)
		return NULL;
	piece = arena->idle[class];
	if (!piece)
		return arena_alloc_forever(arena, class_bytes(class));
	arena->idle[class] = *piece;
	return piece;
}

void arena_free(struct arena *arena, void *piece, size_t bytes)
{
	unsigned int class = size_class(bytes);

	*(void **)piece = arena->idle[class];
	arena->idle[class] = piece;
}
