/* tools/pack: traces packed and unpacked again, whole, cut, damaged, still being written, and what
 * only looks like one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <zstd.h>

#include "model/replay.h"
#include "pack/file.h"
#include "pack/pack.h"
#include "pack/unpack.h"
#include "unit/records.h"

#define PLAIN	 "pack.vt"
#define PACKED	 "pack.vt.zst"
#define N_ALLOCS 20000u

static const struct vt_writer_options mapped = {0};

/* Some chunks full of allocations, and one that has just been begun. */
static void put_story(struct vt_lane *lane)
{
	static const uint64_t frames[] = {0x1001, 0x2001};

	vt_put_module(lane, &(struct vt_rec_module){
				    .start = 0x1000, .end = 0x2000, .path = {"/nowhere/a.so", 13}});
	vt_put_stack(lane, &(struct vt_rec_stack){.stack_id = 1, .frames = {frames, 2}});
	for (uint64_t i = 0; i < N_ALLOCS; i++)
		put_alloc(lane, 100 + i, i * i << 12, 4096 + i);
}

static void make_plain(void)
{
	struct vt_writer writer;

	trace_begin(&writer, PLAIN, mapped);
	put_story(vt_writer_lane(&writer, 1, 0));
	vt_lane_release(vt_writer_lane(&writer, 2, 0));
	trace_end(&writer);
}

/* Packs the snapshot, with a name for the first address when named. */
static void pack_snapshot(const struct snapshot *snapshot, bool named)
{
	struct symbol_frame frames[] = {
		{.function = "inner", .file = "a.h", .line = 7}, {.function = "outer"}};
	struct symbol_table *table = symbol_table_new();
	struct symbol_chunks chunks = {0};
	struct pack pack = {.trace = snapshot, .path = PLAIN};
	struct new_file file;
	struct replay *replay;

	assert_int_equal(replay_open_fd(&replay, snapshot->fd, PLAIN, VT_PARTS_ALL, NULL, NULL), 0);
	symbol_table_add_module(
		table, &(struct vt_rec_module){
			       .start = 0x1000, .end = 0x2000, .path = {"/nowhere/a.so", 13}});
	symbol_table_add_resolved(table, 0x1001, 0, frames, 2);
	if (named) {
		symbol_chunks_make(&chunks, replay->model, table, snapshot->header.chunk_bytes,
			snapshot->next_lane, 1 << 20);
		assert_int_equal(chunks.n_chunks, 1);
		assert_int_equal(chunks.n_addresses, 1);
		pack.symbols = &chunks;
	}
	assert_true(new_file_begin(&file, PACKED));
	assert_int_equal(pack_write(&pack, file.fd), 0);
	assert_true(new_file_end(&file, true));
	symbol_chunks_release(&chunks);
	symbol_table_free(table);
	replay_close(replay);
}

static void pack_plain(bool named)
{
	int fd = open(PLAIN, O_RDONLY | O_CLOEXEC);
	struct snapshot snapshot;

	assert_int_equal(snapshot_take(&snapshot, fd), 0);
	pack_snapshot(&snapshot, named);
	snapshot_release(&snapshot);
	close(fd);
}

/* What comes out of PACKED, to be freed; its length in *bytes. */
static uint8_t *unpacked_bytes(size_t *bytes, bool damaged)
{
	struct unpacked file;
	struct stat st;
	uint8_t *data;

	assert_int_equal(unpack_open(&file, PACKED), 0);
	assert_int_equal(file.damaged, damaged);
	assert_true(file.packed_bytes > 0);
	assert_int_equal(fstat(file.fd, &st), 0);
	*bytes = (size_t)st.st_size;
	data = malloc(*bytes + 1);
	assert_int_equal(fd_read_at(file.fd, data, *bytes, 0), *bytes);
	close(file.fd);
	return data;
}

