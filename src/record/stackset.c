#include "record/stackset.h"

#include <pthread.h>
#include <stdatomic.h>

#include "record/session.h"
#include "record/table.h"

#define N_SHARDS 16u

struct stackset_entry {
	uint64_t id;
	uint32_t hash;
	uint32_t n_frames;
	UT_hash_handle hh;
	uint64_t frames[];
};

struct shard {
	pthread_mutex_t lock;
	struct arena arena;		/* lock */
	struct stackset_entry *entries; /* lock */
} __attribute__((aligned(64)));

/* All zero is how glibc initialises a mutex: a process without CUDA need not touch these pages. */
static struct shard shards[N_SHARDS];
static _Atomic uint64_t last_id;

static bool is_stack(
	const struct stackset_entry *entry, uint32_t hash, const uint64_t *frames, size_t n_frames)
{
	return entry && entry->hash == hash && entry->n_frames == n_frames &&
	       !memcmp(entry->frames, frames, n_frames * sizeof(*frames));
}

static struct stackset_entry *find_or_add(
	struct shard *shard, uint32_t hash, const uint64_t *frames, size_t n_frames, bool *is_new)
{
	struct arena *arena = &shard->arena;
	size_t bytes = n_frames * sizeof(*frames);
	struct stackset_entry *entry;
	bool added = true;

	HASH_FIND_BYHASHVALUE(hh, shard->entries, frames, bytes, hash, entry);
	if (entry)
		return entry;
	entry = arena_alloc_forever(arena, sizeof(*entry) + bytes);
	if (!entry)
		return NULL;
	entry->hash = hash;
	entry->n_frames = (uint32_t)n_frames;
	memcpy(entry->frames, frames, bytes);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, shard->entries, entry->frames, bytes, hash, entry);
	if (!added)
		return NULL;
	entry->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
	*is_new = true;
	return entry;
}

uint64_t stackset_intern(const uint64_t *frames, size_t n_frames, bool *is_new)
{
	uint32_t hash;
	struct stackset_entry **recent, *entry;
	struct shard *shard;

	*is_new = false;
	if (!n_frames)
		return 0;
	hash = table_hash(frames, n_frames * sizeof(*frames));
	recent = &session_thread.stacks[hash % SESSION_STACK_CACHE];
	if (is_stack(*recent, hash, frames, n_frames))
		return (*recent)->id;
	shard = &shards[(hash >> 16) % N_SHARDS];
	pthread_mutex_lock(&shard->lock);
	entry = find_or_add(shard, hash, frames, n_frames, is_new);
	pthread_mutex_unlock(&shard->lock);
	if (!entry)
		return 0;
	*recent = entry;
	return entry->id;
}

void stackset_forget(void)
{
	memset(shards, 0, sizeof(shards));
	for (unsigned int i = 0; i < N_SHARDS; i++)
		pthread_mutex_init(&shards[i].lock, NULL);
	atomic_store_explicit(&last_id, 0, memory_order_relaxed);
}
