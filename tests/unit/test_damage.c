/* src/trace/reader.c on files that are cut, changed or none of ours: it ends, and keeps what the
 * damage did not touch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/stat.h>

#include "fuzz/touch.h"
#include "unit/records.h"

#define PATH	  "damaged.vt"
#define N_RECORDS 2000u

/* A good trace of two lanes, with the place of each record in it. */
static struct {
	uint8_t *data;
	size_t bytes;
	uint64_t start[N_RECORDS], end[N_RECORDS]; /* offsets in the file */
} good;

/* The record numbered i: large, so that few of them fill some chunks. */
static struct vt_rec_module numbered(uint64_t i)
{
	static char path[256];
	size_t bytes = 60 + i * 7 % 190;

	memset(path, (int)(i % 251), bytes);
	return (struct vt_rec_module){
		.time_ns = i, .bias = i, .start = i * i, .path = {path, bytes}};
}

static bool is_numbered(const struct vt_record *record)
{
	struct vt_rec_module expected = numbered(record->module.bias);

	return record->kind == VT_REC_module && record->module.bias < N_RECORDS &&
	       record->module.time_ns == expected.time_ns &&
	       record->module.start == expected.start &&
	       SAME_TEXT(record->module.path, expected.path);
}

static int make_good(void **state)
{
	struct vt_writer writer;
	struct vt_lane *lanes[2];

	(void)state;
	trace_begin(&writer, "good.vt", (struct vt_writer_options){0});
	for (uint32_t i = 0; i < 2; i++)
		lanes[i] = vt_writer_lane(&writer, i + 1, 0);
	for (uint64_t i = 0; i < N_RECORDS; i++) {
		struct vt_lane *lane = lanes[i % 3 == 0];
		struct vt_rec_module record = numbered(i);
		const uint8_t *before = lane->at;

		assert_int_equal(vt_put_module(lane, &record), 0);
		good.end[i] = lane->chunk_offset + (uint64_t)(lane->at - (uint8_t *)lane->chunk);
		/* At the head of a new chunk the place before is another chunk's. */
		good.start[i] =
			before && before > (uint8_t *)lane->chunk && before < lane->at
				? lane->chunk_offset + (uint64_t)(before - (uint8_t *)lane->chunk)
				: lane->chunk_offset + sizeof(struct vt_chunk_header);
	}
	trace_end(&writer);
	good.data = file_read("good.vt", &good.bytes);
	assert_true(good.bytes >= VT_HEADER_BYTES + 5 * VT_CHUNK_BYTES);
	return 0;
}

static int free_good(void **state)
{
	(void)state;
	free(good.data);
	return 0;
}

static bool seen[N_RECORDS];
static volatile uint64_t sum;

/* Reads PATH to its end and marks the records that came back unchanged. Returns what opening said.
 */
static int read_damaged(struct vt_damage *damage)
{
	struct vt_reader *reader;
	struct vt_record record;
	uint64_t n = 0;
	int error = vt_reader_open(&reader, PATH), more;

	memset(seen, 0, sizeof(seen));
	if (error) {
		assert_null(reader);
		assert_string_not_equal(vt_error_text(error), "unknown error");
		return error;
	}
	while ((more = vt_reader_next(reader, &record)) == 1) {
		sum += record_touch(&record);
		assert_true(n++ < good.bytes);
		if (is_numbered(&record))
			seen[record.module.bias] = true;
	}
	assert_int_equal(more, 0);
	*damage = *vt_reader_damage(reader);
	vt_reader_close(reader);
	return 0;
}

static void cut_anywhere(void **state)
{
	struct vt_damage damage;

	(void)state;
	for (size_t length = 1; length < good.bytes; length += 97) {
		bool lost_used_bytes = false;
		int error;

		file_write(PATH, good.data, length);
		error = read_damaged(&damage);
		if (length < VT_HEADER_BYTES) {
			assert_int_equal(error, VT_E_TRUNCATED);
			continue;
		}
		assert_int_equal(error, 0);
		for (uint64_t i = 0; i < N_RECORDS; i++) {
			if (seen[i] != (good.end[i] <= length))
				fail_msg("cut at %zu: record %u", length, (unsigned int)i);
			lost_used_bytes |= good.end[i] > length;
		}
		assert_true(damage.n_chunks_cut <= 1);
		if (lost_used_bytes)
			assert_true(damage.n_chunks_cut || damage.missing_bytes ||
				    (length - VT_HEADER_BYTES) % VT_CHUNK_BYTES <
					    sizeof(struct vt_chunk_header));
	}
}

