/* src/trace/writer_parts.c, parts.c: parts rotate within the size that is allowed, and whatever of
 * them is there, the right ones are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/reader.h"
#include "trace/writer.h"

#define MAX_BYTES (1u << 20)
#define N_PUT	  200000u

static char path[64];
static uint64_t n_observed, n_at_checkpoint;

static struct vt_writer writer;
static struct vt_lane *inside; /* observe writes to it, too */

static void observe(enum vt_record_kind kind, uint32_t tid, uint64_t time_ns, const void *record)
{
	(void)tid;
	(void)time_ns;
	if (kind == VT_REC_memory)
		assert_int_equal(((const struct vt_rec_memory *)record)->free_bytes, n_observed);
	n_observed += kind == VT_REC_memory;
	if (inside) {
		assert_int_equal(vt_put_note(inside, &(struct vt_rec_note){{"", 0}}), VT_E_BUSY);
		assert_int_equal(vt_writer_close(&writer), VT_E_BUSY);
	}
}

/* Says how many records came before; of a large one, in several chunks. */
static size_t n_ballast;

static void checkpoint(struct vt_lane *lane, uint64_t number, uint64_t now_ns)
{
	struct vt_rec_checkpoint record = {
		.made_ns = now_ns, .part = number, .n_events = (int64_t)n_observed};
	struct vt_rec_figure figure = {.what = 1, .value = INT64_MAX, .when_ns = UINT64_MAX};

	n_at_checkpoint = n_observed;
	vt_put_checkpoint(lane, &record);
	for (size_t i = 0; i < n_ballast; i++)
		vt_put_figure(lane, &figure);
}

static const struct vt_keeper keeper = {observe, checkpoint};

/* Of a disk that has so many bytes; 0: more than enough. */
static uint64_t disk_bytes;

static int start(void **state)
{
	(void)state;
	n_observed = n_ballast = disk_bytes = 0;
	inside = NULL;
	snprintf(path, sizeof(path), "parts-%d.vt", (int)getpid());
	return 0;
}

static void part_path(uint64_t number, char *out, size_t size)
{
	snprintf(out, size, "%s.part%llu", path, (unsigned long long)number);
}

static void remove_all(void)
{
	char name[96];

	for (uint64_t i = 0; i < 200; i++) {
		part_path(i, name, sizeof(name));
		unlink(name);
	}
	unlink(path);
}

static uint64_t bytes_on_disk(void)
{
	uint64_t bytes = 0;
	struct stat st;
	char name[96];

	for (uint64_t i = 0; i < 200; i++) {
		part_path(i, name, sizeof(name));
		bytes += stat(name, &st) ? 0 : (uint64_t)st.st_size;
	}
	return stat(path, &st) ? 0 : bytes + (uint64_t)st.st_size;
}

/* In the place of libc's. */
int posix_fallocate(int fd, off_t offset, off_t bytes)
{
	struct stat st;

	if (disk_bytes && bytes_on_disk() + (uint64_t)bytes > disk_bytes)
		return ENOSPC;
	if (fstat(fd, &st) || (st.st_size < offset + bytes && ftruncate(fd, offset + bytes)))
		return EIO;
	return 0;
}

static void begin(bool copy)
{
	const struct vt_writer_options options = {
		.max_bytes = MAX_BYTES, .keeper = &keeper, .copy = copy};

	assert_int_equal(vt_writer_open(&writer, path, &options), 0);
}

static void put(unsigned int n)
{
	struct vt_lane *lane = vt_writer_lane(&writer, 7, 0);

	for (unsigned int i = 0; i < n; i++) {
		struct vt_rec_memory record = {.time_ns = n_observed, .free_bytes = n_observed};

		assert_int_equal(vt_put_memory(lane, &record), 0);
	}
	vt_lane_release(lane);
}

