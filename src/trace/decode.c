#include "trace/decode.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LIST 8192u

/* A number of which at least VT_NUMBER_MAX bytes are there. */
static inline bool decode_near(const uint8_t **p, uint64_t *value)
{
	const uint64_t more = 0x8080808080808080u;
	uint64_t word, ends;
	unsigned int bits;

	if (!(**p & 0x80)) {
		*value = *(*p)++;
		return true;
	}
	memcpy(&word, *p, sizeof(word));
	word = le64toh(word);
	ends = ~word & more;
	if (!ends)
		return vt_decode_number(p, *p + VT_NUMBER_MAX, value);
	bits = (unsigned int)__builtin_ctzll(ends) + 1;
	*p += bits / 8;
	/* Seven bits of each byte move together: by twos, by fours, by eights. */
	word &= UINT64_MAX >> (64 - bits) & ~more;
	word = (word & 0x007f007f007f007fu) | (word & 0x7f007f007f007f00u) >> 1;
	word = (word & 0x00003fff00003fffu) | (word & 0x3fff00003fff0000u) >> 2;
	*value = (word & 0x0fffffffu) | (word & 0x0fffffff00000000u) >> 4;
	return true;
}

#define DECODE_TIME   delta.time_ns += (uint64_t)vt_unzigzag(value), delta.time_ns
#define DECODE_NUMBER value
#define DECODE_SIGNED vt_unzigzag(value)
#define DECODE_ADDR   delta.address += (uint64_t)vt_unzigzag(value), delta.address

/*
 * decode_<record>(cursor, p): what decode_ahead does, for records of numbers whose fields in the
 * file are those of this version. Returns the end of the record; NULL, with nothing changed but
 * the fields, where it might end behind the chunk or holds something else than numbers.
 */