static struct vt_chunk_header *chunk_of(uint8_t *data, size_t offset)
{
	size_t index = (offset - VT_HEADER_BYTES) / VT_CHUNK_BYTES;

	return (struct vt_chunk_header *)(data + VT_HEADER_BYTES + index * VT_CHUNK_BYTES);
}

/* One wrong byte costs at most its chunk, and of a chunk without a checksum only what follows it.
 */
static void one_wrong_byte(void **state)
{
	struct source source = {.state = 1};
	uint8_t *data = malloc(good.bytes);
	struct vt_damage damage;

	(void)state;
	for (unsigned int round = 0; round < 1000; round++) {
		size_t at = VT_HEADER_BYTES + source_next(&source) % (good.bytes - VT_HEADER_BYTES);
		const struct vt_chunk_header *chunk;
		uint64_t chunk_start, intact;

		memcpy(data, good.data, good.bytes);
		data[at] ^= (uint8_t)(1 + source_next(&source) % 255);
		file_write(PATH, data, good.bytes);
		assert_int_equal(read_damaged(&damage), 0);
		chunk = chunk_of(good.data, at);
		chunk_start = (uint64_t)((const uint8_t *)chunk - good.data);
		intact = chunk->sealed || at < chunk_start + sizeof(*chunk) ? chunk_start : at;
		for (uint64_t i = 0; i < N_RECORDS; i++) {
			bool in_chunk = good.start[i] >= chunk_start &&
					good.start[i] < chunk_start + VT_CHUNK_BYTES;

			if (!seen[i] && (!in_chunk || good.end[i] <= intact))
				fail_msg("byte %zu: record %u is gone", at, (unsigned int)i);
		}
		/* What a checksum covers cannot be changed unseen. */
		if (chunk->sealed && at >= chunk_start + sizeof(*chunk) &&
			at < chunk_start + sizeof(*chunk) + chunk->used)
			assert_int_equal(damage.n_chunks_skipped, 1);
	}
	free(data);
}

/* Anything may be wrong, the header and its schema too: the reader only has to end. */
static void many_wrong_bytes(void **state)
{
	struct source source = {.state = 2};
	uint8_t *data = malloc(good.bytes);
	struct vt_damage damage;
	unsigned int n_opened = 0;

	(void)state;
	for (unsigned int round = 0; round < 1500; round++) {
		size_t n = 1 + source_next(&source) % 20;
		size_t reach = round % 3 ? good.bytes : round % 2 ? 128 : 2200;

		memcpy(data, good.data, good.bytes);
		while (n--)
			data[source_next(&source) % reach] = (uint8_t)source_next(&source);
		file_write(PATH, data, good.bytes);
		n_opened += read_damaged(&damage) == 0;
	}
	assert_true(n_opened > 300);
	free(data);
}

static void not_traces(void **state)
{
	struct source source = {.state = 3};
	static uint8_t data[70000];
	struct vt_damage damage;

	(void)state;
	file_write(PATH, "", 0);
	assert_int_equal(read_damaged(&damage), VT_E_EMPTY);
	for (size_t bytes = 1; bytes < sizeof(data); bytes += 6999) {
		file_write(PATH, data, bytes);
		assert_int_equal(read_damaged(&damage), VT_E_EMPTY);
	}
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)source_next(&source);
	for (size_t bytes = 1; bytes < sizeof(data); bytes += 6999) {
		file_write(PATH, data, bytes);
		assert_int_equal(read_damaged(&damage), VT_E_NOT_TRACE);
	}
	file_write(PATH, VT_MAGIC, 5);
	assert_int_equal(read_damaged(&damage), VT_E_TRUNCATED);
}

static void not_files(void **state)
{
	struct vt_reader *reader;

	(void)state;
	assert_int_equal(vt_reader_open(&reader, "no-such-file.vt"), VT_E_OPEN);
	assert_int_equal(errno, ENOENT);
	assert_null(reader);
	assert_int_equal(vt_reader_open(&reader, "."), VT_E_OPEN);
	assert_int_equal(errno, EISDIR);
	assert_int_equal(vt_reader_open(&reader, "/dev/null"), VT_E_NOT_TRACE);
	unlink("fifo");
	assert_int_equal(mkfifo("fifo", 0600), 0);
	alarm(20); /* opening must not wait for somebody to write */
	assert_int_equal(vt_reader_open(&reader, "fifo"), VT_E_NOT_TRACE);
	alarm(0);
	unlink("fifo");
}

