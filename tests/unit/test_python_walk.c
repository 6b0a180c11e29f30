/* src/python: frames, code objects and texts of an interpreter made up in memory, in the layout of
 * each family of versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "unit/python_fake.h"

#define HEX(minor) (3u << 24 | (uint32_t)(minor) << 16 | 0xf0u)

static struct python python;

/* As the table of 3.14t says; 3.13 is the same without copies and tags. */
static const struct python_layout free_threaded = {.chain = PYTHON_SHIMS,
	.is_tagged = true,
	.text_kind = 8,
	.thread_frame = 72,
	.frame_previous = 8,
	.frame_at = 56,
	.frame_owner = 78,
	.frame_copy = 72,
	.code_first_line = 84,
	.code_version = 108,
	.code_file = 128,
	.code_function = 144,
	.code_lines = 152,
	.code_start = 232,
	.code_copies = 224,
	.text_length = 32,
	.text_hash = 40,
	.text_state = 48,
	.text_ascii = 56,
	.text_other = 72,
	.bytes_size = 32,
	.bytes_data = 48,
	.object_type = 24,
	.type_name = 40,
	.runtime_finalizing = 832};

static void begin(unsigned int minor)
{
	fake_begin(&python, HEX(minor));
	if (minor >= 13)
		python.layout = free_threaded;
	else
		assert_true(python_layout_of(HEX(minor), &python.layout));
}

static const unsigned int minors[] = {8, 9, 10, 11, 12, 14};

#define EACH_VERSION(i) (size_t i = 0; i < sizeof(minors) / sizeof(*minors); i++)

/* One frame: of the code, at the instruction that is `offset` bytes behind the first. */
static uint64_t make_frame(uint64_t code, int offset, uint64_t previous, bool is_entry)
{
	const struct python_layout *at = &python.layout;
	uint64_t frame = fake_alloc(256);

	fake_set(frame, at->frame_previous, previous);
	fake_set(frame, at->frame_code, code | (at->is_tagged ? 1 : 0));
	if (at->lasti_bytes)
		fake_set_u32(frame, at->frame_at, (uint32_t)(offset / at->lasti_bytes));
	else
		fake_set(frame, at->frame_at, code + at->code_start + (uint64_t)(int64_t)offset);
	if (at->chain == PYTHON_C_FRAMES)
		fake_set_u8(frame, at->frame_is_entry, is_entry);
	return frame;
}

static uint64_t make_shim(uint64_t previous)
{
	uint64_t shim = fake_alloc(256);

	fake_set(shim, python.layout.frame_previous, previous);
	fake_set_u8(shim, python.layout.frame_owner, 3);
	return shim;
}

/* The thread runs from here outward. Returns the evaluation loop's struct where there is one. */
static uint64_t run(uint64_t frame)
{
	const struct python_layout *at = &python.layout;
	uint64_t c_frame = 0;

	if (at->thread_cframe) {
		c_frame = fake_alloc(64);
		fake_set(c_frame, at->cframe_previous, fake_thread + at->thread_root_cframe);
		fake_set(fake_thread, at->thread_cframe, c_frame);
		if (at->chain != PYTHON_FRAME_OBJECTS)
			fake_set(c_frame, at->cframe_frame, frame);
	}
	if (at->thread_frame)
		fake_set(fake_thread, at->thread_frame, frame);
	return c_frame;
}

/*
 * outer() in one call of the loop, which calls middle() and inner() in another: the first two on
 * versions where Python calls stay in the same call of the loop.
 */
static uint64_t make_story(uint64_t codes[3])
{
	bool has_shims = python.layout.chain == PYTHON_SHIMS;
	uint64_t outer, middle;

	codes[0] = fake_code(&python, "a.py", "inner", 10);
	codes[1] = fake_code(&python, "a.py", "middle", 20);
	codes[2] = fake_code(&python, "b.py", "outer", 30);
	outer = make_frame(codes[2], 60, has_shims ? make_shim(0) : 0, true);
	middle = make_frame(codes[1], 40, has_shims ? make_shim(outer) : outer, true);
	return run(make_frame(codes[0], 20, middle, false));
}

