#include "symbol/lines.h"

#include <stdbool.h>

/* Entry codes of VT_LINES_LOCATIONS, in bits 3 to 6 of an entry's first byte. */
enum {
	LOCATION_ONE_LINE = 10, /* and the two after it: so many lines further, less this */
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* Lines are added up without a sign, as what a hostile table adds up to wraps around. */
static uint64_t line_or_none(uint64_t line)
{
	return line <= INT32_MAX ? line : 0;
}

/* Pairs of bytes: instructions to go on, then lines to go on, which may be negative. */
static uint64_t find_in_lnotab(const uint8_t *table, size_t bytes, uint64_t line, uint64_t offset)
{
	uint64_t at = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		at += table[i];
		if (at > offset)
			break;
		line += (uint64_t)(int8_t)table[i + 1];
	}
	return line_or_none(line);
}

/* Pairs of bytes: length of a range, then lines to go on before it; -128: it belongs to no line. */
static uint64_t find_in_ranges(const uint8_t *table, size_t bytes, uint64_t line, uint64_t offset)
{
	uint64_t end = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		int8_t step = (int8_t)table[i + 1];

		end += table[i];
		if (step != INT8_MIN)
			line += (uint64_t)step;
		if (end > offset)
			return step == INT8_MIN ? 0 : line_or_none(line);
	}
	return 0;
}

/* A number in groups of six bits, the lowest first, and its sign in the lowest bit; 0 when it is
 * not whole. */
static int64_t signed_number(const uint8_t *p, const uint8_t *end)
{
	uint64_t number = 0;

	for (unsigned int shift = 0; p < end && shift < 36; shift += 6) {
		number |= (uint64_t)(*p & 0x3f) << shift;
		if (!(*p++ & 0x40))
			return number & 1 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
	}
	return 0;
}

/* Entries for one to eight units of code each; only an entry's first byte has its highest bit set.
 */
static uint64_t find_in_locations(
	const uint8_t *table, size_t bytes, uint64_t line, uint64_t offset)
{
	const uint8_t *p = table, *last = table + bytes;
	uint64_t end = 0;

	while (p < last) {
		unsigned int code = *p >> 3 & 0xf;

		end += 2 * ((*p & 7u) + 1);
		p++;
		if (code == LOCATION_NO_COLUMNS || code == LOCATION_LONG)
			line += (uint64_t)signed_number(p, last);
		else if (code >= LOCATION_ONE_LINE && code < LOCATION_NO_COLUMNS)
			line += code - LOCATION_ONE_LINE;
		if (end > offset)
			return code == LOCATION_NONE ? 0 : line_or_none(line);
		while (p < last && !(*p & 0x80))
			p++;
	}
	return 0;
}

static uint64_t find_in_table(
	uint64_t line_table, struct vt_text lines, uint64_t line, uint64_t offset)
{
	const uint8_t *table = (const uint8_t *)lines.data;

	switch (line_table) {
	case VT_LINES_LNOTAB:
		return find_in_lnotab(table, lines.bytes, line, offset);
	case VT_LINES_310:
		return find_in_ranges(table, lines.bytes, line, offset);
	case VT_LINES_LOCATIONS:
		return find_in_locations(table, lines.bytes, line, offset);
	default:
		return 0;
	}
}

uint64_t lines_find(uint64_t line_table, struct vt_text lines, uint64_t first_line, uint64_t offset)
{
	uint64_t line = find_in_table(line_table, lines, first_line, offset);

	return line || offset ? line : line_or_none(first_line);
}
