/* src/python/layout.c: offsets of every known minor version. Those of 3.13 to 3.15 are read from a
 * table like the one the interpreter has, and compared with what the headers of each say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "python/layout.h"

#define HEX(minor) (3u << 24 | (uint32_t)(minor) << 16 | 0xf0u)

/* What the table of a version says: byte position and value, as pairs. */
struct described {
	unsigned int minor;
	bool is_free;
	uint16_t pairs[20][2];
	struct python_layout expected;
};

#define GIL                                                                                        \
	.chain = PYTHON_SHIMS, .text_kind = 2, .thread_frame = 72, .frame_previous = 8,            \
	.frame_at = 56, .code_first_line = 68, .code_version = 92, .code_file = 112,               \
	.code_function = 128, .code_lines = 136, .text_length = 16, .text_hash = 24,               \
	.text_state = 32, .text_ascii = 40, .text_other = 56, .bytes_size = 16, .bytes_data = 32,  \
	.object_type = 8, .type_name = 24

#define FREE                                                                                       \
	.chain = PYTHON_SHIMS, .thread_frame = 72, .frame_previous = 8, .frame_at = 56,            \
	.code_first_line = 84, .code_version = 108, .code_file = 128, .code_function = 144,        \
	.code_lines = 152, .text_length = 32, .text_hash = 40, .text_state = 48, .text_ascii = 56, \
	.text_other = 72, .bytes_size = 32, .bytes_data = 48, .object_type = 24, .type_name = 40

static const struct described described[] = {
	{13, false,
		{{32, 720}, {184, 72}, {232, 8}, {240, 0}, {248, 56}, {264, 70}, {280, 112},
			{288, 120}, {296, 128}, {304, 136}, {312, 68}, {344, 200}, {360, 8},
			{376, 24}, {520, 16}, {528, 32}, {544, 32}, {552, 16}, {560, 40}},
		{GIL, .frame_owner = 70, .code_start = 200, .runtime_finalizing = 720}},
	{13, true,
		{{32, 728}, {184, 72}, {232, 8}, {240, 0}, {248, 56}, {264, 70}, {280, 128},
			{288, 136}, {296, 144}, {304, 152}, {312, 84}, {344, 216}, {360, 24},
			{376, 40}, {520, 32}, {528, 48}, {544, 48}, {552, 32}, {560, 56}},
		{FREE, .text_kind = 2, .frame_owner = 70, .code_start = 216,
			.runtime_finalizing = 728}},
	{14, false,
		{{32, 824}, {208, 72}, {256, 8}, {264, 0}, {272, 56}, {288, 74}, {304, 72},
			{320, 112}, {336, 128}, {344, 136}, {352, 68}, {384, 208}, {392, 200},
			{408, 8}, {424, 24}, {600, 16}, {608, 32}, {624, 32}, {632, 16}, {640, 40}},
		{GIL, .is_tagged = true, .frame_owner = 74, .code_start = 208,
			.runtime_finalizing = 824}},
	{14, true,
		{{32, 832}, {208, 72}, {256, 8}, {264, 0}, {272, 56}, {288, 78}, {304, 72},
			{320, 128}, {336, 144}, {344, 152}, {352, 84}, {384, 232}, {392, 224},
			{408, 24}, {424, 40}, {600, 32}, {608, 48}, {624, 48}, {632, 32},
			{640, 56}},
		{FREE, .is_tagged = true, .text_kind = 8, .frame_owner = 78, .frame_copy = 72,
			.code_start = 232, .code_copies = 224, .runtime_finalizing = 832}},
	{15, false,
		{{32, 960}, {208, 72}, {320, 8}, {328, 0}, {336, 56}, {352, 74}, {384, 112},
			{400, 128}, {408, 136}, {416, 68}, {448, 208}, {472, 8}, {488, 24},
			{696, 16}, {704, 32}, {720, 32}, {728, 16}, {736, 40}},
		{GIL, .is_tagged = true, .frame_owner = 74, .code_start = 208,
			.runtime_finalizing = 960}},
	{15, true,
		{{32, 968}, {208, 72}, {320, 8}, {328, 0}, {336, 56}, {352, 78}, {368, 72},
			{384, 128}, {400, 144}, {408, 152}, {416, 84}, {448, 232}, {456, 224},
			{472, 24}, {488, 40}, {696, 32}, {704, 48}, {720, 48}, {728, 32},
			{736, 56}},
		{FREE, .is_tagged = true, .text_kind = 8, .frame_owner = 78, .frame_copy = 72,
			.code_start = 232, .code_copies = 224, .runtime_finalizing = 968}},
};

