#include "record/stackset.h"

#include <pthread.h>
#include <stdatomic.h>

#include "record/session.h"
#include "record/table.h"

#define N_SHARDS 16u

struct stackset_entry {
	uint64_t id;
	uint32_t hash;
	uint32_t n_words;
	UT_hash_handle hh;
	uint64_t words[];
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
	const struct stackset_entry *entry, uint32_t hash, const uint64_t *words, size_t n_words)
{
	return entry && entry->hash == hash && entry->n_words == n_words &&
	       !memcmp(entry->words, words, n_words * sizeof(*words));
}

static struct stackset_entry *find_or_add(
	struct shard *shard, uint32_t hash, const uint64_t *words, size_t n_words, bool *is_new)
{
	struct arena *arena = &shard->arena;
	size_t bytes = n_words * sizeof(*words);
	struct stackset_entry *entry;
	bool added = true;

	HASH_FIND_BYHASHVALUE(hh, shard->entries, words, bytes, hash, entry);
	if (entry)
		return entry;
	entry = arena_alloc_forever(arena, sizeof(*entry) + bytes);
	if (!entry)
		return NULL;
	entry->hash = hash;
	entry->n_words = (uint32_t)n_words;
	memcpy(entry->words, words, bytes);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, shard->entries, entry->words, bytes, hash, entry);
	if (!added)
		return NULL;
	entry->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
	*is_new = true;
	return entry;
}

uint64_t stackset_intern(const uint64_t *words, size_t n_words, bool *is_new)
{
	uint32_t hash;
	struct stackset_entry **recent, *entry;
	struct shard *shard;

	*is_new = false;
	if (!n_words)
		return 0;
	hash = table_hash(words, n_words * sizeof(*words));
	recent = &session_thread.stacks[hash % SESSION_STACK_CACHE];
	if (is_stack(*recent, hash, words, n_words))
		return (*recent)->id;
	shard = &shards[(hash >> 16) % N_SHARDS];
	pthread_mutex_lock(&shard->lock);
	entry = find_or_add(shard, hash, words, n_words, is_new);
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
