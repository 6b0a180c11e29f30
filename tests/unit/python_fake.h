/* Objects of an interpreter that is not there: laid out in plain memory as a struct python_layout
 * says, for the code that reads them. */
#ifndef TESTS_UNIT_PYTHON_FAKE_H
#define TESTS_UNIT_PYTHON_FAKE_H

#include <stdlib.h>
#include <string.h>

#include "python/python.h"

#define FAKE_BYTES (8u << 20)

static _Alignas(4096) char fake_memory[FAKE_BYTES];
static size_t fake_used;
static uint64_t fake_thread; /* what the getter says */
static uint64_t fake_runtime;

static inline uint64_t fake_alloc(size_t bytes)
{
	uint64_t address = (uint64_t)(uintptr_t)(fake_memory + fake_used);

	fake_used += (bytes + 63) & ~(size_t)63;
	if (fake_used > FAKE_BYTES)
		abort();
	return address;
}

static inline void fake_set(uint64_t object, unsigned int offset, uint64_t value)
{
	memcpy((char *)(uintptr_t)object + offset, &value, sizeof(value));
}

static inline void fake_set_u32(uint64_t object, unsigned int offset, uint32_t value)
{
	memcpy((char *)(uintptr_t)object + offset, &value, sizeof(value));
}

static inline void fake_set_u8(uint64_t object, unsigned int offset, uint8_t value)
{
	*((char *)(uintptr_t)object + offset) = (char)value;
}

static void *fake_thread_state(void)
{
	return (void *)(uintptr_t)fake_thread;
}

/* An interpreter of that version, with a thread that runs nothing. A table at *runtime is what 3.13
 * and later need. */
static inline void fake_begin(struct python *python, uint32_t version)
{
	memset(fake_memory, 0, sizeof(fake_memory));
	fake_used = 0;
	*python = (struct python){.version = version, .is_usable = true};
	python->thread_state = fake_thread_state;
	python->runtime = fake_runtime = fake_alloc(1024);
	python->code_type = fake_alloc(64);
	python->text_type = fake_alloc(64);
	python->bytes_type = fake_alloc(64);
	fake_thread = fake_alloc(1024);
}

/* length characters of `width` bytes each. */
static inline uint64_t fake_text(const struct python *python, const void *data, size_t length,
	unsigned int width, bool is_ascii)
{
	const struct python_layout *at = &python->layout;
	uint64_t text = fake_alloc(128 + length * width);

	fake_set(text, at->object_type, python->text_type);
	fake_set(text, at->text_length, length);
	fake_set(text, at->text_hash, 0x1234567 + length);
	fake_set_u32(text, at->text_state, (width | 8u | (is_ascii ? 16u : 0)) << at->text_kind);
	memcpy((char *)(uintptr_t)text + (is_ascii ? at->text_ascii : at->text_other), data,
		length * width);
	return text;
}

static inline uint64_t fake_ascii(const struct python *python, const char *string)
{
	return fake_text(python, string, strlen(string), 1, true);
}

static inline uint64_t fake_bytes(const struct python *python, const void *data, size_t length)
{
	const struct python_layout *at = &python->layout;
	uint64_t bytes = fake_alloc(64 + length);

	fake_set(bytes, at->object_type, python->bytes_type);
	fake_set(bytes, at->bytes_size, length);
	memcpy((char *)(uintptr_t)bytes + at->bytes_data, data, length);
	return bytes;
}

/* Fills in the code object at address. */
static inline void fake_set_code(const struct python *python, uint64_t code, const char *file,
	const char *function, uint32_t first_line)
{
	const struct python_layout *at = &python->layout;

	fake_set(code, at->object_type, python->code_type);
	if (at->code_start)
		fake_set(code, at->bytes_size, 100); /* instructions */
	fake_set(code, at->code_file, fake_ascii(python, file));
	fake_set(code, at->code_function, fake_ascii(python, function));
	fake_set(code, at->code_lines, fake_bytes(python, "\1\2\3\4\5\6", 6));
	fake_set_u32(code, at->code_first_line, first_line);
	if (at->code_version)
		fake_set_u32(code, at->code_version, 7000 + first_line);
}

static inline uint64_t fake_code(
	const struct python *python, const char *file, const char *function, uint32_t first_line)
{
	uint64_t code = fake_alloc(1024);

	fake_set_code(python, code, file, function, first_line);
	return code;
}

#endif