static void frames_are_read(void **state)
{
	(void)state;
	for
		EACH_VERSION(i)
		{
			struct python_frame frames[5];
			struct python_walk walk;
			uint64_t codes[3], entry = VT_PYTHON_ENTRY;

			begin(minors[i]);
			make_story(codes);
			assert_int_equal(python_check(&python), VT_PYTHON_CAPTURED);
			assert_int_equal(python_walk_begin(&python, &walk), VT_PYTHON_CAPTURED);
			assert_int_equal(python_walk_next(&python, &walk, frames, 5), 3);
			assert_false(walk.is_invalid);
			for (unsigned int n = 0; n < 3; n++) {
				assert_int_equal(frames[n].key.code, codes[n]);
				assert_int_equal(frames[n].key.first_line, 10 * n + 10);
				assert_int_equal(frames[n].key.n_line_bytes, 6);
				assert_int_equal(frames[n].key.version,
					minors[i] >= 12 ? 7000 + 10 * n + 10 : 0);
				assert_int_equal(frames[n].place & ~entry, 20 * n + 20);
			}
			assert_int_equal(frames[0].place & entry, minors[i] < 11 ? entry : 0);
			assert_int_equal(frames[1].place & entry, entry);
			assert_int_equal(frames[2].place & entry, entry);
			assert_int_equal(python_walk_next(&python, &walk, frames, 5), 0);
		}
}

static void frames_come_in_pieces(void **state)
{
	(void)state;
	for
		EACH_VERSION(i)
		{
			struct python_frame all[3], one;
			struct python_walk walk;
			uint64_t codes[3];

			begin(minors[i]);
			make_story(codes);
			python_walk_begin(&python, &walk);
			python_walk_next(&python, &walk, all, 3);
			assert_int_equal(walk.frame, 0);
			python_walk_begin(&python, &walk);
			for (unsigned int n = 0; n < 3; n++) {
				assert_true(walk.frame != 0);
				assert_int_equal(python_walk_next(&python, &walk, &one, 1), 1);
				assert_memory_equal(&one.key, &all[n].key, sizeof(one.key));
				assert_int_equal(one.place, all[n].place);
			}
			assert_int_equal(walk.frame, 0);
		}
}

static void nothing_runs(void **state)
{
	(void)state;
	for
		EACH_VERSION(i)
		{
			struct python_walk walk;
			uint64_t thread;

			begin(minors[i]);
			run(0);
			assert_int_equal(python_walk_begin(&python, &walk), VT_PYTHON_EMPTY);
			assert_int_equal(python_check(&python), VT_PYTHON_EMPTY);
			thread = fake_thread;
			fake_set(fake_runtime, python.layout.runtime_finalizing, thread + 1);
			assert_int_equal(python_walk_begin(&python, &walk), VT_PYTHON_FINALIZING);
			assert_int_equal(python_check(&python), VT_PYTHON_FINALIZING);
			/* The thread that ends the interpreter still has its frames. */
			fake_set(fake_runtime, python.layout.runtime_finalizing, thread);
			assert_int_equal(python_walk_begin(&python, &walk), VT_PYTHON_EMPTY);
			fake_thread = 0;
			assert_int_equal(python_walk_begin(&python, &walk), VT_PYTHON_NO_THREAD);
			assert_int_equal(python_check(&python), VT_PYTHON_NO_THREAD);
			assert_int_equal(python_marks(&python, &thread, 1), 0);
		}
}

static uint32_t place_of(uint64_t frame)
{
	struct python_frame out;
	struct python_walk walk;

	run(frame);
	python_walk_begin(&python, &walk);
	assert_int_equal(python_walk_next(&python, &walk, &out, 1), 1);
	return out.place & ~VT_PYTHON_ENTRY;
}

