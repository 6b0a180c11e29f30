#include "pack/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/hash.h"
#include "trace/schema.h"
#include "trace/writer.h"

/* One address in one module. */
struct place {
	const struct symbol_frame *frames; /* borrowed; the same only for the same place: the key */
	size_t n_frames;
	uint64_t as_of_ns;
	UT_hash_handle hh;
};

static bool is_named(const struct symbol_frame *frames, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (frames[i].function || (frames[i].file && frames[i].line))
			return true;
	return false;
}

static void add_place(
	struct place **places, const struct symbol_frame *frames, size_t n, uint64_t as_of_ns)
{
	struct place *place;

	HASH_FIND(hh, *places, &frames, sizeof(frames), place);
	if (place)
		return;
	place = memory_new(1, sizeof(*place));
	*place = (struct place){.frames = frames, .n_frames = n, .as_of_ns = as_of_ns};
	HASH_ADD(hh, *places, frames, sizeof(frames), place);
}

/* Neighbours lie close together, and traces of the same program pack to the same. */
static int compare_places(const struct place *a, const struct place *b)
{
	uint64_t x = a->frames->address, y = b->frames->address;

	if (x != y)
		return x < y ? -1 : 1;
	return (a->as_of_ns > b->as_of_ns) - (a->as_of_ns < b->as_of_ns);
}

static struct place *find_places(const struct model *model, struct symbol_table *symbols)
{
	const struct model_stack *stack;
	struct place *places = NULL;

	for (stack = model->stacks; stack; stack = stack->hh.next)
		for (size_t i = 0; i < stack->n_frames; i++) {
			const struct symbol_frame *frames;
			size_t n = symbol_table_resolve(
				symbols, stack->frames[i], stack->time_ns, &frames);

			if (is_named(frames, n))
				add_place(&places, frames, n, stack->time_ns);
		}
	HASH_SORT(places, compare_places);
	return places;
}

/* Where symbol records go. */
struct chunk_writer {
	struct symbol_chunks *chunks;
	size_t room; /* chunks there is memory for */
	uint32_t chunk_bytes;
	uint32_t lane;
	uint64_t time_ns;
	struct vt_delta delta;
};

static struct vt_chunk_header *last_chunk(const struct chunk_writer *writer)
{
	const struct symbol_chunks *chunks = writer->chunks;

	return (void *)(chunks->data + (chunks->n_chunks - 1) * writer->chunk_bytes);
}

static void seal_chunk(const struct chunk_writer *writer)
{
	struct vt_chunk_header *chunk;

	if (!writer->chunks->n_chunks)
		return;
	chunk = last_chunk(writer);
	chunk->checksum = vt_checksum((uint8_t *)(chunk + 1), chunk->used);
	chunk->sealed = 1;
}

static void next_chunk(struct chunk_writer *writer)
{
	struct symbol_chunks *chunks = writer->chunks;
	struct vt_chunk_header *chunk;

	seal_chunk(writer);
	chunks->data =
		memory_grow(chunks->data, chunks->n_chunks++, &writer->room, writer->chunk_bytes);
	chunks->bytes = chunks->n_chunks * writer->chunk_bytes;
	chunk = last_chunk(writer);
	memset(chunk, 0, writer->chunk_bytes);
	*chunk = (struct vt_chunk_header){
		.magic = VT_CHUNK_MAGIC, .lane = writer->lane, .base_time_ns = writer->time_ns};
	writer->delta = (struct vt_delta){.time_ns = writer->time_ns};
}

static struct vt_text text_of(const char *text)
{
	size_t bytes = text ? strlen(text) : 0;

	return (struct vt_text){text, bytes < VT_TEXT_MAX ? bytes : VT_TEXT_MAX};
}

static uint8_t *put_field(
	uint8_t *p, const void *value, enum vt_field_type type, struct vt_delta *delta)
{
	struct vt_text text;
	uint64_t number;

	if (type == VT_FIELD_TEXT) {
		memcpy(&text, value, sizeof(text));
		p = vt_encode_number(p, text.bytes);
		if (text.bytes)
			memcpy(p, text.data, text.bytes);
		return p + text.bytes;
	}
	memcpy(&number, value, sizeof(number));
	if (type == VT_FIELD_ADDR) {
		p = vt_encode_number(p, vt_zigzag((int64_t)(number - delta->address)));
		delta->address = number;
		return p;
	}
	return vt_encode_number(p, number);
}

