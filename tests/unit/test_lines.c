/* tools/symbol/lines.c: real line tables against what the interpreters themselves say, and broken
 * ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/lines.h"

/* One code object of tests/data/python/lines.txt. */
struct table {
	char version[8];
	unsigned int kind;
	unsigned int first_line;
	struct vt_text bytes;
	const char *runs;
};

static FILE *open_tables(void)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/tests/data/python/lines.txt",
		getenv("SOURCE_DIR") ? getenv("SOURCE_DIR") : ".");
	file = fopen(path, "r");
	if (!file)
		fail_msg("no %s", path);
	return file;
}

/* A copy of exactly the bytes, so that a sanitizer sees a read beyond them. */
static struct vt_text from_hex(const char *hex, size_t digits)
{
	char *bytes = malloc(digits / 2 ? digits / 2 : 1);

	for (size_t i = 0; i + 1 < digits; i += 2) {
		unsigned int byte;

		assert_int_equal(sscanf(hex + i, "%2x", &byte), 1);
		bytes[i / 2] = (char)byte;
	}
	return (struct vt_text){bytes, digits / 2};
}

/* The next code object; false at the end. table->bytes.data is to be freed. */
static bool next_table(FILE *file, struct table *table)
{
	static char line[65536];
	int hex = 0, runs = 0;

	do {
		if (!fgets(line, sizeof(line), file))
			return false;
	} while (*line == '#');
	if (sscanf(line, "%7s %u %u %n%*s %n", table->version, &table->kind, &table->first_line,
		    &hex, &runs) != 3)
		fail_msg("not understood: %s", line);
	table->bytes = from_hex(line + hex, strcspn(line + hex, " "));
	table->runs = line + runs;
	return true;
}

static uint64_t find(const struct table *table, uint64_t offset)
{
	return lines_find(table->kind, table->bytes, table->first_line, offset);
}

/* Returns how many offsets were compared. */
static size_t compare(const struct table *table)
{
	const char *at = table->runs;
	unsigned long line = 0;
	size_t offset = 0;

	while (*at && *at != '\n') {
		char *end;
		size_t from = strtoul(at, &end, 10);

		for (; offset < from; offset += 2)
			if (find(table, offset) != line)
				fail_msg("%s: offset %zu: line %lu, not %lu", table->version,
					offset, (unsigned long)find(table, offset), line);
		assert_int_equal(*end, ':');
		line = end[1] == '-' ? 0 : strtoul(end + 1, NULL, 10);
		/* What has not begun is at the first line. */
		if (!from && !line) {
			assert_int_equal(find(table, 0), table->first_line);
			offset = 2;
		}
		at = end + 1 + strcspn(end + 1, ",\n");
		at += *at == ',';
	}
	return offset / 2;
}

static void test_real_tables(void **state)
{
	FILE *file = open_tables();
	struct table table;
	size_t n_compared = 0, n_kinds[4] = {0};

	(void)state;
	while (next_table(file, &table)) {
		assert_in_range(table.kind, 1, 3);
		n_kinds[table.kind]++;
		n_compared += compare(&table);
		free((char *)table.bytes.data);
	}
	fclose(file);
	for (size_t kind = 1; kind <= 3; kind++)
		assert_true(n_kinds[kind] >= 20);
	assert_true(n_compared > 4000);
}

/* Beyond the end: the old tables go on, the others say nothing. */
static void test_beyond(void **state)
{
	FILE *file = open_tables();
	struct table table;

	(void)state;
	while (next_table(file, &table)) {
		uint64_t line = find(&table, 1u << 30);

		if (table.kind == VT_LINES_LNOTAB)
			assert_true(line > 0);
		else
			assert_int_equal(line, 0);
		free((char *)table.bytes.data);
	}
	fclose(file);
	assert_int_equal(lines_find(VT_LINES_LNOTAB, (struct vt_text){0}, 7, 4), 7);
	assert_int_equal(lines_find(VT_LINES_310, (struct vt_text){0}, 7, 4), 0);
	assert_int_equal(lines_find(VT_LINES_LOCATIONS, (struct vt_text){0}, 7, 4), 0);
	assert_int_equal(lines_find(VT_LINES_LOCATIONS, (struct vt_text){0}, 7, 0), 7);
	assert_int_equal(lines_find(0, (struct vt_text){0}, 7, 4), 0);
	assert_int_equal(lines_find(4, (struct vt_text){0}, 7, 4), 0);
	assert_int_equal(lines_find(VT_LINES_LNOTAB, (struct vt_text){0}, UINT64_MAX, 4), 0);
}

/* Any bytes: nothing outside is read, and what comes out is a line or none. */
static void test_random_tables(void **state)
{
	(void)state;
	srandom(20240229);
	for (unsigned int i = 0; i < 200000; i++) {
		size_t bytes = (size_t)random() % 40;
		char *table = malloc(bytes ? bytes : 1);

		for (size_t k = 0; k < bytes; k++)
			table[k] = (char)(random() >> 8 & (random() & 1 ? 0xff : 0x7f));
		assert_true(lines_find(i % 5, (struct vt_text){table, bytes},
				    (uint64_t)random() >> (random() % 32),
				    (uint64_t)random() % 64) <= INT32_MAX);
		free(table);
	}
}

/* Every table cut short everywhere, behind it a byte that asks for more. */
static void test_broken_tables(void **state)
{
	FILE *file = open_tables();
	struct table table;

	(void)state;
	while (next_table(file, &table)) {
		size_t whole = table.bytes.bytes;

		for (size_t bytes = 0; bytes < whole && bytes < 400; bytes++) {
			char *copy = malloc(bytes + 1);

			memcpy(copy, table.bytes.data, bytes);
			copy[bytes] = (char)0xff;
			for (unsigned int kind = 0; kind <= 4; kind++)
				lines_find(kind, (struct vt_text){copy, bytes + 1}, 1, 1u << 20);
			copy[bytes] = 0x7f;
			for (unsigned int kind = 0; kind <= 4; kind++)
				lines_find(kind, (struct vt_text){copy, bytes + 1},
					table.first_line, 1u << 20);
			free(copy);
		}
		free((char *)table.bytes.data);
	}
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_tables),
		cmocka_unit_test(test_beyond),
		cmocka_unit_test(test_broken_tables),
		cmocka_unit_test(test_random_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
