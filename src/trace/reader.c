#include "trace/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/codec.h"
#include "trace/decode.h"
#include "trace/parts.h"
#include "trace/schema.h"

#define N_LISTED 64u /* chunks whose headers are looked at together */

/* A chunk of the file, in the order of the time it begins. */
struct chunk_entry {
	uint64_t base_time_ns;
	uint32_t index;
};

struct vt_reader {
	const uint8_t *data;
	bool copied; /* that is not mapped from files */
	uint64_t bytes;
	struct vt_file_header header;
	struct decode_layout layouts[VT_N_RECORDS];
	struct chunk_entry *chunks;
	size_t n_chunks;
	size_t next_chunk; /* first one that has no cursor yet */
	struct decode_cursor **heap;
	size_t n_heap;
	size_t heap_size;
	struct decode_cursor *given; /* cursor of the record last handed out */
	struct vt_damage damage;
	uint64_t position;
};

static int map_file(struct vt_reader *reader, int fd)
{
	struct stat st;
	void *data;

	if (fstat(fd, &st))
		return VT_E_IO;
	if (!S_ISREG(st.st_mode)) {
		errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		return S_ISDIR(st.st_mode) ? VT_E_OPEN : VT_E_NOT_TRACE;
	}
	reader->bytes = (uint64_t)st.st_size;
	if (!reader->bytes)
		return VT_E_EMPTY;
	data = mmap(NULL, reader->bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return VT_E_IO;
	reader->data = data;
	return 0;
}

static int check_header(struct vt_reader *reader)
{
	const struct vt_file_header *header = &reader->header;
	size_t have = reader->bytes < sizeof(*header) ? reader->bytes : sizeof(*header);
	size_t magic = have < sizeof(header->magic) ? have : sizeof(header->magic);
	static const char zero[sizeof(header->magic)];

	memcpy(&reader->header, reader->data, have);
	if (!memcmp(header->magic, zero, magic))
		return VT_E_EMPTY;
	if (memcmp(header->magic, VT_MAGIC, magic))
		return VT_E_NOT_TRACE;
	if (have < sizeof(*header) || reader->bytes < header->header_bytes)
		return VT_E_TRUNCATED;
	if (header->byte_order != VT_BYTE_ORDER)
		return VT_E_DAMAGED;
	if (header->format > VT_FORMAT)
		return VT_E_VERSION;
	if (header->header_bytes < sizeof(*header) + header->schema_bytes ||
		header->header_bytes % 64 || header->schema_bytes > header->header_bytes ||
		header->chunk_bytes % 4096 || header->chunk_bytes < 4096 ||
		header->chunk_bytes > (1u << 24) || !header->format)
		return VT_E_DAMAGED;
	return 0;
}

/* One line of the schema text: "number name T:field ...". False when it is not one. */
static bool parse_layout(struct vt_reader *reader, const char *line, const char *end)
{
	unsigned long number = 0;
	struct decode_layout *layout;
	const char *p = line;

	while (p < end && *p >= '0' && *p <= '9' && number < VT_N_RECORDS)
		number = number * 10 + (unsigned long)(*p++ - '0');
	if (p == line || number >= VT_N_RECORDS)
		return false;
	layout = &reader->layouts[number];
	for (; p + 1 < end; p++) {
		if (p[1] != ':' || p[-1] != ' ')
			continue;
		if (!strchr("TNSAXL", *p) || layout->n_fields == DECODE_MAX_FIELDS)
			return false;
		/* A field this version knows under another type is damage. */
		if (layout->schema && layout->n_fields < layout->schema->n_fields &&
			layout->schema->fields[layout->n_fields].type != (enum vt_field_type) * p)
			return false;
		layout->types[layout->n_fields++] = (uint8_t)*p;
	}
	return decode_layout_end(layout, (unsigned int)number);
}

static int parse_schema(struct vt_reader *reader)
{
	const char *p = (const char *)reader->data + sizeof(struct vt_file_header);
	const char *end = p + reader->header.schema_bytes;

	/* Also of kinds that the file does not have but that some of its records stand for. */
	for (unsigned int kind = 0; kind < VT_N_RECORDS; kind++) {
		reader->layouts[kind].schema = vt_schema_get(kind);
		decode_layout_end(&reader->layouts[kind], kind);
	}
	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));

		if (!newline || !parse_layout(reader, p, newline))
			return VT_E_DAMAGED;
		p = newline + 1;
	}
	return 0;
}

