#include "record/keep/internal.h"
#include "trace/schema.h"

/* The struct of each record. */
static size_t size_of(unsigned int kind)
{
	switch (kind) {
#define RECORD(number, rec, doc)                                                                   \
	case number:                                                                               \
		return sizeof(struct vt_rec_##rec);
#define FIELD(type, name, doc)
#define END_RECORD(rec)
#include "vramtrace/records.def"
	default:
		return 0;
	}
}

/* What texts and lists point to goes behind the struct. Returns how many bytes that takes; with
 * `to`, copies it there and lets the fields of the copy point to it. */
static size_t move_rest(const struct vt_schema *schema, void *copy, char *to)
{
	size_t used = 0;

	for (size_t i = 0; i < schema->n_fields; i++) {
		void *field = (char *)copy + schema->fields[i].offset;
		struct vt_text text;
		struct vt_list list;

		if (schema->fields[i].type == VT_FIELD_TEXT) {
			memcpy(&text, field, sizeof(text));
			if (to && text.bytes) {
				memcpy(to + used, text.data, text.bytes);
				text.data = to + used;
				memcpy(field, &text, sizeof(text));
			}
			used += (text.bytes + 7) / 8 * 8;
		} else if (schema->fields[i].type == VT_FIELD_LIST) {
			memcpy(&list, field, sizeof(list));
			if (to && list.n_items) {
				memcpy(to + used, list.items, list.n_items * sizeof(*list.items));
				list.items = (const uint64_t *)(const void *)(to + used);
				memcpy(field, &list, sizeof(list));
			}
			used += list.n_items * sizeof(*list.items);
		}
	}
	return used;
}

struct kept *kept_new(const struct keep_event *event)
{
	const struct vt_schema *schema = vt_schema_get(event->kind);
	size_t record_bytes = size_of(event->kind), rest, bytes;
	struct kept *kept;

	rest = move_rest(schema, (void *)(uintptr_t)event->record, NULL);
	bytes = sizeof(*kept) + record_bytes + rest;
	kept = arena_alloc(&keep.arena, bytes);
	if (!kept)
		return NULL;
	*kept = (struct kept){.time_ns = event->time_ns,
		.tid = event->tid,
		.kind = (uint16_t)event->kind,
		.bytes = bytes};
	memcpy(kept + 1, event->record, record_bytes);
	move_rest(schema, kept + 1, (char *)(kept + 1) + record_bytes);
	return kept;
}

void kept_free(struct kept *kept)
{
	if (kept)
		arena_free(&keep.arena, kept, kept->bytes);
}

void kept_replace(struct kept **at, const struct keep_event *event)
{
	kept_free(*at);
	*at = kept_new(event);
}

void *keep_alloc(size_t bytes)
{
	void *piece = arena_alloc(&keep.arena, bytes);

	if (piece)
		memset(piece, 0, bytes);
	return piece;
}

void keep_free(void *piece, size_t bytes)
{
	arena_free(&keep.arena, piece, bytes);
}
