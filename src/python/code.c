#include "python/python.h"

#include "python/memory.h"

/* No real text or table comes near. */
#define LARGEST (1u << 26)

static char *put_utf8(char *p, uint32_t c)
{
	if (c < 0x80) {
		*p++ = (char)c;
	} else if (c < 0x800) {
		*p++ = (char)(0xc0 | c >> 6);
		*p++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*p++ = (char)(0xe0 | c >> 12);
		*p++ = (char)(0x80 | (c >> 6 & 0x3f));
		*p++ = (char)(0x80 | (c & 0x3f));
	} else {
		*p++ = (char)(0xf0 | c >> 18);
		*p++ = (char)(0x80 | (c >> 12 & 0x3f));
		*p++ = (char)(0x80 | (c >> 6 & 0x3f));
		*p++ = (char)(0x80 | (c & 0x3f));
	}
	return p;
}

static uint32_t character(uint64_t data, uint64_t i, unsigned int width)
{
	uint16_t narrow;

	switch (width) {
	case 1:
		return memory_u8(data + i);
	case 2:
		memcpy(&narrow, (const void *)(uintptr_t)(data + 2 * i), sizeof(narrow));
		return narrow;
	default:
		return memory_u32(data + 4 * i);
	}
}

/* What does not fit is left out. */
static struct vt_text to_utf8(
	uint64_t data, uint64_t length, unsigned int width, char *buffer, size_t size)
{
	char *p = buffer;

	for (uint64_t i = 0; i < length && p + 4 <= buffer + size; i++) {
		uint32_t c = character(data, i, width);

		/* A byte of a file name that is not UTF-8 stands as U+DC80 to U+DCFF. */
		if (c >= 0xdc80 && c <= 0xdcff)
			*p++ = (char)(c & 0xff);
		else if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
			p = put_utf8(p, 0xfffd);
		else
			p = put_utf8(p, c);
	}
	return (struct vt_text){buffer, (size_t)(p - buffer)};
}

static bool read_text(const struct python *python, uint64_t object, struct vt_text *text,
	char *buffer, size_t size)
{
	const struct python_layout *at = &python->layout;
	unsigned int width, state;
	bool is_compact, is_ascii;
	uint64_t length;

	if (!object || memory_word(object + at->object_type) != python->text_type)
		return false;
	state = memory_u32(object + at->text_state) >> at->text_kind;
	length = memory_word(object + at->text_length);
	width = state & 7;
	is_compact = state & 8;
	is_ascii = state & 16;
	if (length > LARGEST || (width != 1 && width != 2 && width != 4) ||
		(is_ascii && width != 1))
		return false;
	if (is_ascii && is_compact)
		*text = (struct vt_text){
			(const char *)(uintptr_t)(object + at->text_ascii), length};
	else if (is_compact)
		*text = to_utf8(object + at->text_other, length, width, buffer, size);
	else
		*text = to_utf8(memory_word(object + at->text_other), length, width, buffer, size);
	return true;
}

static bool read_bytes(const struct python *python, uint64_t object, struct vt_text *bytes)
{
	const struct python_layout *at = &python->layout;

	if (!object || memory_word(object + at->object_type) != python->bytes_type)
		return false;
	bytes->data = (const char *)(uintptr_t)(object + at->bytes_data);
	bytes->bytes = memory_word(object + at->bytes_size);
	return bytes->bytes <= LARGEST;
}

static enum vt_line_table line_table_of(uint32_t version)
{
	uint32_t minor = version >> 16 & 0xff;

	if (minor >= 11)
		return VT_LINES_LOCATIONS;
	return minor == 10 ? VT_LINES_310 : VT_LINES_LNOTAB;
}

bool python_describe(const struct python *python, uint64_t address, struct python_code *code)
{
	const struct python_layout *at = &python->layout;

	code->first_line = memory_u32(address + at->code_first_line);
	code->line_table = line_table_of(python->version);
	return read_text(python, memory_word(address + at->code_file), &code->file,
		       code->file_buffer, sizeof(code->file_buffer)) &&
	       read_text(python, memory_word(address + at->code_function), &code->function,
		       code->function_buffer, sizeof(code->function_buffer)) &&
	       read_bytes(python, memory_word(address + at->code_lines), &code->lines);
}
