/* src/record/codes.c: a number for every distinct code object, whatever its address, and never the
 * number of one that had the address before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>

#include "record/codes.h"
#include "record/session.h"
#include "unit/python_fake.h"
#include "unit/records.h"

#define PATH "codes.vt"

static struct python python;
static struct vt_writer writer;
static struct vt_lane *lane;

static struct vt_reader *reader; /* of the trace that a test looks at, until the next one */

static int begin(void **state)
{
	(void)state;
	codes_forget();
	/* As session_lane does in a new session. */
	session_thread.codes = NULL;
	fake_begin(&python, 0x030900f0);
	assert_true(python_layout_of(python.version, &python.layout));
	trace_begin(&writer, PATH, (struct vt_writer_options){0});
	lane = vt_writer_lane(&writer, 1, 0);
	return 0;
}

/* As a walk finds it: what the running frame's code object is now. */
static struct python_key key_of(uint64_t code)
{
	const struct python_layout *at = &python.layout;
	uint64_t frame = fake_alloc(256);
	struct python_frame out;
	struct python_walk walk;

	fake_set(frame, at->frame_code, code);
	fake_set(fake_thread, at->thread_frame, frame);
	assert_int_equal(python_walk_begin(&python, &walk), VT_PYTHON_CAPTURED);
	assert_int_equal(python_walk_next(&python, &walk, &out, 1), 1);
	return out.key;
}

static uint32_t number_of(uint64_t code)
{
	struct python_key key = key_of(code);

	return codes_intern(&python, &key, lane);
}

/* The record of that code object, with its line table put together in *lines. */
static bool read_code(uint32_t id, struct vt_rec_python_code *found, char *lines, size_t *n_lines)
{
	struct vt_record record;
	bool is_found = false;

	vt_reader_close(reader);
	reader = reader_open(PATH);
	*n_lines = 0;
	while (vt_reader_next(reader, &record) == 1) {
		struct vt_text part = {NULL, 0};

		if (record.kind == VT_REC_python_code && record.python_code.code_id == id) {
			assert_false(is_found);
			*found = record.python_code;
			part = record.python_code.lines;
			is_found = true;
		} else if (record.kind == VT_REC_python_lines &&
			   record.python_lines.code_id == id) {
			assert_true(is_found);
			part = record.python_lines.lines;
		}
		if (part.bytes)
			memcpy(lines + *n_lines, part.data, part.bytes);
		*n_lines += part.bytes;
	}
	return is_found;
}

static bool says(struct vt_text text, const char *string)
{
	return text.bytes == strlen(string) && !memcmp(text.data, string, text.bytes);
}

static void each_is_written_once(void **state)
{
	uint64_t f = fake_code(&python, "a.py", "f", 3), g = fake_code(&python, "a.py", "g", 9);
	struct vt_rec_python_code record;
	uint32_t id_f = number_of(f), id_g = number_of(g);
	char lines[16];
	size_t n;

	(void)state;
	assert_true(id_f && id_g && id_f != id_g);
	assert_int_equal(number_of(f), id_f);
	assert_int_equal(number_of(g), id_g);
	trace_end(&writer);
	assert_true(read_code(id_g, &record, lines, &n));
	assert_true(says(record.file, "a.py"));
	assert_true(says(record.function, "g"));
	assert_int_equal(record.first_line, 9);
	assert_int_equal(record.line_table, VT_LINES_LNOTAB);
	assert_int_equal(n, 6);
	assert_memory_equal(lines, "\1\2\3\4\5\6", 6);
	assert_true(read_code(id_f, &record, lines, &n));
	assert_true(says(record.function, "f"));
}

/* Code that is made anew from the same text says nothing new. */
static void same_content_is_same(void **state)
{
	(void)state;
	assert_int_equal(number_of(fake_code(&python, "a.py", "f", 3)),
		number_of(fake_code(&python, "a.py", "f", 3)));
	assert_int_not_equal(number_of(fake_code(&python, "a.py", "f", 3)),
		number_of(fake_code(&python, "a.py", "f", 4)));
	/* The same bytes in another order of fields. */
	assert_int_not_equal(number_of(fake_code(&python, "ab", "c", 3)),
		number_of(fake_code(&python, "a", "bc", 3)));
	trace_end(&writer);
}

