/* src/trace: what a writer puts into a file, a reader gets out of it, in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "unit/records.h"

#define PATH "trace.vt"

static const struct vt_writer_options mapped = {0}, copied = {.copy = true};

/* Three of every kind, in random order of kinds and with rising times; read back and compared field
 * by field. */
static void check_all_kinds(struct vt_writer_options options)
{
	struct source writing = {.state = 4711}, again = {.state = 4711};
	struct vt_record record, expected;
	struct vt_writer writer;
	struct vt_reader *reader;
	struct vt_lane *lane;
	unsigned int n_written = 0, n_read = 0;

	trace_begin(&writer, PATH, options);
	lane = vt_writer_lane(&writer, 77, 0);
	for (unsigned int i = 0; i < 3000; i++) {
		writing.time_ns = 1000 + i;
		if (!record_fill(&record, (unsigned int)(source_next(&writing) % VT_N_RECORDS),
			    &writing))
			continue;
		assert_int_equal(record_put(lane, &record), 0);
		n_written++;
	}
	assert_true(atomic_load(&writer.header->n_chunks) > 3);
	trace_end(&writer);

	reader = reader_open(PATH);
	assert_int_equal(vt_reader_header(reader)->pid, getpid());
	for (unsigned int i = 0; i < 3000; i++) {
		const char *difference;

		again.time_ns = 1000 + i;
		if (!record_fill(
			    &expected, (unsigned int)(source_next(&again) % VT_N_RECORDS), &again))
			continue;
		assert_int_equal(vt_reader_next(reader, &record), 1);
		difference = record_difference(&record, &expected);
		if (difference)
			fail_msg("record %u of kind %d: field %s", n_read, (int)expected.kind,
				difference);
		n_read++;
	}
	assert_int_equal(vt_reader_next(reader, &record), 0);
	assert_int_equal(n_read, n_written);
	assert_true(damage_is_none(vt_reader_damage(reader)));
	vt_reader_close(reader);
}

static void all_kinds_come_back(void **state)
{
	(void)state;
	check_all_kinds(mapped);
}

static void all_kinds_come_back_without_mapping(void **state)
{
	(void)state;
	check_all_kinds(copied);
}

/* Both ways of writing make the same file, but for the clocks, and that only one can be told to
 * pause. */
static void copy_mode_writes_the_same_bytes(void **state)
{
	uint8_t *data[2];
	size_t bytes[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct vt_writer writer;
		struct vt_lane *lane;

		trace_begin(&writer, PATH, i ? copied : mapped);
		lane = vt_writer_lane(&writer, 77, 5000);
		for (unsigned int n = 0; n < 20000; n++)
			assert_int_equal(
				put_alloc(lane, 5000 + n, 0x7f0000000000u + n * 512, n), 0);
		trace_end(&writer);
		data[i] = file_read(PATH, &bytes[i]);
		memset(data[i] + offsetof(struct vt_file_header, start_realtime_ns), 0, 16);
		assert_int_equal(
			((struct vt_file_header *)data[i])->control, i ? 0 : VT_CONTROL_HEEDED);
		((struct vt_file_header *)data[i])->control = 0;
	}
	assert_int_equal(bytes[0], bytes[1]);
	assert_int_equal((bytes[0] - VT_HEADER_BYTES) % VT_CHUNK_BYTES, 0);
	assert_memory_equal(data[0], data[1], bytes[0]);
	free(data[0]);
	free(data[1]);
}

/* A full chunk is sealed with its checksum and followed by another of the same lane. */
static void chunks_follow_one_another(void **state)
{
	struct vt_writer writer;
	const struct vt_chunk_header *chunk;
	struct vt_lane *lane;
	uint8_t *data;
	size_t bytes, n_chunks;

	(void)state;
	trace_begin(&writer, PATH, mapped);
	lane = vt_writer_lane(&writer, 5, 77);
	for (unsigned int n = 77; atomic_load(&writer.header->n_chunks) < 20; n++)
		assert_int_equal(put_alloc(lane, n, n, 1), 0);
	trace_end(&writer);
	data = file_read(PATH, &bytes);
	n_chunks = (bytes - VT_HEADER_BYTES) / VT_CHUNK_BYTES;
	assert_int_equal(n_chunks, 20);
	for (size_t i = 0; i < n_chunks; i++) {
		chunk = (const void *)(data + VT_HEADER_BYTES + i * VT_CHUNK_BYTES);
		assert_int_equal(chunk->magic, VT_CHUNK_MAGIC);
		assert_int_equal(chunk->lane, 0);
		assert_int_equal(chunk->tid, 5);
		assert_true(i ? chunk->base_time_ns > 77 : chunk->base_time_ns == 77);
		assert_int_equal(chunk->sealed, i + 1 < n_chunks);
		if (chunk->sealed)
			assert_true(chunk->checksum ==
				    vt_checksum((const uint8_t *)(chunk + 1), chunk->used));
	}
	free(data);
}