/* Every record from the first on to `last`, none twice, and what is before it in the checkpoint. */
static uint64_t check(enum vt_parts_which which, uint64_t last)
{
	struct vt_reader *reader;
	struct vt_record record;
	uint64_t next = 0, first;
	bool begun = false;
	int fd = open(path, O_RDONLY), found;

	assert_int_equal(vt_reader_open_fd(&reader, fd, path, which), 0);
	close(fd);
	while ((found = vt_reader_next(reader, &record)) == 1) {
		if (record.kind == VT_REC_checkpoint) {
			assert_false(begun);
			begun = true;
			next = (uint64_t)record.checkpoint.n_events;
		}
		if (record.kind == VT_REC_memory)
			assert_int_equal(record.memory.free_bytes, next++);
	}
	assert_int_equal(found, 0);
	assert_int_equal(next, last);
	assert_int_equal(vt_reader_damage(reader)->n_chunks_skipped, 0);
	/* Once more, when the reader has let go of what it read. */
	vt_reader_rewind(reader);
	first = vt_reader_next(reader, &record) == 1 && record.kind == VT_REC_checkpoint
			? (uint64_t)record.checkpoint.n_events
			: 0;
	vt_reader_close(reader);
	return first;
}

static void rotate(bool copy)
{
	uint64_t first;

	begin(copy);
	put(N_PUT);
	vt_writer_close(&writer);
	assert_true(writer.parts.first > 1);
	assert_true(bytes_on_disk() <= MAX_BYTES);
	assert_true(bytes_on_disk() > MAX_BYTES / 2);
	first = check(VT_PARTS_ALL, N_PUT);
	assert_true(first > 0 && first < N_PUT);
	assert_int_equal(check(VT_PARTS_NEWEST, N_PUT), n_at_checkpoint);
	remove_all();
}

static void old_parts_go(void **state)
{
	(void)state;
	rotate(false);
}

static void the_same_without_mappings(void **state)
{
	(void)state;
	rotate(true);
}

/* Nobody but the newest and the one before it is needed. */
static void a_gap_ends_what_is_read(void **state)
{
	char name[96];

	(void)state;
	begin(false);
	put(N_PUT);
	vt_writer_close(&writer);
	part_path(writer.parts.number - 1, name, sizeof(name));
	assert_int_equal(unlink(name), 0);
	assert_int_equal(check(VT_PARTS_ALL, N_PUT), n_at_checkpoint);
	remove_all();
}

/* The first bytes of the chunks are no longer at the begin of pages: they cannot be mapped. */
static void widen_header(const char *name)
{
	const uint32_t header_bytes = VT_HEADER_BYTES + 64;
	static char bytes[MAX_BYTES];
	int fd = open(name, O_RDWR);
	ssize_t n = fd < 0 ? 0 : read(fd, bytes, sizeof(bytes));

	if (n >= (ssize_t)VT_HEADER_BYTES) {
		memcpy(bytes + offsetof(struct vt_file_header, header_bytes), &header_bytes,
			sizeof(header_bytes));
		assert_int_equal(pwrite(fd, bytes, VT_HEADER_BYTES, 0), VT_HEADER_BYTES);
		n -= VT_HEADER_BYTES;
		assert_int_equal(pwrite(fd, bytes + VT_HEADER_BYTES, (size_t)n, header_bytes), n);
		assert_int_equal(ftruncate(fd, header_bytes + n), 0);
	}
	close(fd);
}

static void parts_that_cannot_be_mapped_are_copied(void **state)
{
	char name[96];
	uint64_t first;

	(void)state;
	begin(false);
	put(N_PUT);
	vt_writer_close(&writer);
	first = check(VT_PARTS_ALL, N_PUT);
	for (uint64_t i = 0; i < 200; i++) {
		part_path(i, name, sizeof(name));
		widen_header(name);
	}
	widen_header(path);
	assert_int_equal(check(VT_PARTS_ALL, N_PUT), first);
	remove_all();
}

static void set_in_header(uint64_t number, size_t offset, uint32_t value)
{
	char name[96];
	int fd;

	part_path(number, name, sizeof(name));
	fd = open(name, O_WRONLY);
	assert_int_equal(pwrite(fd, &value, sizeof(value), (off_t)offset), sizeof(value));
	close(fd);
}

