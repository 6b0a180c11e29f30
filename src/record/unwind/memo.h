/*
 * Remembered walks. One is as good as new when the start is the same and every word that the walk
 * read still has its value. The words are compared in the order in which they were read, so none is
 * looked at that a walk would not look at too.
 */
#ifndef VRAMTRACE_RECORD_UNWIND_MEMO_H
#define VRAMTRACE_RECORD_UNWIND_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/unwind/area.h"
#include "record/unwind/walk.h"

/* Everything in a table begins at a multiple of this: a cache line. */
#define MEMO_UNIT_BYTES 64u

#define MEMO_BLOCK_LOADS 5

struct memo_block {
	uint64_t value[MEMO_BLOCK_LOADS];
	int32_t offset[MEMO_BLOCK_LOADS]; /* from the start's cfa */
	uint32_t unused;
};

/* One remembered walk: this, its blocks, its frames. */
struct memo {
	uint64_t id; /* no other walk of the process has it */
	struct walk_start start;
	uint64_t rbp_mask; /* all ones when the start's rbp matters, else 0 */
	uint64_t hash;	   /* of the trail */
	uint32_t n_blocks;
	uint16_t n_frames;
	uint16_t next; /* in its chain; 0: the last */
	bool has_gap;
	uint8_t pad[7];
	struct memo_block blocks[];
};

/* What came last time, and the time before, after the same walk and at the same cfa. */
struct memo_guess {
	uint16_t first, second;
};

/* One thread's walks, in one stretch of memory: this header, the guesses, the chains by start, the
 * numbers by hash, the walks. Walks have 16-bit numbers, 0: none. */
struct memo_table {
	uint32_t n_slots;  /* of each of the three: a power of two */
	uint32_t shift;	   /* from a 64-bit hash to a slot */
	uint32_t n_units;  /* of the whole stretch */
	uint32_t used;	   /* units */
	uint64_t previous; /* number of the last walk that was found or added */
	uint8_t pad[40];
	struct memo_guess guesses[];
};

/* An empty table. NULL: there is no memory. */
struct memo_table *memo_new(void);

void memo_free(struct memo_table *table);

/* Forgets all walks. */
void memo_clear(struct memo_table *table);

/* Looks where walks from this start were found before. NULL: no luck. */
const struct memo *memo_find(struct memo_table *table, const struct walk_start *start);

/* Looks for the walk that has just been made. hash: trail_hash. NULL: it is not remembered. */
const struct memo *memo_find_walked(
	struct memo_table *table, uint64_t hash, const struct walk_start *start);

/* Remembers a walk, which must not be remembered yet. The table may move, and may have to forget
 * all others first. NULL: it is one that cannot be remembered. */
const struct memo *memo_add(struct memo_table **table, const struct trail *trail, uint64_t hash,
	const struct walk_start *start);

static inline const uint64_t *memo_frames(const struct memo *memo)
{
	return (const uint64_t *)(memo->blocks + memo->n_blocks);
}

static inline const struct memo *memo_at(const struct memo_table *table, uint32_t number)
{
	return (const struct memo *)((const char *)table + (size_t)number * MEMO_UNIT_BYTES);
}

/* Where to look first, given which walk came last: programs repeat themselves. */
static inline struct memo_guess *memo_guess_of(struct memo_table *table, uint64_t cfa)
{
	uint64_t hash = (cfa + table->previous * 0xd1342543de82ef95u) * 0x9e3779b97f4a7c15u;

	return &table->guesses[hash >> table->shift];
}

/* Whether a walk from here now would be this one. */
AREA_RAW static inline bool memo_holds(const struct memo *memo, const struct walk_start *start)
{
	const struct memo_block *block = memo->blocks, *end = block + memo->n_blocks;
	const char *cfa = (const char *)(uintptr_t)start->cfa;

	if (memo->start.cfa != start->cfa || memo->start.ip != start->ip ||
		(memo->start.rbp ^ start->rbp) & memo->rbp_mask)
		return false;
	for (; block < end; block++) {
#define DIFFERS(i) *(const volatile uint64_t *)(cfa + block->offset[i]) != block->value[i]
		if (DIFFERS(0) || DIFFERS(1) || DIFFERS(2) || DIFFERS(3) || DIFFERS(4))
			return false;
#undef DIFFERS
	}
	return true;
}

/* The walk that is likely to be meant. NULL: it is not that one. */
AREA_RAW static inline const struct memo *memo_guess(
	struct memo_table *table, const struct walk_start *start)
{
	uint16_t number = memo_guess_of(table, start->cfa)->first;
	const struct memo *memo = memo_at(table, number);

	if (!number || !memo_holds(memo, start))
		return NULL;
	table->previous = number;
	return memo;
}

#endif