#define N_THREADS  8
#define N_PER_LANE 20000u

static struct vt_writer shared_writer;
static _Atomic uint64_t shared_clock;

static void *write_lane(void *argument)
{
	uint64_t self = (uint64_t)(uintptr_t)argument;
	struct vt_lane *lane = vt_writer_lane(&shared_writer, (uint32_t)self, 0);

	for (uint64_t i = 0; i < N_PER_LANE; i++)
		if (put_alloc(lane, atomic_fetch_add(&shared_clock, 1), self << 32 | i, i))
			return "lost";
	return NULL;
}

/* Every record of every thread comes out, once, and the times never fall: here each time is there
 * exactly once. */
static void lanes_merge_in_order_of_time(void **state)
{
	pthread_t threads[N_THREADS];
	uint64_t next[N_THREADS + 1] = {0}, n = 0;
	struct vt_record record;
	struct vt_reader *reader;
	void *problem;

	(void)state;
	trace_begin(&shared_writer, PATH, mapped);
	atomic_store(&shared_clock, 1);
	for (uintptr_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_lane, (void *)(i + 1)), 0);
	for (int i = 0; i < N_THREADS; i++) {
		pthread_join(threads[i], &problem);
		assert_null(problem);
	}
	trace_end(&shared_writer);
	reader = reader_open(PATH);
	for (int round = 0; round < 2; round++) {
		memset(next, 0, sizeof(next));
		for (n = 0; vt_reader_next(reader, &record) == 1; n++) {
			uint64_t thread = record.alloc.address >> 32;

			assert_true(record.time_ns == n + 1);
			assert_int_equal(record.kind, VT_REC_alloc);
			assert_int_equal(record.tid, thread);
			assert_true(record.alloc.bytes == next[thread]++);
		}
		assert_int_equal(n, N_THREADS * N_PER_LANE);
		assert_true(damage_is_none(vt_reader_damage(reader)));
		assert_int_equal(vt_reader_rewind(reader), 0);
	}
	vt_reader_close(reader);
}

/* At the same nanosecond, what takes memory away comes first, whichever lane it is in. */
static void frees_sort_before_allocations(void **state)
{
	struct vt_rec_free release = {.time_ns = 50, .address = 64};
	struct vt_writer writer;
	struct vt_record record;
	struct vt_reader *reader;
	struct vt_lane *first, *second;

	(void)state;
	trace_begin(&writer, PATH, mapped);
	first = vt_writer_lane(&writer, 1, 0);
	second = vt_writer_lane(&writer, 2, 0);
	assert_int_equal(put_alloc(first, 50, 64, 1), 0);
	assert_int_equal(vt_put_free(second, &release), 0);
	trace_end(&writer);
	reader = reader_open(PATH);
	assert_int_equal(vt_reader_next(reader, &record), 1);
	assert_int_equal(record.kind, VT_REC_free);
	assert_int_equal(vt_reader_next(reader, &record), 1);
	assert_int_equal(record.kind, VT_REC_alloc);
	assert_int_equal(vt_reader_next(reader, &record), 0);
	vt_reader_close(reader);
}

/* A lane whose thread has ended goes on in the same chunk; the `thread` record tells the two apart.
 */