static int compare_chunks(const void *a, const void *b)
{
	const struct chunk_entry *x = a, *y = b;

	if (x->base_time_ns != y->base_time_ns)
		return x->base_time_ns < y->base_time_ns ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

static const struct vt_chunk_header *chunk_at(const struct vt_reader *reader, uint32_t index)
{
	return (const void *)(reader->data + reader->header.header_bytes +
			      (uint64_t)index * reader->header.chunk_bytes);
}

/* Takes what was read of n chunks out of this process's memory: until a text in them is looked at,
 * they are not needed. */
static void let_go(const struct vt_reader *reader, uint32_t index, size_t n)
{
	const uint8_t *start = (const uint8_t *)chunk_at(reader, index);
	size_t left = (size_t)(reader->data + reader->bytes - start);
	size_t bytes = n * reader->header.chunk_bytes;

	/* What had to be copied is nowhere else. */
	if (!reader->copied)
		madvise((void *)start, left < bytes ? left : bytes, MADV_DONTNEED);
}

/* Finds the chunks and sorts them, so that a cursor is needed only while its chunk's time has come.
 */
static int list_chunks(struct vt_reader *reader)
{
	uint64_t room = reader->bytes - reader->header.header_bytes;
	uint64_t in_file = (room + reader->header.chunk_bytes - 1) / reader->header.chunk_bytes;
	uint64_t n = atomic_load(&reader->header.n_chunks);

	if (n > in_file) {
		if (__builtin_mul_overflow(
			    n - in_file, reader->header.chunk_bytes, &reader->damage.missing_bytes))
			reader->damage.missing_bytes = UINT64_MAX;
		n = in_file;
	}
	reader->chunks = calloc(n ? n : 1, sizeof(*reader->chunks));
	if (!reader->chunks)
		return VT_E_NO_MEMORY;
	for (uint32_t i = 0; i < n; i++) {
		const struct vt_chunk_header *chunk = chunk_at(reader, i);

		if ((const uint8_t *)(chunk + 1) > reader->data + reader->bytes)
			break;
		if (i && i % N_LISTED == 0)
			let_go(reader, i - N_LISTED, N_LISTED);
		/* Handed out but not begun: the process was stopped right there. */
		if (!chunk->magic)
			continue;
		reader->chunks[reader->n_chunks++] = (struct chunk_entry){chunk->base_time_ns, i};
	}
	qsort(reader->chunks, reader->n_chunks, sizeof(*reader->chunks), compare_chunks);
	return 0;
}

/* Reads length bytes of fd, from offset on; what the file does not have stays zero. */
static int read_piece(uint8_t *at, uint64_t length, int fd, uint64_t offset)
{
	while (length) {
		ssize_t n = pread(fd, at, length, (off_t)offset);

		if (n < 0 && errno != EINTR)
			return VT_E_IO;
		if (!n)
			break;
		if (n > 0) {
			at += n;
			length -= (uint64_t)n;
			offset += (uint64_t)n;
		}
	}
	return 0;
}

/* Puts length bytes of fd, from offset on, at `at`, which is the reader's own address space. */
static int map_piece(
	struct vt_reader *reader, uint8_t *at, uint64_t length, int fd, uint64_t offset)
{
	if (reader->copied)
		return read_piece(at, length, fd, offset);
	if (!length || mmap(at, length, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) !=
			       MAP_FAILED)
		return 0;
	return VT_E_IO;
}

/* Replaces the mapping of the file by one in which the chunks of all its parts stand behind its
 * header, as if it were one file. */
static int map_parts(struct vt_reader *reader, const struct vt_parts *parts, int fd)
{
	const struct vt_file_header *header = &reader->header;
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t n_chunks = 0, bytes, at = header->header_bytes;
	uint8_t *data;
	int error;

	for (size_t i = 0; i < parts->n_items; i++) {
		n_chunks += parts->items[i].n_chunks;
		reader->damage.missing_bytes =
			reader->damage.missing_bytes + parts->items[i].missing_bytes;
	}
	bytes = at + n_chunks * header->chunk_bytes;
	/* Not at a begin of this machine's pages: then copies have to do. */
	reader->copied = header->header_bytes % page_bytes || header->chunk_bytes % page_bytes;
	data = mmap(NULL, bytes, reader->copied ? PROT_READ | PROT_WRITE : PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (data == MAP_FAILED)
		return VT_E_NO_MEMORY;
	munmap((void *)reader->data, reader->bytes);
	reader->data = data;
	reader->bytes = bytes;
	error = map_piece(reader, data, at, fd, 0);
	for (size_t i = 0; i < parts->n_items && !error; i++) {
		const struct vt_part *part = &parts->items[i];
		uint64_t length = part->n_chunks * header->chunk_bytes;

		error = map_piece(reader, data + at, length, part->fd,
			header->header_bytes + part->first_chunk * header->chunk_bytes);
		at += length;
	}
	reader->header.n_chunks = n_chunks;
	return error;
}

/* The chunks of a bounded trace are elsewhere. */
static int find_parts(struct vt_reader *reader, int fd, const char *path, enum vt_parts_which which)
{
	struct vt_parts parts;
	int error;

	if (!reader->header.parted || !path)
		return 0;
	error = vt_parts_open(&parts, path, &reader->header, which);
	if (error)
		return error;
	error = map_parts(reader, &parts, fd);
	vt_parts_close(&parts);
	return error;
}

int vt_reader_open(struct vt_reader **out, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would be waited for */
	int error, saved;

	*out = NULL;
	if (fd < 0)
		return VT_E_OPEN;
	error = vt_reader_open_fd(out, fd, path, VT_PARTS_ALL);
	saved = errno;
	close(fd);
	errno = saved;
	return error;
}

int vt_reader_open_fd(struct vt_reader **out, int fd, const char *path, enum vt_parts_which which)
{
	struct vt_reader *reader = calloc(1, sizeof(*reader));
	int error;

	*out = NULL;
	if (!reader)
		return VT_E_NO_MEMORY;
	error = map_file(reader, fd);
	if (!error)
		error = check_header(reader);
	if (!error)
		error = find_parts(reader, fd, path, which);
	if (!error)
		error = parse_schema(reader);
	if (!error)
		error = list_chunks(reader);
	if (error) {
		int saved = errno;

		vt_reader_close(reader);
		errno = saved;
		return error;
	}
	*out = reader;
	return 0;
}

static void drop_cursors(struct vt_reader *reader)
{
	for (size_t i = 0; i < reader->n_heap; i++)
		decode_cursor_free(reader->heap[i]);
	decode_cursor_free(reader->given);
	reader->n_heap = 0;
	reader->given = NULL;
}

void vt_reader_close(struct vt_reader *reader)
{
	if (!reader)
		return;
	drop_cursors(reader);
	if (reader->data)
		munmap((void *)reader->data, reader->bytes);
	free(reader->heap);
	free(reader->chunks);
	free(reader);
}

const struct vt_file_header *vt_reader_header(const struct vt_reader *reader)
{
	return &reader->header;
}

const struct vt_damage *vt_reader_damage(const struct vt_reader *reader)
{
	return &reader->damage;
}

uint64_t vt_reader_size(const struct vt_reader *reader)
{
	return reader->bytes;
}

uint64_t vt_reader_position(const struct vt_reader *reader)
{
	return reader->position;
}

int vt_reader_rewind(struct vt_reader *reader)
{
	uint64_t missing = reader->damage.missing_bytes;

	drop_cursors(reader);
	reader->next_chunk = 0;
	reader->position = 0;
	reader->damage = (struct vt_damage){.missing_bytes = missing};
	return 0;
}

/* Records that take memory away sort before those that add some: the address may be the same. */
static bool takes_away(const struct vt_record *record)
{
	return record->kind == VT_REC_free || record->kind == VT_REC_unmap ||
	       record->kind == VT_REC_handle_release || record->kind == VT_REC_unreserve;
}

static bool before(const struct decode_cursor *a, const struct decode_cursor *b)
{
	if (a->ahead.time_ns != b->ahead.time_ns)
		return a->ahead.time_ns < b->ahead.time_ns;
	if (takes_away(&a->ahead) != takes_away(&b->ahead))
		return takes_away(&a->ahead);
	return a->ahead.chunk < b->ahead.chunk;
}

static int heap_push(struct vt_reader *reader, struct decode_cursor *cursor)
{
	size_t i = reader->n_heap;

	if (i == reader->heap_size) {
		size_t size = i ? 2 * i : 16;
		struct decode_cursor **bigger = realloc(reader->heap, size * sizeof(*bigger));

		if (!bigger)
			return VT_E_NO_MEMORY;
		reader->heap = bigger;
		reader->heap_size = size;
	}
	reader->n_heap++;
	for (; i && before(cursor, reader->heap[(i - 1) / 2]); i = (i - 1) / 2)
		reader->heap[i] = reader->heap[(i - 1) / 2];
	reader->heap[i] = cursor;
	return 0;
}

static struct decode_cursor *heap_pop(struct vt_reader *reader)
{
	struct decode_cursor *first = reader->heap[0];
	struct decode_cursor *last = reader->heap[--reader->n_heap];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < reader->n_heap &&
			before(reader->heap[child + 1], reader->heap[child]))
			child++;
		if (child >= reader->n_heap || before(last, reader->heap[child]))
			break;
		reader->heap[i] = reader->heap[child];
		i = child;
	}
	reader->heap[i] = last;
	return first;
}

