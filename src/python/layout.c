#include "python/layout.h"

#include <stddef.h>
#include <string.h>

#define MINOR(version) (((version) >> 16) & 0xff)

/* Releases of 3.8 to 3.12 do not describe themselves; they are the same on x86-64 and aarch64. */
#define COMMON                                                                                     \
	.text_kind = 2, .text_length = 16, .text_hash = 24, .text_state = 32, .bytes_size = 16,    \
	.bytes_data = 32, .object_type = 8, .type_name = 24

#define FRAME_OBJECTS                                                                              \
	COMMON, .chain = PYTHON_FRAME_OBJECTS, .thread_frame = 24, .frame_previous = 24,           \
		.frame_code = 32, .code_first_line = 40, .code_file = 104, .code_function = 112,   \
		.code_lines = 120, .text_ascii = 48, .text_other = 72, .runtime_finalizing = 16

static const struct python_layout known[] = {
	[8] = {FRAME_OBJECTS, .frame_at = 104, .lasti_bytes = 1},
	[9] = {FRAME_OBJECTS, .frame_at = 104, .lasti_bytes = 1},
	[10] = {FRAME_OBJECTS, .frame_at = 96, .lasti_bytes = 2, .thread_cframe = 48,
		.cframe_previous = 8, .thread_root_cframe = 264},
	[11] = {COMMON, .chain = PYTHON_C_FRAMES, .thread_cframe = 56, .cframe_frame = 8,
		.cframe_previous = 16, .thread_root_cframe = 336, .frame_previous = 48,
		.frame_code = 32, .frame_at = 56, .frame_owner = 69, .frame_is_entry = 68,
		.code_first_line = 72, .code_file = 112, .code_function = 128, .code_lines = 136,
		.code_start = 184, .text_ascii = 48, .text_other = 72, .runtime_finalizing = 24},
	[12] = {COMMON, .chain = PYTHON_SHIMS, .thread_cframe = 56, .cframe_previous = 8,
		.thread_root_cframe = 272, .frame_previous = 8, .frame_at = 56, .frame_owner = 70,
		.code_first_line = 68, .code_version = 92, .code_file = 112, .code_function = 128,
		.code_lines = 136, .code_start = 192, .text_ascii = 40, .text_other = 56,
		.runtime_finalizing = 24},
};

bool python_layout_of(uint32_t version, struct python_layout *layout)
{
	uint32_t minor = MINOR(version);

	if (version >> 24 != 3 || minor < PYTHON_OLDEST || minor >= sizeof(known) / sizeof(*known))
		return false;
	*layout = known[minor];
	return true;
}

/* Where in the table of 3.13, 3.14, 3.15 the offset of something stands. */
struct entry {
	uint16_t member; /* of struct python_layout */
	uint16_t at[3];
};

#define ENTRY(member, ...)                                                                         \
	{                                                                                          \
		offsetof(struct python_layout, member),                                            \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static const struct entry entries[] = {
	ENTRY(runtime_finalizing, 32, 32, 32),
	ENTRY(thread_frame, 184, 208, 208),
	ENTRY(frame_previous, 232, 256, 320),
	ENTRY(frame_code, 240, 264, 328),
	ENTRY(frame_at, 248, 272, 336),
	ENTRY(frame_owner, 264, 288, 352),
	ENTRY(frame_copy, 0, 304, 368),
	ENTRY(code_file, 280, 320, 384),
	ENTRY(code_function, 296, 336, 400),
	ENTRY(code_lines, 304, 344, 408),
	ENTRY(code_first_line, 312, 352, 416),
	ENTRY(code_start, 344, 384, 448),
	ENTRY(code_copies, 0, 392, 456),
	ENTRY(object_type, 360, 408, 472),
	ENTRY(type_name, 376, 424, 488),
	ENTRY(bytes_size, 520, 600, 696),
	ENTRY(bytes_data, 528, 608, 704),
	ENTRY(text_state, 544, 624, 720),
	ENTRY(text_length, 552, 632, 728),
	ENTRY(text_ascii, 560, 640, 736),
};

#define COOKIE	   "xdebugpy"
#define LARGEST	   4096u /* no object of these is larger */
#define AT_VERSION 8u
#define AT_FREE	   16u
#define COPIES_SINCE                                                                               \
	14u /* 3.14: free-threaded builds keep bytecode copies; the text's state moved */

static uint64_t word_of(const void *table, uint64_t at)
{
	uint64_t word;

	memcpy(&word, (const char *)table + at, sizeof(word));
	return word;
}

bool python_layout_read(
	const void *table, uint64_t bytes, uint32_t version, struct python_layout *layout)
{
	uint32_t minor = MINOR(version);
	bool is_free;

	if (version >> 24 != 3 || minor < 13 || minor > PYTHON_NEWEST || bytes < 768 ||
		memcmp(table, COOKIE, strlen(COOKIE)) != 0 || word_of(table, AT_VERSION) != version)
		return false;
	is_free = word_of(table, AT_FREE) != 0;
	*layout = (struct python_layout){.chain = PYTHON_SHIMS, .is_tagged = minor >= 14};
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		uint16_t at = entries[i].at[minor - 13], value;
		uint64_t word = at ? word_of(table, at) : 0;

		if (word >= LARGEST)
			return false;
		value = (uint16_t)word;
		memcpy((char *)layout + entries[i].member, &value, sizeof(value));
	}
	if (!is_free)
		layout->frame_copy = layout->code_copies = 0;
	/* These are not in the table, but stand where they stood since 3.12. */
	layout->code_version = (uint16_t)(layout->code_first_line + 24);
	layout->text_hash = (uint16_t)(layout->text_length + 8);
	layout->text_other = (uint16_t)(layout->text_ascii + 16);
	layout->text_kind = is_free && minor >= COPIES_SINCE ? 8 : 2;
	return layout->thread_frame && layout->frame_at && layout->frame_owner &&
	       layout->code_file && layout->code_function && layout->code_lines &&
	       layout->code_start && layout->text_ascii && layout->type_name;
}
