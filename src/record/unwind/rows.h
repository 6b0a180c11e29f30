/*
 * The rows that one thread has met, and which followed which. Kept by number; number 0 stands for
 * the start of a walk and has a bad row.
 */
#ifndef VRAMTRACE_RECORD_UNWIND_ROWS_H
#define VRAMTRACE_RECORD_UNWIND_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct row_entry {
	uint64_t pc;
	uint32_t row;  /* row.h */
	uint32_t next; /* entry that came after this one last time */
};

typedef uint32_t row_function(uint64_t pc);

struct rows {
	struct row_entry *entries; /* in order of discovery */
	uint32_t *index;	   /* entry numbers by hash of pc, 0: free */
	uint32_t n_entries;
	uint32_t n_slots; /* of the index: a power of two, twice the room for entries */
	row_function *row_of;
	bool full; /* no room for more: call rows_clear before the next walk */
};

/* Empty, with no memory yet. row_of: where rows come from. */
void rows_init(struct rows *rows, row_function *row_of);

/* Makes room. False: there is no memory; walks then end in bad rows. */
bool rows_prepare(struct rows *rows);

/* Forgets all rows, keeps the memory. */
void rows_clear(struct rows *rows);

/* Gives the memory back. */
void rows_release(struct rows *rows);

/* As rows_after, when the prediction was wrong. */
uint32_t rows_seek(struct rows *rows, uint32_t before, uint64_t pc);

/* The entry of pc, which a walk reaches from entry `before`. 0 when there is no room. */
static inline uint32_t rows_after(struct rows *rows, uint32_t before, uint64_t pc)
{
	uint32_t next = rows->entries[before].next;

	return rows->entries[next].pc == pc ? next : rows_seek(rows, before, pc);
}

#endif
