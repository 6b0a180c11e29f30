/*
 * The records of records.def as data: which fields, of which type, where in the record's struct.
 * The reader decodes, and the CLI's dump prints, from these tables; the same list as text stands in
 * every trace.
 */
#ifndef VRAMTRACE_TRACE_SCHEMA_H
#define VRAMTRACE_TRACE_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#include "vramtrace/format.h"

/* Field types, as written in the schema text. */
enum vt_field_type {
	VT_FIELD_TIME = 'T',
	VT_FIELD_NUMBER = 'N',
	VT_FIELD_SIGNED = 'S',
	VT_FIELD_ADDR = 'A',
	VT_FIELD_TEXT = 'X',
	VT_FIELD_LIST = 'L',
};

struct vt_field {
	enum vt_field_type type;
	size_t offset; /* in struct vt_rec_<name> */
	const char *name;
};

struct vt_schema {
	const char *name;
	const struct vt_field *fields;
	size_t n_fields;
};

/* Where the union of struct vt_record begins: the fields of a decoded record lie at this offset
 * plus their own. */
#define VT_RECORD_BASE offsetof(struct vt_record, process)

/* The record numbered kind, or NULL when this version knows none. A constant. */
const struct vt_schema *vt_schema_get(unsigned int kind);

/* The schema text of this version: one line a record, "number name T:field N:field ...\n". Ends
 * with a zero byte. */
extern const char vt_schema_text[];
extern const size_t vt_schema_text_bytes; /* without the zero byte */

#endif