static void offsets_are_inside_the_code(void **state)
{
	(void)state;
	for
		EACH_VERSION(i)
		{
			uint64_t code;

			begin(minors[i]);
			code = fake_code(&python, "a.py", "f", 1);
			/* Not begun yet. */
			assert_int_equal(place_of(make_frame(code, -2, 0, true)),
				minors[i] < 11 ? VT_PYTHON_NOT_BEGUN : 0);
			assert_int_equal(place_of(make_frame(code, 0, 0, true)), 0);
			assert_int_equal(place_of(make_frame(code, 198, 0, true)), 198);
			if (minors[i] < 11)
				continue;
			assert_int_equal(
				place_of(make_frame(code, 200, 0, true)), VT_PYTHON_NO_OFFSET);
			assert_int_equal(
				place_of(make_frame(code, -200, 0, true)), VT_PYTHON_NO_OFFSET);
		}
}

/* Free-threaded builds run a copy of the bytecode on other threads. */
static void copies_of_the_bytecode(void **state)
{
	uint64_t code, copies, copy, frame;

	(void)state;
	begin(14);
	code = fake_code(&python, "a.py", "f", 1);
	copies = fake_alloc(64);
	copy = fake_alloc(256);
	fake_set(copies, 0, 2);
	fake_set(copies, 8 + 8, copy);
	fake_set(code, python.layout.code_copies, copies);
	frame = make_frame(code, 0, 0, true);
	fake_set(frame, python.layout.frame_at, copy + 34);
	fake_set_u32(frame, python.layout.frame_copy, 1);
	assert_int_equal(place_of(frame), 34);
}

static void what_is_no_frame(void **state)
{
	(void)state;
	for
		EACH_VERSION(i)
		{
			struct python_frame frames[3];
			struct python_walk walk;
			uint64_t codes[3], no_code;

			begin(minors[i]);
			make_story(codes);
			fake_set(codes[1], python.layout.object_type, python.text_type);
			python_walk_begin(&python, &walk);
			assert_int_equal(python_walk_next(&python, &walk, frames, 3), 1);
			assert_true(walk.is_invalid);
			assert_int_equal(walk.frame, 0);
			assert_int_equal(python_check(&python), VT_PYTHON_INVALID);
			/* Addresses that lead nowhere must not be followed. */
			no_code = make_frame(0, 0, 0, true);
			fake_set(no_code, python.layout.frame_code, 0x123456789abc8);
			run(no_code);
			assert_int_equal(python_check(&python), VT_PYTHON_INVALID);
			run(0x123456789abc8);
			assert_int_equal(python_check(&python), VT_PYTHON_INVALID);
			make_story(codes);
			fake_set(codes[2], python.layout.code_lines, 24);
			assert_int_equal(python_check(&python), VT_PYTHON_INVALID);
		}
}

static void calls_of_the_loop_are_marked(void **state)
{
	(void)state;
	for
		EACH_VERSION(i)
		{
			uint64_t codes[3], marks[4], c_frame, inner;

			begin(minors[i]);
			c_frame = make_story(codes);
			if (minors[i] < 10) {
				assert_int_equal(python_marks(&python, marks, 4), 0);
			} else if (minors[i] < 12) {
				inner = run(0);
				fake_set(inner, python.layout.cframe_previous, c_frame);
				assert_int_equal(python_marks(&python, marks, 4), 2);
				assert_int_equal(marks[0], inner);
				assert_int_equal(marks[1], c_frame);
			} else {
				assert_int_equal(python_marks(&python, marks, 4), 2);
				/* Made before the frame that calls it, and the inner one after. */
				assert_true(marks[0] > marks[1]);
				assert_int_equal(python_marks(&python, marks, 1), 1);
			}
		}
}

static void check_text(uint64_t object, const char *expected)
{
	uint64_t code = fake_code(&python, "a.py", "f", 1);
	struct python_code out;

	fake_set(code, python.layout.code_function, object);
	assert_true(python_describe(&python, code, &out));
	assert_int_equal(out.function.bytes, strlen(expected));
	assert_memory_equal(out.function.data, expected, strlen(expected));
	assert_int_equal(out.file.bytes, 4);
	assert_memory_equal(out.file.data, "a.py", 4);
}