/* Writes PACKED with zstd alone. */
static void pack_by_hand(const void *data, size_t bytes)
{
	size_t room = ZSTD_compressBound(bytes), n;
	void *packed = malloc(room);

	n = ZSTD_compress(packed, room, data, bytes, 1);
	assert_false(ZSTD_isError(n));
	file_write(PACKED, packed, n);
	free(packed);
}

static uint64_t count_allocs(int expected_error)
{
	struct unpacked file;
	struct vt_reader *reader;
	struct vt_record record;
	uint64_t n = 0;
	int error = unpack_open(&file, PACKED);

	if (!error)
		error = vt_reader_open_fd(&reader, file.fd, NULL, VT_PARTS_ALL);
	if (file.fd >= 0)
		close(file.fd);
	assert_int_equal(error, expected_error);
	if (error)
		return 0;
	while (vt_reader_next(reader, &record) == 1)
		n += record.kind == VT_REC_alloc;
	vt_reader_close(reader);
	return n;
}

static void test_same_bytes(void **state)
{
	size_t plain_bytes, bytes;
	uint8_t *plain, *data;

	(void)state;
	make_plain();
	plain = file_read(PLAIN, &plain_bytes);
	pack_plain(false);
	data = unpacked_bytes(&bytes, false);
	assert_int_equal(bytes, plain_bytes);
	assert_memory_equal(data, plain, bytes);
	free(data);

	/* With symbols: one chunk more, before the others. */
	pack_plain(true);
	data = unpacked_bytes(&bytes, false);
	assert_int_equal(bytes, plain_bytes + VT_CHUNK_BYTES);
	assert_memory_equal(data + VT_HEADER_BYTES + VT_CHUNK_BYTES, plain + VT_HEADER_BYTES,
		plain_bytes - VT_HEADER_BYTES);
	assert_int_equal(count_allocs(0), N_ALLOCS);
	free(data);
	free(plain);
}

static void read_symbol(void *user, const struct model *model, const struct vt_record *record)
{
	(void)model;
	if (record->kind == VT_REC_symbol)
		symbol_reader_add(user, &record->symbol);
}

static void test_symbols_come_back(void **state)
{
	struct symbol_table *table = symbol_table_new();
	struct symbol_reader reader = {.table = table};
	const struct symbol_frame *frames;
	struct unpacked file;
	struct replay *replay;

	(void)state;
	make_plain();
	pack_plain(true);
	symbol_table_add_module(
		table, &(struct vt_rec_module){
			       .start = 0x1000, .end = 0x2000, .path = {"/nowhere/a.so", 13}});
	assert_int_equal(unpack_open(&file, PACKED), 0);
	assert_int_equal(
		replay_open_fd(&replay, file.fd, PACKED, VT_PARTS_ALL, read_symbol, &reader), 0);
	symbol_reader_end(&reader);
	assert_int_equal(symbol_table_resolve(table, 0x1001, 0, &frames), 2);
	assert_string_equal(frames[0].function, "inner");
	assert_string_equal(frames[0].file, "a.h");
	assert_int_equal(frames[0].line, 7);
	assert_string_equal(frames[1].function, "outer");
	assert_null(frames[1].file);
	assert_int_equal(frames[1].line, 0);
	assert_string_equal(frames[1].module, "/nowhere/a.so");
	assert_int_equal(replay->model->last_ns, 100 + N_ALLOCS - 1);
	replay_close(replay);
	close(file.fd);
	symbol_table_free(table);
}

