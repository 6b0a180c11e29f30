#include "record/unwind/memo.h"

#include <stdatomic.h>
#include <string.h>

#include "record/unwind/pages.h"

#define FIRST_BYTES ((size_t)64 << 10)
#define MAX_BYTES   ((size_t)4 << 20)

/* Walks that start alike: more are not looked at. */
#define MAX_CHAIN 8

static _Atomic uint64_t last_id;

static size_t table_bytes(const struct memo_table *table)
{
	return (size_t)table->n_units * MEMO_UNIT_BYTES;
}

static uint16_t *chain_of(struct memo_table *table, uint64_t cfa)
{
	uint16_t *chains = (uint16_t *)(table->guesses + table->n_slots);

	return &chains[cfa * 0x9e3779b97f4a7c15u >> table->shift];
}

static uint16_t *number_of(struct memo_table *table, uint64_t hash)
{
	uint16_t *numbers = (uint16_t *)(table->guesses + table->n_slots) + table->n_slots;

	return &numbers[hash >> table->shift];
}

static struct memo *get(struct memo_table *table, uint32_t number)
{
	return (struct memo *)((char *)table + (size_t)number * MEMO_UNIT_BYTES);
}

static uint32_t units_of(size_t bytes)
{
	return (uint32_t)((bytes + MEMO_UNIT_BYTES - 1) / MEMO_UNIT_BYTES);
}

static size_t slots_bytes(const struct memo_table *table)
{
	return table->n_slots * (sizeof(*table->guesses) + 2 * sizeof(uint16_t));
}

static uint32_t first_free(const struct memo_table *table)
{
	return units_of(sizeof(*table) + slots_bytes(table));
}

static struct memo_table *make(size_t bytes)
{
	struct memo_table *table = pages_take(bytes);

	if (!table)
		return NULL;
	table->n_units = (uint32_t)(bytes / MEMO_UNIT_BYTES);
	table->n_slots = table->n_units;
	table->shift = (uint32_t)(64 - __builtin_ctz(table->n_slots));
	memo_clear(table);
	return table;
}

struct memo_table *memo_new(void)
{
	return make(FIRST_BYTES);
}

void memo_free(struct memo_table *table)
{
	pages_give(table, table_bytes(table));
}

void memo_clear(struct memo_table *table)
{
	memset(table->guesses, 0, slots_bytes(table));
	table->used = first_free(table);
	table->previous = 0;
}

static uint32_t size_of(const struct memo *memo)
{
	return units_of(sizeof(*memo) + memo->n_blocks * sizeof(*memo->blocks) +
			memo->n_frames * sizeof(uint64_t));
}

static void enter(struct memo_table *table, uint32_t number)
{
	struct memo *memo = get(table, number);
	uint16_t *chain = chain_of(table, memo->start.cfa);

	memo->next = *chain;
	*chain = (uint16_t)number;
	*number_of(table, memo->hash) = (uint16_t)number;
}

/* The same walks in twice the memory. */
static struct memo_table *grow(struct memo_table *table)
{
	struct memo_table *bigger =
		table_bytes(table) < MAX_BYTES ? make(2 * table_bytes(table)) : NULL;

	if (!bigger)
		return NULL;
	for (uint32_t at = first_free(table); at < table->used;) {
		uint32_t n_units = size_of(memo_at(table, at));

		memcpy(get(bigger, bigger->used), memo_at(table, at),
			(size_t)n_units * MEMO_UNIT_BYTES);
		enter(bigger, bigger->used);
		bigger->used += n_units;
		at += n_units;
	}
	memo_free(table);
	return bigger;
}

static const struct memo *found(struct memo_table *table, uint16_t number)
{
	const struct memo *memo = memo_at(table, number);

	struct memo_guess *guess = memo_guess_of(table, memo->start.cfa);

	if (guess->first != number)
		*guess = (struct memo_guess){number, guess->first};
	table->previous = number;
	return memo;
}

static bool is_there(
	const struct memo_table *table, uint32_t number, const struct walk_start *start)
{
	return number && memo_holds(memo_at(table, number), start);
}

const struct memo *memo_find(struct memo_table *table, const struct walk_start *start)
{
	uint16_t *chain = chain_of(table, start->cfa), *link = chain;
	uint16_t second = memo_guess_of(table, start->cfa)->second;

	if (is_there(table, second, start))
		return found(table, second);
	if (is_there(table, (uint32_t)table->previous, start))
		return found(table, (uint16_t)table->previous);
	for (unsigned int i = 0; i < MAX_CHAIN && *link; i++) {
		uint16_t number = *link;
		struct memo *memo = get(table, number);

		if (memo_holds(memo, start)) {
			*link = memo->next;
			memo->next = *chain;
			*chain = number;
			return found(table, number);
		}
		link = &memo->next;
	}
	return NULL;
}

const struct memo *memo_find_walked(
	struct memo_table *table, uint64_t hash, const struct walk_start *start)
{
	uint16_t number = *number_of(table, hash);
	const struct memo *memo = memo_at(table, number);

	return memo->hash == hash && is_there(table, number, start) ? found(table, number) : NULL;
}

static void put_load(struct memo_block *blocks, uint32_t n, const struct walk_load *load)
{
	struct memo_block *block = &blocks[n / MEMO_BLOCK_LOADS];

	block->value[n % MEMO_BLOCK_LOADS] = load->value;
	block->offset[n % MEMO_BLOCK_LOADS] = (int32_t)(load->place & ~(int64_t)WALK_NEEDED);
}

/* Fills the blocks with the loads that are needed, the last one repeated. Returns how many blocks;
 * 0 when there is no load, or one out of reach. blocks may be NULL: then they are only counted. */
static uint32_t pack(const struct trail *trail, struct memo_block *blocks)
{
	const struct walk_load *last = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < trail->n_loads; i++) {
		const struct walk_load *load = &trail->loads[i];

		if (!(load->place & WALK_NEEDED))
			continue;
		if (load->place != (int32_t)load->place)
			return 0;
		last = load;
		if (blocks)
			put_load(blocks, n, load);
		n++;
	}
	for (; last && n % MEMO_BLOCK_LOADS; n++)
		if (blocks)
			put_load(blocks, n, last);
	return n / MEMO_BLOCK_LOADS;
}

static bool make_room(struct memo_table **table, uint32_t n_units)
{
	while ((*table)->used + n_units > (*table)->n_units) {
		struct memo_table *bigger = grow(*table);

		if (bigger) {
			*table = bigger;
			continue;
		}
		memo_clear(*table);
		return (*table)->used + n_units <= (*table)->n_units;
	}
	return true;
}

const struct memo *memo_add(struct memo_table **table, const struct trail *trail, uint64_t hash,
	const struct walk_start *start)
{
	struct memo header = {.start = *start,
		.rbp_mask = trail->rbp_matters ? UINT64_MAX : 0,
		.has_gap = trail->has_gap,
		.hash = hash,
		.n_blocks = pack(trail, NULL),
		.n_frames = (uint16_t)trail->n_frames};
	struct memo *memo;
	uint32_t number;

	if (!header.n_blocks || !make_room(table, size_of(&header)))
		return NULL;
	number = (*table)->used;
	memo = get(*table, number);
	*memo = header;
	memo->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
	pack(trail, memo->blocks);
	memcpy(memo->blocks + memo->n_blocks, trail->frames,
		trail->n_frames * sizeof(*trail->frames));
	(*table)->used += size_of(memo);
	enter(*table, number);
	return found(*table, (uint16_t)number);
}
