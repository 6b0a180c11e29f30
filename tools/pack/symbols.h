/* The names of a trace's addresses, written into it and read from it. */
#ifndef VRAMTRACE_PACK_SYMBOLS_H
#define VRAMTRACE_PACK_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"
#include "symbol/symbol.h"

/* Whole chunks full of symbol records. */
struct symbol_chunks {
	uint8_t *data;
	size_t bytes;
	size_t n_chunks;
	size_t n_addresses; /* that have a name or a line */
};

/*
 * Makes chunks, each of chunk_bytes, sealed and with this lane and time, with all that symbols
 * knows of the return addresses in model's stacks; each address of a module once. To be freed
 * with symbol_chunks_release. time_ns is to be later than every module record.
 */
void symbol_chunks_make(struct symbol_chunks *chunks, const struct model *model,
	struct symbol_table *symbols, uint32_t chunk_bytes, uint32_t lane, uint64_t time_ns);
void symbol_chunks_release(struct symbol_chunks *chunks);

/* The schema text of a trace that gets such chunks: `schema` (bytes long) and what it lacks. To be
 * freed; *out_bytes is its length. */
char *symbol_schema(const char *schema, size_t bytes, size_t *out_bytes);

/* More functions than this at one address are left out: no compiler inlines so deep. */
#define SYMBOL_MAX_DEPTH 64u

/* Symbol records being read: those of one address follow one another. All zero at the start, but
 * for the table. */
struct symbol_reader {
	struct symbol_table *table; /* borrowed */
	uint64_t address;
	uint64_t as_of_ns;
	size_t n_frames;
	struct symbol_frame frames[SYMBOL_MAX_DEPTH]; /* texts to be freed */
};

/* Takes in one record. */
void symbol_reader_add(struct symbol_reader *reader, const struct vt_rec_symbol *record);

/* Gives what was read to the table; to be called once all records were added. */
void symbol_reader_end(struct symbol_reader *reader);

#endif