/* Records of a damaged trace: a hole, another address in between, no end of depths. */
static void test_damaged_symbols(void **state)
{
	struct symbol_table *table = symbol_table_new();
	struct symbol_reader reader = {.table = table};
	struct vt_rec_symbol record = {.address = 5, .function = {"a\0b", 3}, .line = 1ull << 40};
	const struct symbol_frame *frames;

	(void)state;
	record.depth = 3;
	symbol_reader_add(&reader, &record);
	record.depth = 0;
	symbol_reader_add(&reader, &record);
	record.depth = 2;
	symbol_reader_add(&reader, &record);
	record = (struct vt_rec_symbol){.address = 6, .depth = 1};
	symbol_reader_add(&reader, &record);
	record.address = 5;
	for (; record.depth < 10 * SYMBOL_MAX_DEPTH; record.depth++)
		symbol_reader_add(&reader, &record);
	symbol_reader_end(&reader);
	symbol_reader_end(&reader);
	assert_int_equal(symbol_table_resolve(table, 5, 0, &frames), SYMBOL_MAX_DEPTH);
	assert_string_equal(frames[0].function, "a");
	assert_int_equal(frames[0].line, 0);
	assert_int_equal(symbol_table_resolve(table, 6, 0, &frames), 1);
	assert_null(frames[0].function);
	symbol_table_free(table);
}

/* The line of symbol records is put behind the others, in the place of any other. */
static void test_schema(void **state)
{
	static const char old[] = "1 process N:pid\n14 symbol X:other\n140 x N:y\n";
	size_t bytes;
	char *text = symbol_schema(old, sizeof(old) - 1, &bytes);

	(void)state;
	assert_int_equal(strlen(text), bytes);
	assert_int_equal(strncmp(text, "1 process N:pid\n140 x N:y\n14 symbol A:address ", 46), 0);
	assert_null(strstr(text, "other"));
	free(text);
	text = symbol_schema("1 process N:pid\n", 16, &bytes);
	assert_int_equal(strncmp(text, "1 process N:pid\n14 symbol A:address ", 36), 0);
	assert_int_equal(text[bytes - 1], '\n');
	free(text);
}

/* Cut anywhere, it is as good as what is left of it. */
static void test_cut(void **state)
{
	size_t bytes, n_none = 0, n_some = 0;
	uint64_t last = 0;
	uint8_t *packed;

	(void)state;
	make_plain();
	pack_plain(true);
	packed = file_read(PACKED, &bytes);
	for (size_t cut = 4; cut < bytes; cut += 1 + bytes / 97) {
		struct unpacked file;
		uint64_t n;

		file_write(PACKED, packed, cut);
		if (unpack_open(&file, PACKED)) {
			assert_int_equal(file.fd, -1);
			assert_non_null(strstr(file.why, "nothing of it can be unpacked"));
			assert_int_equal(last, 0);
			n_none++;
			continue;
		}
		close(file.fd);
		assert_true(file.damaged);
		n = count_allocs(0);
		assert_true(n >= last && n <= N_ALLOCS);
		last = n;
		n_some++;
	}
	assert_true(n_none && n_some > 2 && last);
	free(packed);
}

/* The checksum at its end tells. */
static void test_changed(void **state)
{
	size_t bytes, n_found = 0, n = 0;
	uint8_t *packed;

	(void)state;
	make_plain();
	pack_plain(true);
	packed = file_read(PACKED, &bytes);
	for (size_t at = 4; at < bytes; at += 1 + bytes / 97, n++) {
		struct unpacked file;

		packed[at] ^= 0x10;
		file_write(PACKED, packed, bytes);
		packed[at] ^= 0x10;
		if (unpack_open(&file, PACKED) || file.damaged)
			n_found++;
		if (file.fd >= 0)
			close(file.fd);
	}
	/* Some bits of a frame's header mean nothing. */
	assert_true(n_found + 2 >= n);
	free(packed);
}

