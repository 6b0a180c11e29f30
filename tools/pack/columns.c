#include "pack/columns.h"

#include <stdlib.h>
#include <string.h>

#include "model/memory.h"
#include "trace/codec.h"
#include "trace/schema.h"

#define N_KINDS	   256u
#define MAX_FIELDS 32u

/* Columns by number. */
enum { WHOLE, KINDS, FIRST_FIELD, N_COLUMNS = FIRST_FIELD + N_KINDS * MAX_FIELDS };

/* What is filled, and, where a group is being read, up to where that was done. */
struct column {
	uint8_t *data;
	size_t bytes;
	size_t room;
	size_t at;
};

struct columns {
	uint32_t chunk_bytes;
	uint8_t n_fields[N_KINDS]; /* 0: the schema has no such record */
	char types[N_KINDS][MAX_FIELDS];
	struct column columns[N_COLUMNS];
	struct column chunks; /* what is told of each */
	struct column out;    /* a group, or its chunks */
	uint32_t n_chunks;
};

static uint8_t *column_extend(struct column *column, size_t bytes)
{
	if (bytes > column->room - column->bytes) {
		size_t room = 2 * (column->bytes + bytes);
		uint8_t *data = memory_new(room, 1);

		if (column->bytes)
			memcpy(data, column->data, column->bytes);
		free(column->data);
		column->data = data;
		column->room = room;
	}
	column->bytes += bytes;
	return column->data + column->bytes - bytes;
}

static void column_put(struct column *column, const void *data, size_t bytes)
{
	if (bytes)
		memcpy(column_extend(column, bytes), data, bytes);
}

static void column_put_word(struct column *column, uint32_t word)
{
	column_put(column, &word, sizeof(word));
}

/* One line of the schema: "number name T:field T:field". */
static void read_line(struct columns *columns, const char *line, const char *end)
{
	unsigned int kind = 0, n = 0;

	while (line < end && *line >= '0' && *line <= '9' && kind < N_KINDS)
		kind = 10 * kind + (unsigned int)(*line++ - '0');
	for (; kind < N_KINDS && line + 2 < end; line++) {
		if (*line != ' ' || line[2] != ':')
			continue;
		if (n == MAX_FIELDS) {
			columns->n_fields[kind] = 0;
			return;
		}
		columns->types[kind][n++] = line[1];
		columns->n_fields[kind] = (uint8_t)n;
	}
}

struct columns *columns_new(const char *schema, size_t bytes, uint32_t chunk_bytes)
{
	struct columns *columns = memory_new(1, sizeof(*columns));
	const char *end = schema + bytes;

	columns->chunk_bytes = chunk_bytes;
	while (schema < end) {
		const char *newline = memchr(schema, '\n', (size_t)(end - schema));

		if (!newline)
			newline = end;
		read_line(columns, schema, newline);
		schema = newline + 1;
	}
	return columns;
}

void columns_free(struct columns *columns)
{
	if (!columns)
		return;
	for (size_t i = 0; i < N_COLUMNS; i++)
		free(columns->columns[i].data);
	free(columns->chunks.data);
	free(columns->out.data);
	free(columns);
}

/* Behind the field of this type that begins at p; NULL: it does not end before the end. */
static const uint8_t *field_end(char type, const uint8_t *p, const uint8_t *end)
{
	uint64_t n, item;

	if (!vt_decode_number(&p, end, &n))
		return NULL;
	if (type == VT_FIELD_TEXT)
		return n <= (uint64_t)(end - p) ? p + n : NULL;
	if (type != VT_FIELD_LIST)
		return p;
	while (n--)
		if (!vt_decode_number(&p, end, &item))
			return NULL;
	return p;
}

static struct column *column_of(struct columns *columns, uint8_t kind, unsigned int field)
{
	return &columns->columns[FIRST_FIELD + kind * MAX_FIELDS + field];
}

/* Goes through the records up to the end; into the columns with `put`. False: they do not end
 * there. */
static bool split_records(struct columns *columns, const uint8_t *p, const uint8_t *end, bool put)
{
	while (p < end) {
		uint8_t kind = *p++;

		if (!columns->n_fields[kind])
			return false;
		if (put)
			column_put(&columns->columns[KINDS], &kind, 1);
		for (unsigned int i = 0; i < columns->n_fields[kind]; i++) {
			const uint8_t *next = field_end(columns->types[kind][i], p, end);

			if (!next)
				return false;
			if (put)
				column_put(column_of(columns, kind, i), p, (size_t)(next - p));
			p = next;
		}
	}
	return true;
}

static bool is_zero(const uint8_t *data, size_t bytes)
{
	while (bytes && !data[bytes - 1])
		bytes--;
	return !bytes;
}

/* Where the records of the chunk end; 0: it cannot be split. */
static size_t records_end(struct columns *columns, const uint8_t *chunk, size_t bytes)
{
	struct vt_chunk_header header;
	size_t end;

	if (bytes < sizeof(header))
		return 0;
	memcpy(&header, chunk, sizeof(header));
	end = sizeof(header) + header.used;
	return end <= bytes && is_zero(chunk + end, bytes - end) &&
			       split_records(columns, chunk + sizeof(header), chunk + end, false)
		       ? end
		       : 0;
}

void columns_add(struct columns *columns, const uint8_t *chunk, size_t bytes)
{
	const size_t head = sizeof(struct vt_chunk_header);
	size_t end = records_end(columns, chunk, bytes);

	columns->n_chunks++;
	column_put_word(&columns->chunks, (uint32_t)bytes);
	column_put_word(&columns->chunks, end != 0);
	column_put(&columns->columns[WHOLE], chunk, end ? head : bytes);
	if (end)
		split_records(columns, chunk + head, chunk + end, true);
}