/* Moves the cursor on. 1: it has a record ahead, 0: its chunk is done and it is gone. */
static int advance(struct vt_reader *reader, struct decode_cursor *cursor)
{
	int found = decode_next(cursor, reader->layouts, &reader->damage.n_unknown);

	if (found == 1)
		return 1;
	if (found < 0 || cursor->cut)
		reader->damage.n_chunks_cut++;
	let_go(reader, cursor->ahead.chunk, 1);
	decode_cursor_free(cursor);
	return 0;
}

/* Takes a cursor with a record ahead into the heap, or frees it. */
static int enter(struct vt_reader *reader, struct decode_cursor *cursor)
{
	int error = heap_push(reader, cursor);

	if (error)
		decode_cursor_free(cursor);
	return error;
}

/* Begins the chunk, if it is one. */
static int open_chunk(struct vt_reader *reader, uint32_t index)
{
	const struct vt_chunk_header *chunk = chunk_at(reader, index);
	const uint8_t *start = (const uint8_t *)(chunk + 1);
	/* The flag first: a running writer fills in the rest before it sets it. */
	uint32_t sealed = atomic_load_explicit(&chunk->sealed, memory_order_acquire);
	uint32_t used = atomic_load_explicit(&chunk->used, memory_order_acquire);
	uint64_t left = (uint64_t)(reader->data + reader->bytes - start);
	struct decode_cursor *cursor;

	reader->position += reader->header.chunk_bytes;
	if (chunk->magic != VT_CHUNK_MAGIC || used > reader->header.chunk_bytes - sizeof(*chunk)) {
		reader->damage.n_chunks_skipped++;
		return 0;
	}
	if (used <= left && sealed && vt_checksum(start, used) != chunk->checksum) {
		reader->damage.n_chunks_skipped++;
		return 0;
	}
	cursor = calloc(1, sizeof(*cursor));
	if (!cursor)
		return VT_E_NO_MEMORY;
	cursor->cut = used > left;
	cursor->at = start;
	cursor->end = start + (cursor->cut ? left : used);
	cursor->delta.time_ns = chunk->base_time_ns;
	cursor->ahead.tid = chunk->tid;
	cursor->ahead.chunk = index;
	cursor->ahead.lane = chunk->lane;
	return advance(reader, cursor) ? enter(reader, cursor) : 0;
}