#define DECODE_FIELD_TEXT(name) return NULL;
#define DECODE_FIELD_LIST(name) return NULL;
#define DECODE_FIELD(type, name)                                                                   \
	if (!decode_near(&p, &value))                                                              \
		return NULL;                                                                       \
	out->name = (DECODE_##type);
#define DECODE_FIELD_TIME(name)	  DECODE_FIELD(TIME, name)
#define DECODE_FIELD_NUMBER(name) DECODE_FIELD(NUMBER, name)
#define DECODE_FIELD_SIGNED(name) DECODE_FIELD(SIGNED, name)
#define DECODE_FIELD_ADDR(name)	  DECODE_FIELD(ADDR, name)

#define RECORD(number, rec, doc)                                                                   \
	static const uint8_t *decode_##rec(struct decode_cursor *cursor, const uint8_t *p)         \
	{                                                                                          \
		struct vt_rec_##rec *out = &cursor->ahead.rec;                                     \
		struct vt_delta delta = cursor->delta;                                             \
		uint64_t value;                                                                    \
		if ((size_t)(cursor->end - p) < sizeof(*out) / sizeof(value) * VT_NUMBER_MAX)      \
			return NULL;
#define FIELD(type, name, doc) DECODE_FIELD_##type(name)
#define END_RECORD(rec)                                                                            \
	cursor->delta = delta;                                                                     \
	return p;                                                                                  \
	}
#include "vramtrace/records.def"

static __typeof__(decode_process) *const decoders[VT_N_RECORDS] = {
#define RECORD(number, rec, doc) [number] = decode_##rec,
#define FIELD(type, name, doc)
#define END_RECORD(rec)
#include "vramtrace/records.def"
};

/* What of struct vt_record a kind fills: a copy of so much is a copy of the record. */
static void measure_layout(struct decode_layout *layout)
{
	const struct vt_schema *schema = layout->schema;
	const struct vt_field *last = schema ? &schema->fields[schema->n_fields - 1] : NULL;
	size_t bytes;

	if (!last)
		return;
	bytes = last->type == VT_FIELD_TEXT   ? sizeof(struct vt_text)
		: last->type == VT_FIELD_LIST ? sizeof(struct vt_list)
					      : sizeof(uint64_t);
	layout->record_bytes = VT_RECORD_BASE + last->offset + bytes;
	layout->missing_from = layout->n_fields < schema->n_fields
				       ? VT_RECORD_BASE + schema->fields[layout->n_fields].offset
				       : layout->record_bytes;
}

bool decode_layout_end(struct decode_layout *layout, unsigned int number)
{
	measure_layout(layout);
	if (layout->schema && layout->n_fields == layout->schema->n_fields)
		layout->decode = decoders[number];
	return layout->n_fields > 0;
}

void decode_cursor_free(struct decode_cursor *cursor)
{
	for (size_t i = 0; cursor && i < DECODE_MAX_LISTS; i++)
		free(cursor->lists[i].items);
	if (cursor)
		free(cursor->places);
	free(cursor);
}

static bool decode_list(struct decode_cursor *cursor, const uint8_t **p, struct vt_list *out)
{
	/* Those of a newer format that are stepped over need no place of their own. */
	size_t which =
		cursor->n_lists < DECODE_MAX_LISTS ? cursor->n_lists++ : DECODE_MAX_LISTS - 1;
	uint64_t n, last = 0, difference, *items;

	if (!vt_decode_number(p, cursor->end, &n) || n > MAX_LIST)
		return false;
	if (n > cursor->lists[which].size) {
		items = realloc(cursor->lists[which].items, n * sizeof(*items));
		if (!items)
			return false;
		cursor->lists[which].items = items;
		cursor->lists[which].size = n;
	}
	items = cursor->lists[which].items;
	for (uint64_t i = 0; i < n; i++) {
		if (!vt_decode_number(p, cursor->end, &difference))
			return false;
		last += (uint64_t)vt_unzigzag(difference);
		items[i] = last;
	}
	*out = (struct vt_list){items, n};
	return true;
}

/* Decodes one field to out, or steps over it when out is NULL. */
static bool decode_field(struct decode_cursor *cursor, const uint8_t **p, uint8_t type, void *out)
{
	struct vt_text text;
	struct vt_list list;
	uint64_t value;

	if (type == VT_FIELD_LIST) {
		if (!decode_list(cursor, p, &list))
			return false;
		if (out)
			memcpy(out, &list, sizeof(list));
		return true;
	}
	if (!vt_decode_number(p, cursor->end, &value))
		return false;
	switch (type) {
	case VT_FIELD_TIME:
		value = cursor->delta.time_ns += (uint64_t)vt_unzigzag(value);
		break;
	case VT_FIELD_ADDR:
		value = cursor->delta.address += (uint64_t)vt_unzigzag(value);
		break;
	case VT_FIELD_SIGNED:
		value = (uint64_t)vt_unzigzag(value);
		break;
	case VT_FIELD_TEXT:
		if (value > (uint64_t)(cursor->end - *p))
			return false;
		text = (struct vt_text){(const char *)*p, value};
		*p += value;
		if (out)
			memcpy(out, &text, sizeof(text));
		return true;
	default:
		break;
	}
	if (out)
		memcpy(out, &value, sizeof(value));
	return true;
}

/* Decodes the fields of a record field by field. Returns the end of the record, or NULL. */
static const uint8_t *decode_fields(
	struct decode_cursor *cursor, const struct decode_layout *layout, const uint8_t *p)
{
	uint8_t *record = (uint8_t *)&cursor->ahead;

	/* What is missing is 0. */
	memset(record + layout->missing_from, 0, layout->record_bytes - layout->missing_from);
	cursor->n_lists = 0;
	for (size_t i = 0; i < layout->n_fields; i++) {
		bool known = layout->schema && i < layout->schema->n_fields;
		void *out =
			known ? record + VT_RECORD_BASE + layout->schema->fields[i].offset : NULL;

		if (!decode_field(cursor, &p, layout->types[i], out))
			return NULL;
	}
	return p;
}

/* A block: what it says of places is kept, and it is turned into what it stands for. */
static bool settle_block(struct decode_cursor *cursor)
{
	struct vt_record *record = &cursor->ahead;

	if (!cursor->places)
		cursor->places = calloc(1, sizeof(*cursor->places));
	if (!cursor->places)
		return false;
	if (vt_near_is(record->kind))
		return vt_near_expand(cursor->places, record, &cursor->delta);
	cursor->places->allocator_id = record->kind == VT_REC_block_alloc
					       ? record->block_alloc.allocator_id
					       : record->block_free.allocator_id;
	return true;
}

static bool is_block(enum vt_record_kind kind)
{
	return vt_near_is(kind) || kind == VT_REC_block_alloc || kind == VT_REC_block_free;
}

int decode_next(
	struct decode_cursor *cursor, const struct decode_layout *layouts, uint64_t *n_unknown)
{
	struct vt_record *record = &cursor->ahead;

	while (cursor->at < cursor->end) {
		const uint8_t *at = cursor->at + 1, *p = NULL;
		uint8_t kind = *cursor->at;
		const struct decode_layout *layout = kind < VT_N_RECORDS ? &layouts[kind] : NULL;

		if (!layout || !layout->n_fields)
			return -1;
		if (layout->decode)
			p = layout->decode(cursor, at);
		if (!p)
			p = decode_fields(cursor, layout, at);
		if (!p)
			return -1;
		record->kind = kind;
		if (is_block(kind) && !settle_block(cursor))
			return -1;
		cursor->at = p;
		record->time_ns = cursor->delta.time_ns;
		if (kind == VT_REC_thread)
			record->tid = (uint32_t)record->thread.tid;
		if (layout->schema)
			return 1;
		(*n_unknown)++;
	}
	return 0;
}