/* The address stays; of what the object refers to, one thing after the other is another. */
static void addresses_are_used_again(void **state)
{
	const struct python_layout *at = &python.layout;
	uint64_t code = fake_code(&python, "a.py", "f", 1), name, lines;
	uint32_t ids[8];

	(void)state;
	ids[0] = number_of(code);
	fake_set_u32(code, at->code_first_line, 2);
	ids[1] = number_of(code);
	fake_set(code, at->code_function, fake_ascii(&python, "g"));
	ids[2] = number_of(code);
	fake_set(code, at->code_file, fake_ascii(&python, "b.py"));
	ids[3] = number_of(code);
	lines = fake_bytes(&python, "\1\2\3\4\5\6\7\10", 8);
	fake_set(code, at->code_lines, lines);
	ids[4] = number_of(code);
	/* Even where each address is the old one: the text has another hash. */
	memcpy(&name, (char *)(uintptr_t)code + at->code_function, sizeof(name));
	memcpy((char *)(uintptr_t)name + at->text_ascii, "h", 1);
	fake_set(name, at->text_hash, 99);
	ids[5] = number_of(code);
	/* So have lines, wherever the difference is. */
	memcpy((char *)(uintptr_t)lines + at->bytes_data, "\0", 1);
	ids[6] = number_of(code);
	memcpy((char *)(uintptr_t)lines + at->bytes_data + 7, "\0", 1);
	ids[7] = number_of(code);
	for (size_t i = 0; i < 8; i++)
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(ids[i], ids[k]);
	trace_end(&writer);
}

static void long_tables_go_on(void **state)
{
	static char table[3 * VT_TEXT_MAX + 100], read[sizeof(table)];
	struct vt_rec_python_code record;
	uint64_t code = fake_code(&python, "a.py", "f", 1);
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(table); i++)
		table[i] = (char)(i * 7 + i / 1000);
	fake_set(code, python.layout.code_lines, fake_bytes(&python, table, sizeof(table)));
	assert_int_equal(number_of(code), 1);
	fake_set(code, python.layout.code_lines, fake_bytes(&python, table, VT_TEXT_MAX));
	assert_int_equal(number_of(code), 2);
	trace_end(&writer);
	assert_true(read_code(1, &record, read, &n));
	assert_int_equal(n, sizeof(table));
	assert_memory_equal(read, table, sizeof(table));
	assert_true(read_code(2, &record, read, &n));
	assert_int_equal(n, VT_TEXT_MAX);
	assert_memory_equal(read, table, VT_TEXT_MAX);
}

static void what_is_no_code_has_no_number(void **state)
{
	uint64_t code = fake_code(&python, "a.py", "f", 1);

	(void)state;
	fake_set(code, python.layout.code_function, fake_bytes(&python, "x", 1));
	assert_int_equal(number_of(code), 0);
	assert_int_equal(number_of(code), 0);
	fake_set(code, python.layout.code_function, fake_ascii(&python, "f"));
	assert_int_equal(number_of(code), 1);
	trace_end(&writer);
}

#define N_CODES	  3000u
#define N_THREADS 4u

static struct python_key keys[N_CODES];
static uint32_t ids[N_THREADS][N_CODES];

/* Each thread meets more than it remembers, in an order of its own, several times. */
static void *number_all(void *argument)
{
	static const unsigned int steps[N_THREADS] = {1, 7, 11, 13}; /* coprime to N_CODES */
	unsigned int self = (unsigned int)(uintptr_t)argument;
	struct vt_lane *own = vt_writer_lane(&writer, self + 2, 0);
	const char *problem = NULL;

	for (unsigned int i = 0; i < 3 * N_CODES; i++) {
		unsigned int n = (i * steps[self] + self * 501) % N_CODES;
		struct python_key key = keys[n];
		uint32_t id = codes_intern(&python, &key, own);

		if (!id || (ids[self][n] && ids[self][n] != id))
			problem = "a number changed";
		ids[self][n] = id;
	}
	codes_release(session_thread.codes);
	vt_lane_release(own);
	return (void *)(uintptr_t)problem;
}

static void threads_agree(void **state)
{
	static bool used[N_CODES + 1];
	pthread_t threads[N_THREADS];
	char name[16];
	void *problem;

	(void)state;
	for (unsigned int i = 0; i < N_CODES; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		keys[i] = key_of(fake_code(&python, "a.py", name, i));
	}
	for (uintptr_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, number_all, (void *)i), 0);
	for (unsigned int i = 0; i < N_THREADS; i++) {
		pthread_join(threads[i], &problem);
		assert_null(problem);
	}
	trace_end(&writer);
	for (unsigned int n = 0; n < N_CODES; n++) {
		for (unsigned int i = 1; i < N_THREADS; i++)
			assert_int_equal(ids[i][n], ids[0][n]);
		assert_in_range(ids[0][n], 1, N_CODES);
		assert_false(used[ids[0][n]]);
		used[ids[0][n]] = true;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_is_written_once, begin),
		cmocka_unit_test_setup(same_content_is_same, begin),
		cmocka_unit_test_setup(addresses_are_used_again, begin),
		cmocka_unit_test_setup(long_tables_go_on, begin),
		cmocka_unit_test_setup(what_is_no_code_has_no_number, begin),
		cmocka_unit_test_setup(threads_agree, begin),
	};

	int n_failed = cmocka_run_group_tests(tests, NULL, NULL);

	vt_reader_close(reader);
	return n_failed;
}
