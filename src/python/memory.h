/* Words of the interpreter's memory. */
#ifndef VRAMTRACE_PYTHON_MEMORY_H
#define VRAMTRACE_PYTHON_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t memory_word(uint64_t address)
{
	uint64_t value;

	memcpy(&value, (const void *)(uintptr_t)address, sizeof(value));
	return value;
}

static inline uint32_t memory_u32(uint64_t address)
{
	uint32_t value;

	memcpy(&value, (const void *)(uintptr_t)address, sizeof(value));
	return value;
}

static inline uint8_t memory_u8(uint64_t address)
{
	return *(const uint8_t *)(uintptr_t)address;
}

/* Whether the bytes, a page at most, may be read. A system call. */
bool memory_is_mapped(uint64_t address, uint64_t bytes);

#endif
