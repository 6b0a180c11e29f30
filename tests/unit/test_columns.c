/* tools/pack: chunks in columns, which come back byte by byte whatever is in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <zstd.h>

#include "pack/columns.h"
#include "pack/file.h"
#include "pack/pack.h"
#include "pack/ungroup.h"
#include "pack/unpack.h"
#include "unit/records.h"

#define PLAIN	  "columns.vt"
#define PACKED	  "columns.vt.zst"
#define N_CHUNKS  80u
#define LAST	  5000u /* bytes of the last chunk */
#define AT(chunk) (VT_HEADER_BYTES + (size_t)(chunk)*VT_CHUNK_BYTES)

static const struct vt_writer_options mapped = {0};

/* A trace with a chunk full of records of several kinds, many times; to be freed. */
static uint8_t *make_trace(size_t *bytes)
{
	static const uint64_t frames[] = {0x1001, 0x2001};
	struct vt_writer writer;
	struct vt_lane *lane;
	struct vt_chunk_header *chunk;
	uint8_t *one, *all;

	trace_begin(&writer, PLAIN, mapped);
	lane = vt_writer_lane(&writer, 1, 0);
	vt_put_module(lane, &(struct vt_rec_module){
				    .start = 0x1000, .end = 0x2000, .path = {"/nowhere/a.so", 13}});
	for (uint64_t i = 0; i < 200; i++) {
		vt_put_stack(
			lane, &(struct vt_rec_stack){.stack_id = 1 + i, .frames = {frames, i % 3}});
		put_alloc(lane, 100 + i * i, i * i << 12, 4096 + i);
	}
	trace_end(&writer);
	one = file_read(PLAIN, bytes);
	*bytes = AT(N_CHUNKS - 1) + LAST;
	all = calloc(AT(N_CHUNKS), 1);
	memcpy(all, one, VT_HEADER_BYTES);
	((struct vt_file_header *)(void *)all)->n_chunks = N_CHUNKS;
	for (uint32_t i = 0; i < N_CHUNKS; i++) {
		memcpy(all + AT(i), one + AT(0), VT_CHUNK_BYTES);
		chunk = (struct vt_chunk_header *)(void *)(all + AT(i));
		chunk->lane = i;
	}
	/* What does not parse, what nobody wrote, what the schema does not know, and no chunk. */
	((struct vt_chunk_header *)(void *)(all + AT(3)))->used += 3;
	((struct vt_chunk_header *)(void *)(all + AT(4)))->used = UINT32_MAX;
	((struct vt_chunk_header *)(void *)(all + AT(5)))->sealed = 1;
	all[AT(5) + VT_CHUNK_BYTES - 1] = 1;
	all[AT(6) + sizeof(*chunk)] = 255;
	memset(all + AT(7), 0, VT_CHUNK_BYTES);
	memset(all + AT(70), 0x80, VT_CHUNK_BYTES);
	free(one);
	return all;
}

static void pack_trace(const uint8_t *data, size_t bytes)
{
	struct snapshot snapshot;
	struct pack pack = {.trace = &snapshot, .path = PLAIN};
	struct new_file file;
	int fd;

	file_write(PLAIN, data, bytes);
	fd = open(PLAIN, O_RDONLY | O_CLOEXEC);
	assert_int_equal(snapshot_take(&snapshot, fd), 0);
	assert_true(new_file_begin(&file, PACKED));
	assert_int_equal(pack_write(&pack, file.fd), 0);
	assert_true(new_file_end(&file, true));
	snapshot_release(&snapshot);
	close(fd);
}

/* What comes out of the file, to be freed. */
static uint8_t *unpack_trace(const char *path, size_t *bytes, bool *damaged)
{
	struct unpacked file;
	struct stat st;
	uint8_t *data;

	assert_int_equal(unpack_open(&file, path), 0);
	*damaged = file.damaged;
	assert_int_equal(fstat(file.fd, &st), 0);
	*bytes = (size_t)st.st_size;
	data = malloc(*bytes + 1);
	assert_int_equal(fd_read_at(file.fd, data, *bytes, 0), *bytes);
	close(file.fd);
	return data;
}

