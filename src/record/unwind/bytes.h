/* Numbers out of .eh_frame sections, never beyond their end. */
#ifndef VRAMTRACE_RECORD_UNWIND_BYTES_H
#define VRAMTRACE_RECORD_UNWIND_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes still to be read. */
struct bytes {
	const uint8_t *at, *end;
	bool bad; /* something was cut short or unknown: all that was read counts for nothing */
};

/* The next n bytes, NULL when there are not so many. */
static inline const uint8_t *bytes_take(struct bytes *bytes, size_t n)
{
	const uint8_t *at = bytes->at;

	if (bytes->bad || (size_t)(bytes->end - at) < n) {
		bytes->bad = true;
		return NULL;
	}
	bytes->at += n;
	return at;
}

/* An unsigned number of n bytes, at most 8. Like all below, 0 when it is cut short. */
static inline uint64_t bytes_number(struct bytes *bytes, size_t n)
{
	const uint8_t *at = bytes_take(bytes, n);
	uint64_t value = 0;

	if (at)
		memcpy(&value, at, n);
	return value;
}

static inline uint8_t bytes_one(struct bytes *bytes)
{
	return (uint8_t)bytes_number(bytes, 1);
}

static inline uint64_t bytes_leb(struct bytes *bytes, bool is_signed)
{
	unsigned int shift = 0;
	uint64_t value = 0;
	uint8_t byte;

	do {
		byte = bytes_one(bytes);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !bytes->bad);
	if (is_signed && shift < 64 && byte & 0x40)
		value |= UINT64_MAX << shift;
	return value;
}

static inline uint64_t bytes_uleb(struct bytes *bytes)
{
	return bytes_leb(bytes, false);
}

static inline int64_t bytes_sleb(struct bytes *bytes)
{
	return (int64_t)bytes_leb(bytes, true);
}

/* A length, and so many bytes. */
static inline struct bytes bytes_block(struct bytes *bytes)
{
	uint64_t n = bytes_uleb(bytes);
	const uint8_t *at = bytes_take(bytes, n);

	return (struct bytes){.at = at, .end = at ? at + n : NULL};
}

#endif
