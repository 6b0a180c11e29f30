/* Decoding the records of one chunk, as the schema of their file describes them. For the reader. */
#ifndef VRAMTRACE_TRACE_DECODE_H
#define VRAMTRACE_TRACE_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/codec.h"
#include "trace/near.h"
#include "trace/schema.h"
#include "vramtrace/format.h"

#define DECODE_MAX_FIELDS 32u
#define DECODE_MAX_LISTS  2u /* in one record */

struct decode_cursor;

/* How the file describes one kind of record. */
struct decode_layout {
	const struct vt_schema *schema; /* NULL: a kind this version does not know */
	const uint8_t *(*decode)(
		struct decode_cursor *, const uint8_t *); /* NULL: field by field */
	size_t record_bytes; /* of struct vt_record that it fills, from the start */
	size_t missing_from; /* where the fields begin that the file does not have */
	uint8_t n_fields;    /* 0: not in the file's schema */
	uint8_t types[DECODE_MAX_FIELDS];
};

/* One chunk being read, one record ahead. */
struct decode_cursor {
	const uint8_t *at;
	const uint8_t *end;
	struct vt_delta delta;
	struct vt_record ahead;
	bool cut; /* the file ends before the chunk does */
	/* The lists of `ahead`, in order. */
	struct {
		uint64_t *items;
		size_t size;
	} lists[DECODE_MAX_LISTS];
	size_t n_lists;
	struct vt_near_places *places; /* named by blocks; NULL: none yet */
};

/* After schema, n_fields and types of the record `number` were set: sets the rest. False: it has no
 * fields. */
bool decode_layout_end(struct decode_layout *layout, unsigned int number);

/* Decodes the chunk's next record of a kind that this version knows into cursor->ahead; those of
 * others are counted in *n_unknown. layouts has VT_N_RECORDS items. 1: done, 0: end of the chunk,
 * -1: nonsense. */
int decode_next(
	struct decode_cursor *cursor, const struct decode_layout *layouts, uint64_t *n_unknown);

/* Frees the cursor, which may be NULL, and what it holds. */
void decode_cursor_free(struct decode_cursor *cursor);

#endif
