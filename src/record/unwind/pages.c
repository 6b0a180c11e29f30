#include "record/unwind/pages.h"

#include <pthread.h>
#include <string.h>

#include "record/arena.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct arena arena; /* lock */

void *pages_take(size_t bytes)
{
	void *piece;

	pthread_mutex_lock(&lock);
	piece = arena_alloc(&arena, bytes);
	pthread_mutex_unlock(&lock);
	return piece;
}

void pages_give(void *piece, size_t bytes)
{
	pthread_mutex_lock(&lock);
	arena_free(&arena, piece, bytes);
	pthread_mutex_unlock(&lock);
}

void pages_forget(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(&arena, 0, sizeof(arena));
}