static void released_lanes_are_used_again(void **state)
{
	struct vt_writer writer;
	struct vt_record record;
	struct vt_reader *reader;
	unsigned int n = 0;

	(void)state;
	trace_begin(&writer, PATH, mapped);
	for (uint32_t tid = 1; tid <= 1000; tid++) {
		struct vt_lane *lane = vt_writer_lane(&writer, tid, tid);
		struct vt_rec_thread thread = {.tid = tid};

		assert_int_equal(vt_put_thread(lane, &thread), 0);
		assert_int_equal(put_alloc(lane, tid, tid, 1), 0);
		vt_lane_release(lane);
	}
	assert_int_equal(writer.n_lanes, 1);
	assert_int_equal(atomic_load(&writer.header->n_chunks), 1);
	trace_end(&writer);
	reader = reader_open(PATH);
	while (vt_reader_next(reader, &record) == 1)
		if (record.kind == VT_REC_alloc) {
			n++;
			assert_int_equal(record.tid, record.alloc.address);
		}
	assert_int_equal(n, 1000);
	vt_reader_close(reader);
}

/* A thread whose first record is a free that began long ago neither continues a lane that is newer
 * than that, nor sorts behind those who were given the address meanwhile. */
static void lanes_never_go_back_in_time(void **state)
{
	struct vt_rec_free release = {.time_ns = 10, .address = 64};
	struct vt_lane *first, *slow, *later;
	struct vt_writer writer;
	struct vt_record record;
	struct vt_reader *reader;

	(void)state;
	trace_begin(&writer, PATH, mapped);
	first = vt_writer_lane(&writer, 1, 5);
	assert_int_equal(put_alloc(first, 20, 64, 1), 0);
	vt_lane_release(first);
	slow = vt_writer_lane(&writer, 2, 10);
	assert_ptr_not_equal(slow, first);
	assert_int_equal(vt_put_free(slow, &release), 0);
	later = vt_writer_lane(&writer, 3, 20);
	assert_ptr_equal(later, first);
	assert_int_equal(put_alloc(later, 21, 128, 1), 0);
	trace_end(&writer);
	reader = reader_open(PATH);
	for (uint64_t i = 0; i < 3; i++) {
		static const uint64_t times[] = {10, 20, 21};

		assert_int_equal(vt_reader_next(reader, &record), 1);
		assert_int_equal(record.time_ns, times[i]);
	}
	assert_int_equal(vt_reader_next(reader, &record), 0);
	vt_reader_close(reader);
}

static unsigned int count_records(struct vt_damage *damage)
{
	struct vt_reader *reader = reader_open(PATH);
	struct vt_record record;
	unsigned int n = 0;

	while (vt_reader_next(reader, &record) == 1)
		n++;
	*damage = *vt_reader_damage(reader);
	vt_reader_close(reader);
	return n;
}

/* At the limit records are lost, counted, and the file stays below it; what was written is whole.
 */
static void check_limit(struct vt_writer *writer, uint64_t limit, int error)
{
	struct vt_lane *lane = vt_writer_lane(writer, 1, 0);
	struct vt_damage damage;
	unsigned int n = 0, n_lost = 0;
	struct stat st;
	int result;

	for (unsigned int i = 0; i < 300000; i++) {
		result = put_alloc(lane, i, i * 4096, 100);
		if (result) {
			assert_int_equal(result, error);
			n_lost++;
		} else {
			n++;
		}
	}
	assert_true(n_lost > 1000);
	assert_int_equal(atomic_load(&writer->header->n_lost), n_lost);
	assert_int_equal(atomic_load(&writer->header->stopped), error);
	trace_end(writer);
	assert_int_equal(stat(PATH, &st), 0);
	assert_true((uint64_t)st.st_size <= limit);
	assert_true((uint64_t)st.st_size > limit - 2 * VT_CHUNK_BYTES);
	assert_int_equal(count_records(&damage), n);
	assert_true(damage_is_none(&damage));
}

static void size_limit_is_kept(void **state)
{
	const struct vt_writer_options options = {.max_bytes = 1500000}, tiny = {.max_bytes = 4096};
	struct vt_writer writer;
	struct stat st;

	(void)state;
	trace_begin(&writer, PATH, options);
	check_limit(&writer, options.max_bytes, VT_E_LIMIT);
	unlink(PATH);
	assert_int_equal(vt_writer_open(&writer, PATH, &tiny), VT_E_LIMIT);
	assert_int_not_equal(stat(PATH, &st), 0);
}