/* What zstd alone makes of PACKED; to be freed. */
static uint8_t *decompress(size_t *bytes)
{
	size_t packed_bytes, room = 2 * AT(N_CHUNKS);
	uint8_t *packed = file_read(PACKED, &packed_bytes), *data = malloc(room);

	*bytes = ZSTD_decompress(data, room, packed, packed_bytes);
	assert_false(ZSTD_isError(*bytes));
	free(packed);
	return data;
}

static void test_same_bytes(void **state)
{
	size_t bytes, out_bytes;
	uint8_t *trace = make_trace(&bytes), *out;
	bool damaged;

	(void)state;
	pack_trace(trace, bytes);
	out = unpack_trace(PACKED, &out_bytes, &damaged);
	assert_false(damaged);
	assert_int_equal(out_bytes, bytes);
	assert_memory_equal(out, trace, bytes);
	free(out);

	/* In columns indeed, and read as well when zstd has unpacked them. */
	out = decompress(&out_bytes);
	assert_int_equal(
		((struct vt_file_header *)(void *)out)->group_chunks, COLUMNS_GROUP_CHUNKS);
	file_write(PLAIN, out, out_bytes);
	free(out);
	out = unpack_trace(PLAIN, &out_bytes, &damaged);
	assert_false(damaged);
	assert_int_equal(out_bytes, bytes);
	assert_memory_equal(out, trace, bytes);
	free(out);
	free(trace);
}

static void test_cut(void **state)
{
	size_t bytes, packed_bytes, out_bytes, last = 0;
	uint8_t *trace = make_trace(&bytes), *packed, *out;
	bool damaged;

	(void)state;
	pack_trace(trace, bytes);
	packed = decompress(&packed_bytes);
	for (size_t cut = VT_HEADER_BYTES; cut < packed_bytes; cut += 1 + packed_bytes / 31) {
		file_write(PLAIN, packed, cut);
		out = unpack_trace(PLAIN, &out_bytes, &damaged);
		assert_true(damaged || cut == VT_HEADER_BYTES);
		assert_true(out_bytes >= last && out_bytes < bytes);
		assert_memory_equal(out + VT_HEADER_BYTES, trace + VT_HEADER_BYTES,
			out_bytes - VT_HEADER_BYTES);
		last = out_bytes;
		free(out);
	}
	assert_int_equal(last, AT(COLUMNS_GROUP_CHUNKS));
	free(packed);
	free(trace);
}

static int count_bytes(void *user, const uint8_t *data, size_t bytes)
{
	(void)data;
	*(size_t *)user += bytes;
	return 0;
}

/* Any byte may be another one: something comes out, never more than the trace had. */
static void test_changed(void **state)
{
	size_t bytes, packed_bytes, n;
	uint8_t *trace = make_trace(&bytes), *packed;
	unsigned int n_damaged = 0;

	(void)state;
	pack_trace(trace, bytes);
	packed = decompress(&packed_bytes);
	for (size_t at = AT(0); at < packed_bytes;
		at += at < AT(0) + 16 ? 1 : 1 + packed_bytes / 97) {
		struct ungroup ungroup = {.writer = count_bytes, .user = &n};

		n = 0;
		packed[at] ^= 0x81;
		assert_int_equal(ungroup_put(&ungroup, packed, packed_bytes), 0);
		packed[at] ^= 0x81;
		assert_true(n >= VT_HEADER_BYTES && n <= AT(N_CHUNKS));
		n_damaged += !ungroup_is_whole(&ungroup);
		ungroup_release(&ungroup);
	}
	assert_true(n_damaged > 10);
	free(packed);
	free(trace);
}

/* However the bytes come. */
static void test_pieces(void **state)
{
	size_t bytes, packed_bytes, n;
	uint8_t *trace = make_trace(&bytes), *packed;

	(void)state;
	pack_trace(trace, bytes);
	packed = decompress(&packed_bytes);
	for (size_t piece = 7; piece < packed_bytes; piece *= 19) {
		struct ungroup ungroup = {.writer = count_bytes, .user = &n};

		n = 0;
		for (size_t at = 0; at < packed_bytes; at += piece)
			assert_int_equal(
				ungroup_put(&ungroup, packed + at,
					at + piece < packed_bytes ? piece : packed_bytes - at),
				0);
		assert_true(ungroup_is_whole(&ungroup));
		assert_int_equal(n, bytes);
		ungroup_release(&ungroup);
	}
	free(packed);
	free(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
