#include "record/unwind/rows.h"

#include <string.h>

#include "record/unwind/pages.h"
#include "record/unwind/row.h"

#define FIRST_SLOTS 2048u
#define MAX_SLOTS   (1u << 17)

/* No code is there. */
#define NO_PC UINT64_MAX

static uint32_t slot_of(const struct rows *rows, uint64_t pc)
{
	return (uint32_t)((pc * 0x9e3779b97f4a7c15u) >> 32) & (rows->n_slots - 1);
}

static size_t index_bytes(uint32_t n_slots)
{
	return n_slots * sizeof(uint32_t);
}

static size_t entry_bytes(uint32_t n_slots)
{
	return n_slots / 2 * sizeof(struct row_entry);
}

void rows_init(struct rows *rows, row_function *row_of)
{
	*rows = (struct rows){.row_of = row_of};
}

void rows_clear(struct rows *rows)
{
	if (!rows->n_slots)
		return;
	memset(rows->index, 0, index_bytes(rows->n_slots));
	rows->entries[0] = (struct row_entry){.pc = NO_PC, .row = ROW_BAD};
	rows->n_entries = 1;
	rows->full = false;
}

void rows_release(struct rows *rows)
{
	if (rows->n_slots) {
		pages_give(rows->entries, entry_bytes(rows->n_slots));
		pages_give(rows->index, index_bytes(rows->n_slots));
	}
	rows_init(rows, rows->row_of);
}

static void enter(struct rows *rows, uint32_t number)
{
	uint32_t slot = slot_of(rows, rows->entries[number].pc);

	while (rows->index[slot])
		slot = (slot + 1) & (rows->n_slots - 1);
	rows->index[slot] = number;
}

static bool resize(struct rows *rows, uint32_t n_slots)
{
	struct row_entry *entries = pages_take(entry_bytes(n_slots));
	uint32_t *index = pages_take(index_bytes(n_slots));
	struct rows bigger = {entries, index, 0, n_slots, rows->row_of, false};

	if (!entries || !index) {
		if (entries)
			pages_give(entries, entry_bytes(n_slots));
		if (index)
			pages_give(index, index_bytes(n_slots));
		return false;
	}
	rows_clear(&bigger);
	if (rows->n_entries) {
		memcpy(entries, rows->entries, rows->n_entries * sizeof(*entries));
		bigger.n_entries = rows->n_entries;
		for (uint32_t i = 1; i < bigger.n_entries; i++)
			enter(&bigger, i);
	}
	rows_release(rows);
	*rows = bigger;
	return true;
}

bool rows_prepare(struct rows *rows)
{
	return rows->n_slots || resize(rows, FIRST_SLOTS);
}

static uint32_t add(struct rows *rows, uint64_t pc)
{
	uint32_t number = rows->n_entries;

	if (number == rows->n_slots / 2 &&
		(rows->n_slots == MAX_SLOTS || !resize(rows, rows->n_slots * 2))) {
		rows->full = true;
		return 0;
	}
	rows->entries[number] = (struct row_entry){.pc = pc, .row = rows->row_of(pc)};
	rows->n_entries++;
	enter(rows, number);
	return number;
}

uint32_t rows_seek(struct rows *rows, uint32_t before, uint64_t pc)
{
	uint32_t slot = slot_of(rows, pc), number;

	while ((number = rows->index[slot]) && rows->entries[number].pc != pc)
		slot = (slot + 1) & (rows->n_slots - 1);
	if (!number)
		number = add(rows, pc);
	rows->entries[before].next = number;
	return number;
}