/* In a child, because the limit cannot be raised again. */
static void file_size_limit_does_not_kill(void **state)
{
	pid_t child;
	int status;

	(void)state;
	child = fork();
	if (!child) {
		struct rlimit limit = {2000000, 2000000};
		struct vt_writer writer;

		signal(SIGXFSZ, SIG_DFL);
		if (setrlimit(RLIMIT_FSIZE, &limit))
			_exit(2);
		trace_begin(&writer, PATH, mapped);
		check_limit(&writer, 2000000, VT_E_LIMIT);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A thread that outlives the end may go on: what fits into its chunk is kept, the rest is lost,
 * nothing breaks. */
static void records_after_the_end_do_no_harm(void **state)
{
	struct vt_damage damage;
	struct vt_writer writer;
	struct vt_lane *lane, *late;
	unsigned int n = 1;
	int error = 0;

	(void)state;
	trace_begin(&writer, PATH, mapped);
	lane = vt_writer_lane(&writer, 1, 0);
	assert_int_equal(put_alloc(lane, 1, 1, 1), 0);
	assert_int_equal(vt_writer_close(&writer), 0);
	assert_int_equal(vt_writer_close(&writer), 0);
	for (unsigned int i = 2; !error; i++, n += !error)
		error = put_alloc(lane, i, i, 1);
	assert_int_equal(error, VT_E_CLOSED);
	assert_true(n > 1000);
	late = vt_writer_lane(&writer, 2, 0);
	assert_non_null(late);
	assert_int_equal(put_alloc(late, 1, 1, 1), VT_E_CLOSED);
	assert_int_equal(count_records(&damage), n);
	assert_true(damage_is_none(&damage));
	vt_writer_forget(&writer);
}

/* The path must be free: no file is overwritten, no link followed, nobody else can read the trace.
 */
static void nothing_is_overwritten(void **state)
{
	struct vt_writer writer;
	struct stat st;

	(void)state;
	trace_begin(&writer, PATH, mapped);
	trace_end(&writer);
	assert_int_equal(stat(PATH, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(vt_writer_open(&writer, PATH, &mapped), VT_E_OPEN);
	assert_int_equal(errno, EEXIST);
	unlink("link.vt");
	assert_int_equal(symlink("target.vt", "link.vt"), 0);
	assert_int_equal(vt_writer_open(&writer, "link.vt", &mapped), VT_E_OPEN);
	assert_int_not_equal(stat("target.vt", &st), 0);
	assert_int_equal(vt_writer_open(&writer, "no/such/folder.vt", &mapped), VT_E_OPEN);
	assert_int_equal(errno, ENOENT);
	unlink("link.vt");
}

/* More than a chunk holds is refused; a long text is cut. */
static void big_records(void **state)
{
	static uint64_t frames[8000];
	static char text[VT_TEXT_MAX + 1000];
	struct vt_rec_stack stack = {.stack_id = 1, .frames = {frames, 8000}};
	struct vt_rec_note note = {.text = {text, sizeof(text)}};
	struct vt_writer writer;
	struct vt_record record;
	struct vt_reader *reader;
	struct vt_lane *lane;

	(void)state;
	memset(text, 'x', sizeof(text));
	trace_begin(&writer, PATH, mapped);
	lane = vt_writer_lane(&writer, 1, 0);
	assert_int_equal(vt_put_stack(lane, &stack), VT_E_TOO_BIG);
	assert_int_equal(atomic_load(&writer.header->n_lost), 1);
	assert_int_equal(vt_put_note(lane, &note), 0);
	trace_end(&writer);
	reader = reader_open(PATH);
	assert_int_equal(vt_reader_next(reader, &record), 1);
	assert_int_equal(record.note.text.bytes, VT_TEXT_MAX);
	assert_int_equal(vt_reader_next(reader, &record), 0);
	vt_reader_close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kinds_come_back),
		cmocka_unit_test(all_kinds_come_back_without_mapping),
		cmocka_unit_test(copy_mode_writes_the_same_bytes),
		cmocka_unit_test(chunks_follow_one_another),
		cmocka_unit_test(lanes_merge_in_order_of_time),
		cmocka_unit_test(frees_sort_before_allocations),
		cmocka_unit_test(released_lanes_are_used_again),
		cmocka_unit_test(lanes_never_go_back_in_time),
		cmocka_unit_test(size_limit_is_kept),
		cmocka_unit_test(file_size_limit_does_not_kill),
		cmocka_unit_test(records_after_the_end_do_no_harm),
		cmocka_unit_test(nothing_is_overwritten),
		cmocka_unit_test(big_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
