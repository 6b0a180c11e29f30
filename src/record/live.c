#include "record/live.h"

#include <pthread.h>
#include <stdio.h>

#include "record/table.h"

#define N_SHARDS 64u

struct live_entry {
	uint64_t key;
	uint64_t bytes;
	uint64_t stack_id;
	uint64_t time_ns;
	enum vt_kind kind;
	UT_hash_handle hh;
};

struct shard {
	pthread_mutex_t lock;
	struct arena arena;	    /* lock */
	struct live_entry *entries; /* lock */
} __attribute__((aligned(64)));

/* All zero is how glibc initialises a mutex: a process without CUDA need not touch these pages. */
static struct shard shards[LIVE_N_SPACES][N_SHARDS];
static _Atomic uint64_t live_bytes;
static _Atomic uint64_t peak_bytes;
static _Atomic uint64_t n_live;

static struct shard *shard_of(enum live_space space, uint64_t key)
{
	return &shards[space][(key * 0x9e3779b97f4a7c15u) >> 58];
}

/* Host and managed memory is not the device's, shared memory is another's: the line at exit is
 * about the device. */
static bool on_device(enum vt_kind kind)
{
	return kind != VT_KIND_PINNED && kind != VT_KIND_REGISTERED && kind != VT_KIND_MANAGED &&
	       kind != VT_KIND_SHARED;
}

static void count_added(const struct live_entry *entry)
{
	uint64_t now, peak;

	if (!on_device(entry->kind))
		return;
	now = atomic_fetch_add_explicit(&live_bytes, entry->bytes, memory_order_relaxed) +
	      entry->bytes;
	atomic_fetch_add_explicit(&n_live, 1, memory_order_relaxed);
	peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
	while (now > peak && !atomic_compare_exchange_weak_explicit(&peak_bytes, &peak, now,
				     memory_order_relaxed, memory_order_relaxed))
		;
}

static void count_removed(const struct live_entry *entry)
{
	if (!on_device(entry->kind))
		return;
	atomic_fetch_sub_explicit(&live_bytes, entry->bytes, memory_order_relaxed);
	atomic_fetch_sub_explicit(&n_live, 1, memory_order_relaxed);
}

void live_add(enum live_space space, uint64_t key, uint64_t bytes, enum vt_kind kind,
	uint64_t stack_id, uint64_t time_ns)
{
	struct shard *shard = shard_of(space, key);
	struct arena *arena = &shard->arena;
	struct live_entry *entry;
	bool added = true;

	pthread_mutex_lock(&shard->lock);
	HASH_FIND(hh, shard->entries, &key, sizeof(key), entry);
	if (entry) {
		/* Its free was not seen, or is about to be. */
		count_removed(entry);
	} else {
		entry = arena_alloc(arena, sizeof(*entry));
		if (entry) {
			entry->key = key;
			HASH_ADD(hh, shard->entries, key, sizeof(key), entry);
			if (!added) {
				arena_free(arena, entry, sizeof(*entry));
				entry = NULL;
			}
		}
	}
	if (entry) {
		entry->bytes = bytes;
		entry->kind = kind;
		entry->stack_id = stack_id;
		entry->time_ns = time_ns;
		count_added(entry);
	}
	pthread_mutex_unlock(&shard->lock);
}

void live_remove(enum live_space space, uint64_t key, uint64_t time_ns)
{
	struct shard *shard = shard_of(space, key);
	struct arena *arena = &shard->arena;
	struct live_entry *entry;

	pthread_mutex_lock(&shard->lock);
	HASH_FIND(hh, shard->entries, &key, sizeof(key), entry);
	if (entry && entry->time_ns <= time_ns) {
		count_removed(entry);
		HASH_DELETE(hh, shard->entries, entry);
		arena_free(arena, entry, sizeof(*entry));
	}
	pthread_mutex_unlock(&shard->lock);
}

void live_summarise(struct live_summary *out)
{
	out->live_bytes = atomic_load_explicit(&live_bytes, memory_order_relaxed);
	out->peak_bytes = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
	out->n_live = atomic_load_explicit(&n_live, memory_order_relaxed);
}

void live_forget(void)
{
	memset(shards, 0, sizeof(shards));
	for (unsigned int space = 0; space < LIVE_N_SPACES; space++)
		for (unsigned int i = 0; i < N_SHARDS; i++)
			pthread_mutex_init(&shards[space][i].lock, NULL);
	atomic_store_explicit(&live_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&peak_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&n_live, 0, memory_order_relaxed);
}

void live_format_bytes(char *out, size_t size, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	uint64_t tenths = bytes * 10 / 1024;
	unsigned int unit = 0;

	if (bytes < 1024) {
		snprintf(out, size, "%u B", (unsigned int)bytes);
		return;
	}
	for (; tenths >= 10240 && unit < 3; unit++)
		tenths /= 1024;
	snprintf(out, size, "%u.%u %s", (unsigned int)(tenths / 10), (unsigned int)(tenths % 10),
		units[unit]);
}