static void texts_become_utf8(void **state)
{
	static const uint8_t latin[] = {'f', 0xfc, 0x80, 0xff};
	static const uint16_t wide[] = {0x4e2d, 'x', 0x7ff, 0x800, 0xdc80, 0xdcff, 0xd800, 0xdbff};
	static const uint32_t full[] = {0x1f600, 0x10ffff, 'a', 0x110000, 0xdfff};

	(void)state;
	for
		EACH_VERSION(i)
		{
			uint64_t text, data;

			begin(minors[i]);
			check_text(fake_ascii(&python, "A.method"), "A.method");
			check_text(fake_ascii(&python, ""), "");
			check_text(fake_text(&python, latin, 4, 1, false),
				"f\xc3\xbc\xc2\x80\xc3\xbf");
			/* Bytes of a file name that was not UTF-8 come back; other halves of pairs
			 * cannot be written. */
			check_text(fake_text(&python, wide, 8, 2, false),
				"\xe4\xb8\xadx\xdf\xbf\xe0\xa0\x80\x80\xff\xef\xbf\xbd\xef\xbf"
				"\xbd");
			check_text(fake_text(&python, full, 5, 4, false),
				"\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf"
				"a\xef\xbf\xbd\xef\xbf\xbd");
			/* Not compact: the characters are elsewhere. */
			text = fake_text(&python, "", 0, 2, false);
			data = fake_alloc(64);
			memcpy((void *)(uintptr_t)data, wide, 4);
			fake_set(text, python.layout.text_length, 2);
			fake_set_u32(text, python.layout.text_state, 2u << python.layout.text_kind);
			fake_set(text, python.layout.text_other, data);
			check_text(text, "\xe4\xb8\xadx");
		}
}

static void long_texts_are_cut(void **state)
{
	static uint16_t many[5000];
	struct python_code out;
	uint64_t code;

	(void)state;
	for (size_t i = 0; i < 5000; i++)
		many[i] = 0x4e2d;
	begin(11);
	code = fake_code(&python, "a.py", "f", 1);
	fake_set(code, python.layout.code_file, fake_text(&python, many, 5000, 2, false));
	assert_true(python_describe(&python, code, &out));
	assert_in_range(out.file.bytes, 4000, sizeof(out.file_buffer));
	assert_int_equal(out.file.bytes % 3, 0);
	assert_memory_equal(out.file.data + out.file.bytes - 3, "\xe4\xb8\xad", 3);
}

static void what_is_no_code(void **state)
{
	(void)state;
	for
		EACH_VERSION(i)
		{
			const struct python_layout *at = &python.layout;
			struct python_code out;
			uint64_t code, text;

			begin(minors[i]);
			code = fake_code(&python, "a.py", "f", 5);
			assert_true(python_describe(&python, code, &out));
			assert_int_equal(out.first_line, 5);
			assert_int_equal(out.lines.bytes, 6);
			assert_memory_equal(out.lines.data, "\1\2\3\4\5\6", 6);
			assert_int_equal(out.line_table, minors[i] < 10	  ? VT_LINES_LNOTAB
							 : minors[i] < 11 ? VT_LINES_310
									  : VT_LINES_LOCATIONS);
			text = fake_ascii(&python, "x");
			fake_set_u32(text, at->text_state, (3u | 8u) << at->text_kind);
			fake_set(code, at->code_function, text);
			assert_false(python_describe(&python, code, &out));
			fake_set(code, at->code_function, fake_bytes(&python, "x", 1));
			assert_false(python_describe(&python, code, &out));
			fake_set(code, at->code_function, 0);
			assert_false(python_describe(&python, code, &out));
			fake_set(code, at->code_function, fake_ascii(&python, "f"));
			fake_set(code, at->code_lines, fake_ascii(&python, "f"));
			assert_false(python_describe(&python, code, &out));
		}
}

/* This program is no Python. */
static void none_is_found(void **state)
{
	struct python found;

	(void)state;
	assert_false(python_find(&found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_read),
		cmocka_unit_test(frames_come_in_pieces),
		cmocka_unit_test(nothing_runs),
		cmocka_unit_test(offsets_are_inside_the_code),
		cmocka_unit_test(copies_of_the_bytecode),
		cmocka_unit_test(what_is_no_frame),
		cmocka_unit_test(calls_of_the_loop_are_marked),
		cmocka_unit_test(texts_become_utf8),
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(what_is_no_code),
		cmocka_unit_test(none_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