/* As a process leaves it that is killed while it writes a checkpoint. */
static void a_part_that_is_not_ready_does_not_count(void **state)
{
	uint64_t last;

	(void)state;
	begin(false);
	put(N_PUT);
	last = n_at_checkpoint;
	vt_writer_close(&writer);
	set_in_header(writer.parts.number, offsetof(struct vt_file_header, ready), 0);
	assert_true(check(VT_PARTS_ALL, last) < last);
	remove_all();
}

static void a_part_of_another_trace_does_not_count(void **state)
{
	uint64_t last;

	(void)state;
	begin(false);
	put(N_PUT);
	last = n_at_checkpoint;
	vt_writer_close(&writer);
	set_in_header(writer.parts.number, offsetof(struct vt_file_header, pid), 1);
	assert_true(check(VT_PARTS_ALL, last) < last);
	remove_all();
}

static void without_parts_there_is_nothing(void **state)
{
	struct vt_reader *reader;
	char name[96];

	(void)state;
	begin(false);
	put(10);
	vt_writer_close(&writer);
	set_in_header(1, offsetof(struct vt_file_header, ready), 0);
	assert_int_equal(vt_reader_open(&reader, path), VT_E_EMPTY);
	part_path(1, name, sizeof(name));
	unlink(name);
	assert_int_equal(vt_reader_open(&reader, path), VT_E_NO_PARTS);
	remove_all();
}

/* A part is more than its share then, and the sum stays what it may be. */
static void a_large_checkpoint_fits(void **state)
{
	(void)state;
	n_ballast = 10000;
	begin(false);
	put(N_PUT);
	vt_writer_close(&writer);
	assert_int_equal(atomic_load(&writer.header->stopped), 0);
	assert_true(bytes_on_disk() <= MAX_BYTES);
	check(VT_PARTS_ALL, N_PUT);
	remove_all();
}

/* Puts until that fails, which it must, and says why. */
static uint64_t put_until(int error)
{
	struct vt_lane *lane = vt_writer_lane(&writer, 7, 0);
	uint64_t n = 0;

	for (; n < N_PUT; n++) {
		struct vt_rec_memory record = {.time_ns = n_observed, .free_bytes = n_observed};

		if (vt_put_memory(lane, &record))
			break;
	}
	assert_true(n < N_PUT);
	assert_int_equal(atomic_load(&writer.header->stopped), error);
	n_observed--; /* the lost one, which its keeper was told of */
	return n_observed;
}

/* Then recording stops, and what there was stays whole. */
static void one_that_does_not_fit_stops(void **state)
{
	uint64_t n;

	(void)state;
	n_ballast = 100000;
	begin(false);
	n = put_until(VT_E_LIMIT);
	vt_writer_close(&writer);
	assert_true(bytes_on_disk() <= MAX_BYTES);
	check(VT_PARTS_ALL, n);
	remove_all();
}

static void older_parts_go_for_space(void **state)
{
	(void)state;
	disk_bytes = MAX_BYTES / 2;
	begin(false);
	put(N_PUT);
	vt_writer_close(&writer);
	assert_int_equal(atomic_load(&writer.header->stopped), 0);
	assert_true(bytes_on_disk() <= disk_bytes);
	check(VT_PARTS_ALL, N_PUT);
	remove_all();
}

static void without_any_space_it_stops(void **state)
{
	uint64_t n;

	(void)state;
	begin(false);
	put(N_PUT);
	disk_bytes = 1;
	n = put_until(VT_E_NO_SPACE);
	vt_writer_close(&writer);
	check(VT_PARTS_ALL, n);
	remove_all();
}

static void set_limit(__rlimit_resource_t which, rlim_t most)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(which, &limit), 0);
	limit.rlim_cur = most ? most : limit.rlim_max;
	assert_int_equal(setrlimit(which, &limit), 0);
}