const uint8_t *columns_group(struct columns *columns, size_t *bytes)
{
	struct column *out = &columns->out;
	uint32_t length;

	if (!columns->n_chunks)
		return NULL;
	out->bytes = 0;
	column_put_word(out, 0);
	column_put_word(out, columns->n_chunks);
	column_put(out, columns->chunks.data, columns->chunks.bytes);
	for (uint32_t i = 0; i < N_COLUMNS; i++) {
		struct column *column = &columns->columns[i];

		if (!column->bytes)
			continue;
		column_put_word(out, i);
		column_put_word(out, (uint32_t)column->bytes);
		column_put(out, column->data, column->bytes);
		column->bytes = 0;
	}
	length = (uint32_t)(out->bytes - sizeof(length));
	memcpy(out->data, &length, sizeof(length));
	columns->chunks.bytes = 0;
	columns->n_chunks = 0;
	*bytes = out->bytes;
	return out->data;
}

size_t columns_group_bytes(const struct columns *columns, const uint8_t head[4])
{
	/* Splitting a chunk adds to it no more than what is said of each column. */
	const uint64_t most = COLUMNS_GROUP_CHUNKS * (uint64_t)columns->chunk_bytes +
			      8 * N_COLUMNS + 8 * COLUMNS_GROUP_CHUNKS + 8;
	uint32_t length;

	memcpy(&length, head, sizeof(length));
	return length >= sizeof(length) && length <= most ? length + sizeof(length) : 0;
}

static bool take_word(const uint8_t **p, const uint8_t *end, uint32_t *word)
{
	if ((size_t)(end - *p) < sizeof(*word))
		return false;
	memcpy(word, *p, sizeof(*word));
	*p += sizeof(*word);
	return true;
}

/* The columns of a group are where it lies. */
static bool find_columns(struct column *found, const uint8_t *p, const uint8_t *end)
{
	memset(found, 0, N_COLUMNS * sizeof(*found));
	while (p < end) {
		uint32_t number, bytes;

		if (!take_word(&p, end, &number) || !take_word(&p, end, &bytes) ||
			number >= N_COLUMNS || bytes > (size_t)(end - p))
			return false;
		found[number] = (struct column){.data = (uint8_t *)(uintptr_t)p, .bytes = bytes};
		p += bytes;
	}
	return true;
}

/* The next bytes of the column, NULL: it has no more. */
static const uint8_t *column_take(struct column *column, size_t bytes)
{
	if (bytes > column->bytes - column->at)
		return NULL;
	column->at += bytes;
	return column->data + column->at - bytes;
}

/* Writes the records of a chunk to out, exactly up to its end. */
static bool join_records(
	const struct columns *columns, struct column *found, uint8_t *out, uint8_t *end)
{
	while (out < end) {
		const uint8_t *kind = column_take(&found[KINDS], 1);

		if (!kind || !columns->n_fields[*kind])
			return false;
		*out++ = *kind;
		for (unsigned int i = 0; i < columns->n_fields[*kind]; i++) {
			struct column *column = &found[FIRST_FIELD + *kind * MAX_FIELDS + i];
			const uint8_t *p = column->data + column->at, *next;

			next = p ? field_end(columns->types[*kind][i], p,
					   column->data + column->bytes)
				 : NULL;
			if (!next || next - p > end - out)
				return false;
			memcpy(out, p, (size_t)(next - p));
			out += next - p;
			column->at += (size_t)(next - p);
		}
	}
	return true;
}

static bool join_chunk(
	struct columns *columns, struct column *found, uint32_t bytes, uint32_t is_split)
{
	struct vt_chunk_header header;
	const uint8_t *whole = column_take(&found[WHOLE], is_split ? sizeof(header) : bytes);
	uint8_t *out;

	if (!whole || bytes > columns->chunk_bytes || (is_split && bytes < sizeof(header)))
		return false;
	out = column_extend(&columns->out, bytes);
	if (!is_split) {
		memcpy(out, whole, bytes);
		return true;
	}
	memcpy(&header, whole, sizeof(header));
	memcpy(out, whole, sizeof(header));
	if (header.used > bytes - sizeof(header))
		return false;
	memset(out + sizeof(header) + header.used, 0, bytes - sizeof(header) - header.used);
	return join_records(
		columns, found, out + sizeof(header), out + sizeof(header) + header.used);
}

static bool join_chunks(struct columns *columns, struct column *found, const uint8_t *p,
	const uint8_t *end, uint32_t n)
{
	const uint8_t *told = p;

	if (n > COLUMNS_GROUP_CHUNKS || (size_t)(end - p) < 8 * (size_t)n ||
		!find_columns(found, p + 8 * (size_t)n, end))
		return false;
	columns->out.bytes = 0;
	while (n--) {
		uint32_t bytes, is_split;

		if (!take_word(&told, end, &bytes) || !take_word(&told, end, &is_split) ||
			!join_chunk(columns, found, bytes, is_split))
			return false;
	}
	return true;
}

const uint8_t *columns_join(
	struct columns *columns, const uint8_t *group, size_t group_bytes, size_t *bytes)
{
	const uint8_t *p = group + 4, *end = group + group_bytes;
	struct column *found = memory_new(N_COLUMNS, sizeof(*found));
	uint32_t n;
	bool ok =
		group_bytes > 4 && take_word(&p, end, &n) && join_chunks(columns, found, p, end, n);

	free(found);
	*bytes = ok ? columns->out.bytes : 0;
	return ok ? columns->out.data : NULL;
}