static void put_symbol(struct chunk_writer *writer, const struct vt_rec_symbol *record)
{
	const struct vt_schema *schema = vt_schema_get(VT_REC_symbol);
	size_t most =
		1 + schema->n_fields * VT_NUMBER_MAX + record->function.bytes + record->file.bytes;
	struct vt_chunk_header *chunk;
	uint8_t *start, *p;

	chunk = writer->chunks->n_chunks ? last_chunk(writer) : NULL;
	if (!chunk || most > writer->chunk_bytes - sizeof(*chunk) - chunk->used) {
		/* Chunks of another size than ours may be too small for a long name. */
		if (most > writer->chunk_bytes - sizeof(*chunk))
			return;
		next_chunk(writer);
		chunk = last_chunk(writer);
	}
	start = (uint8_t *)(chunk + 1);
	p = start + chunk->used;
	*p++ = VT_REC_symbol;
	for (size_t i = 0; i < schema->n_fields; i++)
		p = put_field(p, (const char *)record + schema->fields[i].offset,
			schema->fields[i].type, &writer->delta);
	chunk->used = (uint32_t)(p - start);
}

static void put_place(struct chunk_writer *writer, const struct place *place)
{
	for (size_t i = 0; i < place->n_frames && i < SYMBOL_MAX_DEPTH; i++) {
		const struct symbol_frame *frame = &place->frames[i];
		struct vt_rec_symbol record = {.address = frame->address,
			.as_of_ns = place->as_of_ns,
			.depth = i,
			.function = text_of(frame->function),
			.file = text_of(frame->file),
			.line = frame->line};

		put_symbol(writer, &record);
	}
}

void symbol_chunks_make(struct symbol_chunks *chunks, const struct model *model,
	struct symbol_table *symbols, uint32_t chunk_bytes, uint32_t lane, uint64_t time_ns)
{
	struct chunk_writer writer = {
		.chunks = chunks, .chunk_bytes = chunk_bytes, .lane = lane, .time_ns = time_ns};
	struct place *places = find_places(model, symbols), *place, *next;

	*chunks = (struct symbol_chunks){0};
	HASH_ITER(hh, places, place, next)
	{
		put_place(&writer, place);
		chunks->n_addresses++;
		HASH_DEL(places, place);
		free(place);
	}
	seal_chunk(&writer);
}

void symbol_chunks_release(struct symbol_chunks *chunks)
{
	free(chunks->data);
	*chunks = (struct symbol_chunks){0};
}

/* The line of text that describes symbol records, with its newline; NULL when there is none. */
static const char *find_line(const char *text, const char *end, size_t *bytes)
{
	char start[16];

	snprintf(start, sizeof(start), "%d ", VT_REC_symbol);
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		*bytes = (size_t)((newline ? newline + 1 : end) - text);
		if (*bytes > strlen(start) && !memcmp(text, start, strlen(start)))
			return text;
		text += *bytes;
	}
	return NULL;
}

char *symbol_schema(const char *schema, size_t bytes, size_t *out_bytes)
{
	size_t own_bytes, old_bytes;
	const char *own =
		find_line(vt_schema_text, vt_schema_text + vt_schema_text_bytes, &own_bytes);
	const char *old = find_line(schema, schema + bytes, &old_bytes);
	size_t before = old ? (size_t)(old - schema) : bytes;
	size_t after = old ? bytes - before - old_bytes : 0;
	char *text = memory_new(bytes + own_bytes + 1, 1);

	/* A newer recorder may have described the record otherwise. */
	memcpy(text, schema, before);
	memcpy(text + before, schema + bytes - after, after);
	memcpy(text + before + after, own, own_bytes);
	*out_bytes = before + after + own_bytes;
	return text;
}

static char *text_copy(struct vt_text text)
{
	char *copy;

	if (!text.bytes)
		return NULL;
	copy = memory_new(text.bytes + 1, 1);
	memcpy(copy, text.data, text.bytes);
	return copy;
}

void symbol_reader_end(struct symbol_reader *reader)
{
	if (!reader->n_frames)
		return;
	if (symbol_table_add_resolved(reader->table, reader->address, reader->as_of_ns,
		    reader->frames, reader->n_frames))
		memory_exhausted();
	for (size_t i = 0; i < reader->n_frames; i++) {
		free((char *)reader->frames[i].function);
		free((char *)reader->frames[i].file);
	}
	reader->n_frames = 0;
}

void symbol_reader_add(struct symbol_reader *reader, const struct vt_rec_symbol *record)
{
	if (!record->depth)
		symbol_reader_end(reader);
	/* Damage: what leads here is missing. */
	if (record->depth != reader->n_frames || reader->n_frames == SYMBOL_MAX_DEPTH ||
		(record->depth && record->address != reader->address))
		return;
	reader->address = record->address;
	reader->as_of_ns = record->as_of_ns;
	reader->frames[reader->n_frames++] = (struct symbol_frame){
		.function = text_copy(record->function),
		.file = text_copy(record->file),
		.line = record->line <= UINT32_MAX ? (unsigned int)record->line : 0,
	};
}