static void test_damage_is_kept(void **state)
{
	size_t plain_bytes, bytes;
	uint8_t *plain, *data;

	(void)state;
	make_plain();
	plain = file_read(PLAIN, &plain_bytes);
	plain[VT_HEADER_BYTES + 2 * VT_CHUNK_BYTES + 5000] ^= 1;
	memset(plain + VT_HEADER_BYTES + VT_CHUNK_BYTES, 'x', 10);
	for (size_t cut = plain_bytes; cut > VT_HEADER_BYTES; cut -= cut > 30000 ? 29999 : cut) {
		file_write(PLAIN, plain, cut);
		pack_plain(false);
		data = unpacked_bytes(&bytes, false);
		assert_int_equal(bytes, cut);
		assert_memory_equal(data, plain, cut);
		free(data);
	}
	/* A header that claims more chunks than there can be. */
	memset(plain + offsetof(struct vt_file_header, n_chunks), 0xff, 8);
	file_write(PLAIN, plain, plain_bytes);
	pack_plain(true);
	data = unpacked_bytes(&bytes, false);
	assert_int_equal(bytes, plain_bytes + VT_CHUNK_BYTES);
	assert_true(((struct vt_file_header *)data)->n_chunks == UINT64_MAX);
	free(data);
	free(plain);
}

/* What is written after the snapshot is not in it, though it is in the file. */
static void test_running(void **state)
{
	struct vt_writer writer;
	struct vt_lane *lane, *other;
	struct snapshot snapshot;
	size_t bytes;
	uint8_t *data;
	int fd;

	(void)state;
	trace_begin(&writer, PLAIN, mapped);
	lane = vt_writer_lane(&writer, 1, 0);
	for (uint64_t i = 0; i < 100; i++)
		put_alloc(lane, i, i << 12, 4096);
	fd = open(PLAIN, O_RDONLY | O_CLOEXEC);
	assert_int_equal(snapshot_take(&snapshot, fd), 0);
	assert_int_equal(snapshot.next_lane, 1);
	for (uint64_t i = 100; i < N_ALLOCS; i++)
		put_alloc(lane, i, i << 12, 4096);
	other = vt_writer_lane(&writer, 2, 0);
	put_alloc(other, 5, 1, 1);
	pack_snapshot(&snapshot, false);
	snapshot_release(&snapshot);
	close(fd);
	trace_end(&writer);
	assert_int_equal(count_allocs(0), 100);
	data = unpacked_bytes(&bytes, false);
	assert_int_equal(bytes, VT_HEADER_BYTES + VT_CHUNK_BYTES);
	free(data);
}

