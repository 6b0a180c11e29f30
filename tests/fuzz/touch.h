/* Reads every byte that a decoded record points to, so that a sanitizer sees a pointer that leads
 * nowhere. */
#ifndef TESTS_FUZZ_TOUCH_H
#define TESTS_FUZZ_TOUCH_H

#include "trace/reader.h"
#include "trace/schema.h"

/* A sum over the record, of no meaning: it keeps the reads from being left out. */
static inline uint64_t record_touch(const struct vt_record *record)
{
	const struct vt_schema *schema = vt_schema_get(record->kind);
	uint64_t sum = record->time_ns;

	for (size_t i = 0; schema && i < schema->n_fields; i++) {
		const void *at = (const char *)record + VT_RECORD_BASE + schema->fields[i].offset;
		const struct vt_text *text = at;
		const struct vt_list *list = at;

		switch (schema->fields[i].type) {
		case VT_FIELD_TEXT:
			for (size_t n = 0; n < text->bytes; n++)
				sum = sum * 31 + (unsigned char)text->data[n];
			break;
		case VT_FIELD_LIST:
			for (size_t n = 0; n < list->n_items; n++)
				sum = sum * 31 + list->items[n];
			break;
		default:
			sum = sum * 31 + *(const uint64_t *)at;
		}
	}
	return sum;
}

#endif
