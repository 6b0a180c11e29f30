/*
 * The bytes of one field. Encoding and decoding side by side; see format.h for the rules.
 */
#ifndef VRAMTRACE_TRACE_CODEC_H
#define VRAMTRACE_TRACE_CODEC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Longest encoding of one number. */
#define VT_NUMBER_MAX 10u

/* What differences refer to; starts at (base_time_ns, 0) with each chunk. */
struct vt_delta {
	uint64_t time_ns;
	uint64_t address;
};

static inline uint64_t vt_zigzag(int64_t value)
{
	return ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t vt_unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* Writes value at p, at most VT_NUMBER_MAX bytes. Returns the end. */
static inline uint8_t *vt_encode_number(uint8_t *p, uint64_t value)
{
	while (value >= 0x80) {
		*p++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

/* Reads a number from *p, not beyond end, and moves *p. False when it is cut short or longer than
 * 64 bits. */
static inline bool vt_decode_number(const uint8_t **p, const uint8_t *end, uint64_t *value)
{
	uint64_t result = 0;

	for (unsigned int shift = 0; shift < 64 && *p < end; shift += 7) {
		uint8_t byte = *(*p)++;

		result |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*value = result;
			return shift < 63 || byte <= 1;
		}
	}
	return false;
}

/* Checksum of a sealed chunk's records: a multiply-and-fold over 64-bit words, to catch damage, not
 * malice. */
static inline uint64_t vt_checksum(const uint8_t *data, size_t bytes)
{
	const uint64_t odd = 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio */
	uint64_t sum = bytes * odd;

	while (bytes) {
		uint64_t word = 0;
		size_t n = bytes < sizeof(word) ? bytes : sizeof(word);

		memcpy(&word, data, n);
		sum = (sum ^ word) * odd;
		sum ^= sum >> 29;
		data += n;
		bytes -= n;
	}
	return sum;
}

#endif
