#include "record/stackset.h"

#include <pthread.h>
#include <stdatomic.h>

#include "record/notes.h"
#include "record/options.h"
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

static bool is_equal(const uint64_t *a, const uint64_t *b, size_t n)
{
	return !memcmp(a, b, n * sizeof(*a));
}

/* Whether the thread met this stack last at its place. The native words of one with a number need
 * not be looked at. */
static bool is_recent(const struct session_stack *recent, const struct stackset_key *key)
{
	const struct stackset_entry *entry = recent->entry;

	return entry && recent->native_id == key->native_id &&
	       entry->n_words == key->n_native + key->n_rest &&
	       is_equal(entry->words + key->n_native, key->rest, key->n_rest) &&
	       (key->native_id || is_equal(entry->words, key->native, key->n_native));
}

static struct session_stack *place_of(const struct stackset_key *key)
{
	uint32_t hash = table_hash(key->rest, key->n_rest * sizeof(*key->rest));

	if (key->native_id)
		hash ^= (uint32_t)(key->native_id * 0x9e3779b97f4a7c15u >> 32);
	else
		hash ^= table_hash(key->native, key->n_native * sizeof(*key->native));
	return &session_thread.stacks[hash % SESSION_STACK_CACHE];
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
	if (options.max_bytes &&
		atomic_load_explicit(&last_id, memory_order_relaxed) >= STACKSET_MOST_BOUNDED)
		return NULL;
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

static struct stackset_entry *intern(const struct stackset_key *key, bool *is_new)
{
	size_t n_words = key->n_native + key->n_rest;
	uint64_t words[STACKSET_MAX_WORDS];
	struct stackset_entry *entry;
	struct shard *shard;
	uint32_t hash;

	if (n_words > STACKSET_MAX_WORDS)
		return NULL;
	memcpy(words, key->native, key->n_native * sizeof(*words));
	memcpy(words + key->n_native, key->rest, key->n_rest * sizeof(*words));
	hash = table_hash(words, n_words * sizeof(*words));
	shard = &shards[(hash >> 16) % N_SHARDS];
	pthread_mutex_lock(&shard->lock);
	entry = find_or_add(shard, hash, words, n_words, is_new);
	pthread_mutex_unlock(&shard->lock);
	return entry;
}

uint64_t stackset_intern(const struct stackset_key *key, bool *is_new)
{
	struct session_stack *recent;
	struct stackset_entry *entry;

	*is_new = false;
	if (!(key->n_native + key->n_rest))
		return 0;
	recent = place_of(key);
	if (is_recent(recent, key))
		return recent->entry->id;
	entry = intern(key, is_new);
	if (!entry && options.max_bytes)
		notes_say(NOTE_MANY_STACKS);
	if (!entry)
		return 0;
	*recent = (struct session_stack){key->native_id, entry};
	return entry->id;
}

void stackset_forget(void)
{
	memset(shards, 0, sizeof(shards));
	for (unsigned int i = 0; i < N_SHARDS; i++)
		pthread_mutex_init(&shards[i].lock, NULL);
	atomic_store_explicit(&last_id, 0, memory_order_relaxed);
}