static struct vt_file_header *copy_header(uint8_t *data)
{
	memcpy(data, good.data, VT_HEADER_BYTES);
	return (struct vt_file_header *)data;
}

static int read_header(const struct vt_file_header *header, struct vt_damage *damage)
{
	file_write(PATH, header, VT_HEADER_BYTES);
	return read_damaged(damage);
}

/* Each field of the header by itself, on a file of a header only. */
static void odd_headers(void **state)
{
	static _Alignas(64) uint8_t data[VT_HEADER_BYTES];
	struct vt_file_header *header = copy_header(data);
	struct vt_damage damage;

	(void)state;
	atomic_store(&header->n_chunks, 0);
	assert_int_equal(read_header(header, &damage), 0);
	assert_true(damage_is_none(&damage));
	atomic_store(&header->n_chunks, 1ull << 60);
	assert_int_equal(read_header(header, &damage), 0);
	assert_true(damage.missing_bytes > 0);
	header = copy_header(data);
	header->format = VT_FORMAT + 1;
	assert_int_equal(read_header(header, &damage), VT_E_VERSION);
	header->format = 0;
	assert_int_equal(read_header(header, &damage), VT_E_DAMAGED);
	header = copy_header(data);
	header->byte_order = __builtin_bswap32(VT_BYTE_ORDER);
	assert_int_equal(read_header(header, &damage), VT_E_DAMAGED);
	header = copy_header(data);
	header->header_bytes = VT_HEADER_BYTES * 2;
	assert_int_equal(read_header(header, &damage), VT_E_TRUNCATED);
	header->header_bytes = 4097;
	assert_int_equal(read_header(header, &damage), VT_E_DAMAGED);
	header->header_bytes = 0;
	assert_int_equal(read_header(header, &damage), VT_E_DAMAGED);
	header = copy_header(data);
	header->schema_bytes = UINT32_MAX;
	assert_int_equal(read_header(header, &damage), VT_E_DAMAGED);
	header = copy_header(data);
	header->schema_bytes -= 10;
	assert_int_equal(read_header(header, &damage), VT_E_DAMAGED);
	for (uint32_t bytes = 0; bytes < 8192; bytes += 1021) {
		header = copy_header(data);
		header->chunk_bytes = bytes;
		assert_int_equal(read_header(header, &damage), VT_E_DAMAGED);
	}
	header->chunk_bytes = 1u << 31;
	assert_int_equal(read_header(header, &damage), VT_E_DAMAGED);
}

/* A chunk that claims more than it can hold, or is not one, is left out; the others are read. */
static void odd_chunks(void **state)
{
	uint8_t *data = malloc(good.bytes);
	struct vt_chunk_header *chunk;
	struct vt_damage damage;

	(void)state;
	for (int change = 0; change < 3; change++) {
		memcpy(data, good.data, good.bytes);
		chunk = chunk_of(data, VT_HEADER_BYTES + VT_CHUNK_BYTES);
		if (change == 0)
			chunk->used = VT_CHUNK_BYTES;
		else if (change == 1)
			chunk->magic = 7;
		else
			chunk->checksum++;
		file_write(PATH, data, good.bytes);
		assert_int_equal(read_damaged(&damage), 0);
		assert_int_equal(damage.n_chunks_skipped, 1);
		for (uint64_t i = 0; i < N_RECORDS; i++)
			assert_int_equal(seen[i], chunk_of(data, good.start[i]) != chunk);
	}
	/* Handed out, but its thread was stopped before it wrote the header: nothing is missing. */
	memcpy(data, good.data, good.bytes);
	chunk = chunk_of(data, good.bytes - 1);
	memset(chunk, 0, VT_CHUNK_BYTES);
	file_write(PATH, data, good.bytes);
	assert_int_equal(read_damaged(&damage), 0);
	assert_true(damage_is_none(&damage));
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(one_wrong_byte),
		cmocka_unit_test(many_wrong_bytes),
		cmocka_unit_test(not_traces),
		cmocka_unit_test(not_files),
		cmocka_unit_test(odd_headers),
		cmocka_unit_test(odd_chunks),
	};

	return cmocka_run_group_tests(tests, make_good, free_good);
}
