#include "hooks/api.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "record/arena.h"
#include "record/events_block.h"
#include "record/notes.h"
#include "record/phases.h"
#include "record/session.h"
#include "vramtrace/vramtrace.h"

#define MAX_NAME 63u

/* Names of pools by number, never taken back; the last one stands for all that found no place. */
#define FIRST_ID  256u
#define N_POOLS	  (EVENT_MAX_ALLOCATORS - FIRST_ID)
#define MORE_POOL (N_POOLS - 1)

static struct {
	pthread_mutex_t lock; /* a leaf: nothing is called under it but the arena */
	struct arena arena;   /* lock */
	_Atomic unsigned int n;
	const char *_Atomic names[N_POOLS];
} pools;

/* Its place, or n when it has none yet. */
static unsigned int find(const char *pool, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (!strncmp(atomic_load_explicit(&pools.names[i], memory_order_relaxed), pool,
			    MAX_NAME))
			return i;
	return n;
}

static unsigned int find_or_add(const char *pool)
{
	unsigned int i, n;
	char *name;

	pthread_mutex_lock(&pools.lock);
	n = atomic_load_explicit(&pools.n, memory_order_relaxed);
	i = find(pool, n);
	name = i == n && n < MORE_POOL ? arena_alloc_forever(&pools.arena, MAX_NAME + 1) : NULL;
	if (name) {
		memset(name, 0, MAX_NAME + 1);
		memcpy(name, pool, strnlen(pool, MAX_NAME));
		atomic_store_explicit(&pools.names[n], name, memory_order_relaxed);
		atomic_store_explicit(&pools.n, n + 1, memory_order_release);
	} else if (i == n) {
		i = MORE_POOL;
	}
	pthread_mutex_unlock(&pools.lock);
	if (i == MORE_POOL)
		notes_say(NOTE_MANY_POOLS);
	return i;
}

static struct event_allocator allocator_of(const char *pool)
{
	unsigned int n = atomic_load_explicit(&pools.n, memory_order_acquire);
	unsigned int i = find(pool, n);

	if (i == n)
		i = find_or_add(pool);
	return (struct event_allocator){
		.id = FIRST_ID + i,
		.layer = VT_LAYER_TOLD,
		.device = -1,
		.name = i == MORE_POOL ? "(more pools)" : pools.names[i],
		.version = "",
		.path = "",
	};
}

static bool is_told(const char *pool, void *pointer)
{
	return pool && pointer && session_is_on();
}

__attribute__((visibility("default"))) void vramtrace_block_alloc(
	const char *pool, void *pointer, size_t bytes)
{
	struct event_allocator allocator;
	int saved = errno;

	if (is_told(pool, pointer) && bytes) {
		allocator = allocator_of(pool);
		event_block_alloc(&allocator, (uintptr_t)pointer, bytes, NULL);
	}
	errno = saved;
}

__attribute__((visibility("default"))) void vramtrace_block_free(
	const char *pool, void *pointer, size_t bytes)
{
	struct event_allocator allocator;
	int saved = errno;

	if (is_told(pool, pointer)) {
		allocator = allocator_of(pool);
		event_block_free(&allocator, (uintptr_t)pointer, bytes, NULL);
	}
	errno = saved;
}

static struct phase_event told(const char *name)
{
	return (struct phase_event){.told = VT_TOLD_API, .name = name, .domain = ""};
}

__attribute__((visibility("default"))) void vramtrace_mark(const char *name)
{
	struct phase_event event = told(name);

	if (name)
		phases_mark(&event);
}

__attribute__((visibility("default"))) void vramtrace_phase_begin(const char *name)
{
	struct phase_event event = told(name);

	if (name)
		phases_begin(&event);
}

__attribute__((visibility("default"))) void vramtrace_phase_end(const char *name)
{
	struct phase_event event = told(name);

	if (name)
		phases_end(&event);
}

void api_forget(void)
{
	pthread_mutex_init(&pools.lock, NULL);
}