/* More would be a signal. */
static void parts_are_no_larger_than_files_may_be(void **state)
{
	rlim_t most = VT_HEADER_BYTES + VT_CHUNK_BYTES * 5 / 2;
	struct stat st;
	char name[96];

	(void)state;
	begin(false);
	set_limit(RLIMIT_FSIZE, most);
	put(N_PUT);
	vt_writer_close(&writer);
	set_limit(RLIMIT_FSIZE, 0);
	assert_int_equal(atomic_load(&writer.header->stopped), 0);
	part_path(writer.parts.number, name, sizeof(name));
	assert_int_equal(stat(name, &st), 0);
	assert_true((rlim_t)st.st_size <= most);
	check(VT_PARTS_ALL, N_PUT);
	remove_all();
}

static void without_files_to_open_it_stops(void **state)
{
	uint64_t n;

	(void)state;
	begin(false);
	put(N_PUT);
	set_limit(RLIMIT_NOFILE, 1);
	n = put_until(VT_E_OPEN);
	set_limit(RLIMIT_NOFILE, 0);
	vt_writer_close(&writer);
	check(VT_PARTS_ALL, n);
	remove_all();
}

static void without_its_folder_it_stops(void **state)
{
	char folder[32];

	(void)state;
	snprintf(folder, sizeof(folder), "folder-%d", (int)getpid());
	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(path, sizeof(path), "%s/parts.vt", folder);
	begin(false);
	put(1000);
	remove_all();
	assert_int_equal(rmdir(folder), 0);
	put_until(VT_E_OPEN);
	assert_int_equal(vt_writer_close(&writer), 0);
}

/* What a handler of a signal does that comes in the midst of a record. */
static void nobody_waits_for_himself(void **state)
{
	(void)state;
	begin(false);
	inside = vt_writer_lane(&writer, 7, 0);
	put(100);
	assert_int_equal(atomic_load(&writer.header->n_lost), 100);
	inside = NULL;
	assert_int_equal(vt_writer_close(&writer), 0);
	check(VT_PARTS_ALL, 100);
	remove_all();
}

static void *put_cancelled(void *unused)
{
	pthread_cancel(pthread_self());
	put(N_PUT / 2);
	pthread_testcancel();
	return unused;
}

/* Not while others wait for what it has locked. */
static void threads_are_cancelled_later(void **state)
{
	pthread_t thread;
	void *result;

	(void)state;
	for (int copy = 0; copy < 2; copy++) {
		n_observed = 0;
		begin(copy);
		assert_int_equal(pthread_create(&thread, NULL, put_cancelled, NULL), 0);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
		put(N_PUT / 2);
		vt_writer_close(&writer);
		check(VT_PARTS_ALL, N_PUT);
		remove_all();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(old_parts_go, start),
		cmocka_unit_test_setup(the_same_without_mappings, start),
		cmocka_unit_test_setup(parts_that_cannot_be_mapped_are_copied, start),
		cmocka_unit_test_setup(a_gap_ends_what_is_read, start),
		cmocka_unit_test_setup(a_part_that_is_not_ready_does_not_count, start),
		cmocka_unit_test_setup(a_part_of_another_trace_does_not_count, start),
		cmocka_unit_test_setup(without_parts_there_is_nothing, start),
		cmocka_unit_test_setup(a_large_checkpoint_fits, start),
		cmocka_unit_test_setup(one_that_does_not_fit_stops, start),
		cmocka_unit_test_setup(older_parts_go_for_space, start),
		cmocka_unit_test_setup(without_any_space_it_stops, start),
		cmocka_unit_test_setup(parts_are_no_larger_than_files_may_be, start),
		cmocka_unit_test_setup(without_files_to_open_it_stops, start),
		cmocka_unit_test_setup(without_its_folder_it_stops, start),
		cmocka_unit_test_setup(nobody_waits_for_himself, start),
		cmocka_unit_test_setup(threads_are_cancelled_later, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