/* Whether a chunk begins by the time of the record that cursor has ahead. */
static bool chunk_is_due(const struct vt_reader *reader, const struct decode_cursor *cursor)
{
	return reader->next_chunk < reader->n_chunks &&
	       reader->chunks[reader->next_chunk].base_time_ns <= cursor->ahead.time_ns;
}

/* The cursor of the next record; *error when there is none. Mostly it is the one of the last. */
static struct decode_cursor *next_cursor(struct vt_reader *reader, int *error)
{
	struct decode_cursor *given = reader->given;

	*error = 0;
	reader->given = NULL;
	if (given && advance(reader, given)) {
		if (!chunk_is_due(reader, given) &&
			(!reader->n_heap || before(given, reader->heap[0])))
			return given;
		*error = enter(reader, given);
	}
	while (!*error && reader->next_chunk < reader->n_chunks &&
		(!reader->n_heap || chunk_is_due(reader, reader->heap[0])))
		*error = open_chunk(reader, reader->chunks[reader->next_chunk++].index);
	return *error || !reader->n_heap ? NULL : heap_pop(reader);
}

int vt_reader_next(struct vt_reader *reader, struct vt_record *record)
{
	int error;

	reader->given = next_cursor(reader, &error);
	if (!reader->given)
		return error;
	memcpy(record, &reader->given->ahead,
		reader->layouts[reader->given->ahead.kind].record_bytes);
	return 1;
}