static void test_by_hand(void **state)
{
	static const uint8_t skippable[] = {0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
	size_t bytes, n;
	uint8_t *plain, *data, *packed;

	(void)state;
	make_plain();
	plain = file_read(PLAIN, &bytes);
	/* In two frames, with one to step over before, and something else behind. */
	packed = malloc(4 * bytes);
	memcpy(packed, skippable, sizeof(skippable));
	n = sizeof(skippable);
	n += ZSTD_compress(packed + n, 2 * bytes, plain, 50000, 3);
	n += ZSTD_compress(packed + n, 2 * bytes, plain + 50000, bytes - 50000, 3);
	memcpy(packed + n, "rest", 4);
	file_write(PACKED, packed, n + 4);
	data = unpacked_bytes(&n, false);
	assert_int_equal(n, bytes);
	assert_memory_equal(data, plain, bytes);
	free(data);

	/* Room behind the end, as the file of a killed process has. */
	data = calloc(1, bytes + (40 << 20));
	memcpy(data, plain, bytes);
	pack_by_hand(data, bytes + (40 << 20));
	free(data);
	data = unpacked_bytes(&n, false);
	assert_int_equal(n, bytes);
	free(data);
	free(packed);
	free(plain);
}

static void test_no_trace(void **state)
{
	static const char text[] = "VRAMTRAC is not how a trace begins";
	struct vt_file_header header = {.magic = VT_MAGIC,
		.format = VT_FORMAT,
		.byte_order = VT_BYTE_ORDER,
		.header_bytes = VT_HEADER_BYTES,
		.chunk_bytes = VT_CHUNK_BYTES,
		.n_chunks = UINT64_MAX / 2};
	size_t bytes = 64 << 20, n;
	uint8_t *data = calloc(1, bytes), *unpacked;

	(void)state;
	pack_by_hand(text, sizeof(text));
	count_allocs(VT_E_NOT_TRACE);
	pack_by_hand(text, 0);
	count_allocs(VT_E_EMPTY);
	pack_by_hand(VT_MAGIC, 8);
	count_allocs(VT_E_TRUNCATED);
	/* Much of nothing: not unpacked further than to see that. */
	pack_by_hand(data, bytes);
	unpacked = unpacked_bytes(&n, false);
	assert_true(n <= 1 << 17);
	free(unpacked);
	count_allocs(VT_E_EMPTY);
	/* The same behind a good header. */
	memcpy(data, &header, sizeof(header));
	pack_by_hand(data, bytes);
	unpacked = unpacked_bytes(&n, false);
	assert_int_equal(n, bytes);
	assert_int_equal(count_allocs(0), 0);
	free(unpacked);
	free(data);
}

static void test_look(void **state)
{
	size_t bytes;
	uint8_t *data;
	int fd;

	(void)state;
	make_plain();
	fd = open(PLAIN, O_RDONLY | O_CLOEXEC);
	assert_int_equal(unpack_look(fd), PACK_PLAIN_TRACE);
	close(fd);
	pack_plain(true);
	data = file_read(PACKED, &bytes);
	fd = open(PACKED, O_RDWR | O_CLOEXEC);
	assert_int_equal(unpack_look(fd), PACK_PACKED_TRACE);
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(unpack_look(fd), PACK_NO_TRACE);
	assert_int_equal(ftruncate(fd, 2), 0);
	assert_int_equal(unpack_look(fd), PACK_NO_TRACE);
	close(fd);
	pack_by_hand("0123456789", 10);
	fd = open(PACKED, O_RDONLY | O_CLOEXEC);
	assert_int_equal(unpack_look(fd), PACK_NO_TRACE);
	close(fd);
	free(data);
}

static void test_no_folder(void **state)
{
	struct unpacked file;

	(void)state;
	make_plain();
	pack_plain(true);
	setenv("TMPDIR", "/no/such/folder", 1);
	assert_int_equal(unpack_open(&file, PACKED), VT_E_OPEN);
	assert_non_null(strstr(file.why, "/no/such/folder: No such file or directory"));
	/* Plain ones need none. */
	assert_int_equal(unpack_open(&file, PLAIN), 0);
	assert_int_equal(file.packed_bytes, 0);
	close(file.fd);
	unsetenv("TMPDIR");
}

static void test_new_file(void **state)
{
	struct new_file file;
	struct stat st;
	char name[64];
	int status;
	pid_t child;

	(void)state;
	unlink("new");
	assert_true(new_file_begin(&file, "new"));
	assert_int_equal(stat("new", &st), -1);
	assert_true(fd_write(file.fd, "1", 1));
	assert_true(new_file_end(&file, false));
	assert_int_equal(stat("new", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(new_file_begin(&file, "new"));
	snprintf(name, sizeof(name), "%s", file.temporary);
	assert_false(new_file_end(&file, false));
	assert_int_equal(errno, EEXIST);
	assert_int_equal(stat(name, &st), -1);
	assert_false(new_file_begin(&file, "no/such/folder/new"));
	assert_int_equal(errno, ENOENT);

	/* Nothing stays behind of one that a signal ended. */
	child = fork();
	if (!child) {
		if (!new_file_begin(&file, "new") || rename(file.temporary, "seen") ||
			link("seen", file.temporary))
			_exit(1);
		raise(SIGTERM);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(stat("seen", &st), 0);
	assert_int_equal(st.st_nlink, 1);
	unlink("seen");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_symbols_come_back),
		cmocka_unit_test(test_damaged_symbols),
		cmocka_unit_test(test_schema),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_damage_is_kept),
		cmocka_unit_test(test_running),
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_no_trace),
		cmocka_unit_test(test_look),
		cmocka_unit_test(test_no_folder),
		cmocka_unit_test(test_new_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