#define N_DESCRIBED (sizeof(described) / sizeof(*described))

static uint64_t table[128];

static void make_table(const struct described *version)
{
	/* What nobody asks for must not be read. */
	memset(table, 0xee, sizeof(table));
	memcpy(table, "xdebugpy", 8);
	table[1] = HEX(version->minor);
	table[2] = version->is_free;
	for (size_t i = 0; i < 20; i++)
		if (version->pairs[i][0])
			table[version->pairs[i][0] / 8] = version->pairs[i][1];
}

static void tables_are_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_DESCRIBED; i++) {
		struct python_layout layout;

		make_table(&described[i]);
		/* These may be there in builds that keep no copies, and are then of no use. */
		if (!described[i].is_free && described[i].minor == 15)
			table[368 / 8] = table[456 / 8] = 72;
		assert_true(
			python_layout_read(table, sizeof(table), HEX(described[i].minor), &layout));
		assert_memory_equal(&layout, &described[i].expected, sizeof(layout));
	}
}

static void nonsense_is_refused(void **state)
{
	struct python_layout layout;

	(void)state;
	make_table(&described[0]);
	assert_false(python_layout_read(table, 100, HEX(13), &layout));
	assert_false(python_layout_read(table, sizeof(table), HEX(14), &layout));
	table[1] = HEX(16);
	assert_false(python_layout_read(table, sizeof(table), HEX(16), &layout));
	make_table(&described[0]);
	table[0]++;
	assert_false(python_layout_read(table, sizeof(table), HEX(13), &layout));
	make_table(&described[0]);
	table[280 / 8] = 5000;
	assert_false(python_layout_read(table, sizeof(table), HEX(13), &layout));
	make_table(&described[0]);
	table[280 / 8] = 0;
	assert_false(python_layout_read(table, sizeof(table), HEX(13), &layout));
}

static void older_versions_are_known(void **state)
{
	struct python_layout layout;

	(void)state;
	for (unsigned int minor = 0; minor < 20; minor++)
		assert_int_equal(python_layout_of(HEX(minor), &layout), minor >= 8 && minor <= 12);
	assert_false(python_layout_of(2u << 24 | 8u << 16, &layout));
	/* Of each family what the others do not have. */
	assert_true(python_layout_of(HEX(9), &layout));
	assert_int_equal(layout.chain, PYTHON_FRAME_OBJECTS);
	assert_int_equal(layout.lasti_bytes, 1);
	assert_int_equal(layout.frame_at, 104);
	assert_int_equal(layout.thread_cframe, 0);
	assert_true(python_layout_of(HEX(10), &layout));
	assert_int_equal(layout.chain, PYTHON_FRAME_OBJECTS);
	assert_int_equal(layout.lasti_bytes, 2);
	assert_int_equal(layout.thread_root_cframe, 264);
	assert_true(python_layout_of(HEX(11), &layout));
	assert_int_equal(layout.chain, PYTHON_C_FRAMES);
	assert_int_equal(layout.frame_is_entry, 68);
	assert_int_equal(layout.text_ascii, 48);
	assert_true(python_layout_of(HEX(12), &layout));
	assert_int_equal(layout.chain, PYTHON_SHIMS);
	assert_int_equal(layout.code_version, 92);
	assert_int_equal(layout.text_ascii, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_read),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(older_versions_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
