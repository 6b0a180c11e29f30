#include "record/codes.h"

#include <pthread.h>
#include <stdatomic.h>

#include "record/session.h"
#include "record/table.h"
#include "trace/writer.h"

#define N_SHARDS 16u
#define N_SETS	 256u
#define N_WAYS	 2u

/* Code objects that a thread met last, by address; the newer one of a set comes first. */
struct codes_seen {
	struct codes_seen *next_idle; /* idle_lock */
	struct python_key sets[N_SETS][N_WAYS];
};

/* Two hashes over all that a code object says: 128 bits, so that equal means the same. */
struct content {
	uint64_t hash[2];
};

struct code {
	struct content content;
	uint32_t id;
	UT_hash_handle hh;
};

struct shard {
	pthread_mutex_t lock;
	struct arena arena; /* lock */
	struct code *codes; /* lock */
} __attribute__((aligned(64)));

static struct shard shards[N_SHARDS];
static _Atomic uint32_t last_id;

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static struct arena idle_arena; /* idle_lock */
static struct codes_seen *idle; /* idle_lock */

static bool is_same(const struct python_key *a, const struct python_key *b)
{
	return !((a->code ^ b->code) | (a->file ^ b->file) | (a->function ^ b->function) |
		 (a->lines ^ b->lines) | (a->content ^ b->content) |
		 (a->first_line ^ b->first_line) | (a->version ^ b->version) |
		 (a->n_line_bytes ^ b->n_line_bytes));
}

static struct codes_seen *seen_by_this_thread(void)
{
	struct codes_seen *seen = session_thread.codes;

	if (seen)
		return seen;
	pthread_mutex_lock(&idle_lock);
	seen = idle;
	if (seen)
		idle = seen->next_idle;
	else
		seen = arena_alloc_forever(&idle_arena, sizeof(*seen));
	pthread_mutex_unlock(&idle_lock);
	/* Pages of an arena start as zero, which is the address of no code object. What another
	 * thread left is as true as it was. */
	session_thread.codes = seen;
	return seen;
}

static void add_bytes(struct content *content, const void *data, size_t bytes)
{
	const char *p = data;

	do {
		size_t n = bytes < sizeof(uint64_t) ? bytes : sizeof(uint64_t);
		uint64_t word = 0;

		memcpy(&word, p, n);
		content->hash[0] = (content->hash[0] ^ word) * 0x9e3779b97f4a7c15u;
		content->hash[0] ^= content->hash[0] >> 32;
		content->hash[1] = (content->hash[1] + word) * 0xd6e8feb86659fd93u;
		content->hash[1] ^= content->hash[1] >> 29;
		p += n;
		bytes -= n;
	} while (bytes);
}

static struct content content_of(const struct python_code *code)
{
	const uint64_t sizes[] = {code->first_line, code->file.bytes, code->function.bytes};
	struct content content = {{1, 2}};

	add_bytes(&content, sizes, sizeof(sizes));
	add_bytes(&content, code->file.data, code->file.bytes);
	add_bytes(&content, code->function.data, code->function.bytes);
	add_bytes(&content, code->lines.data, code->lines.bytes);
	return content;
}

static uint32_t find_or_add(struct shard *shard, const struct content *content, bool *is_new)
{
	struct arena *arena = &shard->arena;
	bool added = true;
	struct code *code;

	HASH_FIND(hh, shard->codes, content, sizeof(*content), code);
	if (code)
		return code->id;
	code = arena_alloc_forever(arena, sizeof(*code));
	if (!code)
		return 0;
	code->content = *content;
	HASH_ADD(hh, shard->codes, content, sizeof(*content), code);
	if (!added)
		return 0;
	code->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
	*is_new = true;
	return code->id;
}

static void write_code(struct vt_lane *lane, uint32_t id, const struct python_code *code)
{
	struct vt_rec_python_code record = {
		.code_id = id,
		.first_line = code->first_line,
		.line_table = code->line_table,
		.file = code->file,
		.function = code->function,
		.lines = code->lines,
	};
	struct vt_text rest = code->lines;

	vt_put_python_code(lane, &record);
	while (rest.bytes > VT_TEXT_MAX) {
		struct vt_rec_python_lines part = {.code_id = id};

		rest.data += VT_TEXT_MAX;
		rest.bytes -= VT_TEXT_MAX;
		part.lines = rest;
		vt_put_python_lines(lane, &part);
	}
}

static uint32_t intern(const struct python *python, uint64_t address, struct vt_lane *lane)
{
	struct python_code code;
	struct content content;
	struct shard *shard;
	bool is_new = false;
	uint32_t id;

	if (!python_describe(python, address, &code))
		return 0;
	content = content_of(&code);
	shard = &shards[(content.hash[0] >> 60) % N_SHARDS];
	pthread_mutex_lock(&shard->lock);
	id = find_or_add(shard, &content, &is_new);
	pthread_mutex_unlock(&shard->lock);
	if (is_new)
		write_code(lane, id, &code);
	return id;
}

uint32_t codes_intern(const struct python *python, struct python_key *key, struct vt_lane *lane)
{
	struct codes_seen *seen = seen_by_this_thread();
	struct python_key *set;

	if (!seen)
		return 0;
	set = seen->sets[(key->code >> 4) * 0x9e3779b97f4a7c15u >> 56];
	if (is_same(&set[0], key))
		return set[0].id;
	if (is_same(&set[1], key))
		return set[1].id;
	key->id = intern(python, key->code, lane);
	if (key->id) {
		set[1] = set[0];
		set[0] = *key;
	}
	return key->id;
}

void codes_release(struct codes_seen *seen)
{
	if (!seen)
		return;
	pthread_mutex_lock(&idle_lock);
	seen->next_idle = idle;
	idle = seen;
	pthread_mutex_unlock(&idle_lock);
}

void codes_forget(void)
{
	memset(shards, 0, sizeof(shards));
	for (unsigned int i = 0; i < N_SHARDS; i++)
		pthread_mutex_init(&shards[i].lock, NULL);
	pthread_mutex_init(&idle_lock, NULL);
	memset(&idle_arena, 0, sizeof(idle_arena));
	idle = NULL;
	atomic_store_explicit(&last_id, 0, memory_order_relaxed);
}
