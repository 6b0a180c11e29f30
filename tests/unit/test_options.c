/* src/record/options.c: values, defaults, and one line for each value that cannot be used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "record/options.h"
#include "record/unwind/unwind.h"

#define DEFAULT_UNWINDER (UNWIND_IS_FAST ? OPTIONS_UNWINDER_FAST : OPTIONS_UNWINDER_LIBUNWIND)

static void read_list(char **list)
{
	memset(&options, 0xa5, sizeof(options));
	options_read(list);
}

#define READ(...) read_list((char *[]){__VA_ARGS__, NULL})

static unsigned int n_complaints(void)
{
	unsigned int n = 0;

	for (const char *p = options.complaints; *p; p++)
		n += *p == '\n';
	return n;
}

static void defaults(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		if (i)
			READ("PATH=/bin", "VRAMTRACE=7", "XVRAMTRACE_QUIET=1", "VRAMTRACE_QUIET");
		else
			read_list(NULL);
		assert_true(options.enabled);
		assert_false(options.quiet);
		assert_true(options.native_stacks);
		assert_int_equal(options.unwinder, DEFAULT_UNWINDER);
		assert_true(options.copies);
		assert_false(options.copy_timing);
		assert_true(options.memory_samples);
		assert_int_equal(options.depth, 128);
		assert_int_equal(options.max_bytes, 0);
		assert_string_equal(options.output, "vramtrace.%e.%p.vt");
		assert_string_equal(options.complaints, "");
	}
}

static void good_values(void **state)
{
	(void)state;
	READ("VRAMTRACE_ENABLED=0", "VRAMTRACE_QUIET=1", "VRAMTRACE_STACK=none",
		"VRAMTRACE_COPIES=none", "VRAMTRACE_MEMINFO=0", "VRAMTRACE_STACK_DEPTH=256",
		"VRAMTRACE_MAX_SIZE=2G", "VRAMTRACE_OUTPUT=/tmp/%p=%e.vt",
		"VRAMTRACE_LAYERS=driver", "VRAMTRACE_DEEPBIND=keep", "VRAMTRACE_COPY_TIMING=1");
	assert_string_equal(options.complaints, "");
	assert_true(options.keep_deepbind);
	assert_true(options.copy_timing);
	assert_false(options.enabled);
	assert_true(options.quiet);
	assert_false(options.native_stacks);
	assert_false(options.copies);
	assert_false(options.memory_samples);
	assert_int_equal(options.depth, 256);
	assert_int_equal(options.max_bytes, 2ull << 30);
	assert_string_equal(options.output, "/tmp/%p=%e.vt");
	READ("VRAMTRACE_STACK=python", "VRAMTRACE_LAYERS=driver,torch", "VRAMTRACE_STACK_DEPTH=1");
	assert_string_equal(options.complaints, "");
	assert_false(options.native_stacks);
	assert_int_equal(options.depth, 1);
	READ("VRAMTRACE_STACK=native", "VRAMTRACE_COPIES=all", "VRAMTRACE_MAX_SIZE=1M",
		"VRAMTRACE_DEEPBIND=clear");
	assert_string_equal(options.complaints, "");
	assert_false(options.keep_deepbind);
	assert_true(options.native_stacks);
	assert_true(options.copies);
	assert_int_equal(options.max_bytes, 1 << 20);
}

/* Each costs one line that names the variable and the value, and leaves the default. */
static void wrong_values(void **state)
{
	static char *const wrong[] = {
		"VRAMTRACE_ENABLED=yes",
		"VRAMTRACE_ENABLED=",
		"VRAMTRACE_QUIET=2",
		"VRAMTRACE_MEMINFO=01",
		"VRAMTRACE_STACK=all",
		"VRAMTRACE_STACK=",
		"VRAMTRACE_COPIES=some",
		"VRAMTRACE_LAYERS=torch",
		"VRAMTRACE_UNWINDER=slow",
		"VRAMTRACE_DEEPBIND=1",
		"VRAMTRACE_STACK_DEPTH=0",
		"VRAMTRACE_STACK_DEPTH=257",
		"VRAMTRACE_STACK_DEPTH=-1",
		"VRAMTRACE_STACK_DEPTH=12x",
		"VRAMTRACE_MAX_SIZE=1000",
		"VRAMTRACE_MAX_SIZE=-5M",
		"VRAMTRACE_MAX_SIZE=5X",
		"VRAMTRACE_MAX_SIZE=99999999999999999999",
		"VRAMTRACE_OUTPUT=",
		"VRAMTRACE_NONSENSE=1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const char *equals = strchr(wrong[i], '=');
		char name[64];

		READ(wrong[i]);
		snprintf(name, sizeof(name), "%.*s", (int)(equals - wrong[i]), wrong[i]);
		if (n_complaints() != 1 || !strstr(options.complaints, name) ||
			strncmp(options.complaints, "vramtrace: ", 11))
			fail_msg("%s: said \"%s\"", wrong[i], options.complaints);
		if (strcmp(name, "VRAMTRACE_OUTPUT") && strcmp(name, "VRAMTRACE_NONSENSE"))
			assert_non_null(strstr(options.complaints, equals));
		assert_true(options.enabled);
		assert_false(options.quiet);
		assert_true(options.native_stacks && options.copies && options.memory_samples);
		assert_int_equal(options.depth, 128);
		assert_int_equal(options.unwinder, DEFAULT_UNWINDER);
		assert_int_equal(options.max_bytes, 0);
		assert_string_equal(options.output, "vramtrace.%e.%p.vt");
	}
}

static void unwinders(void **state)
{
	(void)state;
	READ("VRAMTRACE_UNWINDER=libunwind");
	assert_int_equal(options.unwinder, OPTIONS_UNWINDER_LIBUNWIND);
	assert_string_equal(options.complaints, "");
	READ("VRAMTRACE_UNWINDER=check");
	assert_int_equal(options.unwinder,
		UNWIND_IS_FAST ? OPTIONS_UNWINDER_CHECK : OPTIONS_UNWINDER_LIBUNWIND);
	assert_int_equal(n_complaints(), !UNWIND_IS_FAST);
	READ("VRAMTRACE_UNWINDER=libunwind", "VRAMTRACE_UNWINDER=fast");
	assert_int_equal(options.unwinder, DEFAULT_UNWINDER);
}

/* Long and many values neither overflow nor lose the last good one. */
static void long_values(void **state)
{
	static char entry[20000], many[100][300];
	char *list[102] = {0};

	(void)state;
	memset(entry, 'x', sizeof(entry) - 1);
	memcpy(entry, "VRAMTRACE_OUTPUT=", 17);
	READ(entry);
	assert_int_equal(n_complaints(), 1);
	assert_string_equal(options.output, "vramtrace.%e.%p.vt");
	memcpy(entry, "VRAMTRACE_", 10);
	entry[10] = 'x';
	READ(entry, "VRAMTRACE_QUIET=1");
	assert_true(options.quiet);
	for (int i = 0; i < 100; i++) {
		memset(many[i], 'v', sizeof(many[i]) - 1);
		memcpy(many[i], "VRAMTRACE_QUIET=", 16);
		list[i] = many[i];
	}
	list[100] = "VRAMTRACE_COPIES=none";
	read_list(list);
	assert_true(strlen(options.complaints) < sizeof(options.complaints));
	assert_true(n_complaints() > 10);
	assert_false(options.copies);
	assert_false(options.quiet);
}

static void sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{"0", 0},
		{"1", 1},
		{"12345", 12345},
		{"1k", 1024},
		{"3K", 3072},
		{"512M", 512ull << 20},
		{"512MiB", 512ull << 20},
		{"512MB", 512ull << 20},
		{"2g", 2ull << 30},
		{"16T", 16ull << 40},
		{"18446744073709551615", UINT64_MAX},
		{"16777215T", 16777215ull << 40},
	};
	static const char *const bad[] = {"", " ", "x", "-1", "+1", "1.5G", "1 ", "1 K", " 1",
		"1KK", "1iB", "1KiBB", "1P", "0x10", "1\n", "K", "18446744073709551616",
		"99999999999999999999999", "16777216T", "20000000000G"};
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		bytes = 77;
		if (!options_parse_size(good[i].text, &bytes) || bytes != good[i].bytes)
			fail_msg("%s", good[i].text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		bytes = 77;
		if (options_parse_size(bad[i], &bytes) || bytes != 77)
			fail_msg("accepted: \"%s\"", bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(good_values),
		cmocka_unit_test(wrong_values),
		cmocka_unit_test(unwinders),
		cmocka_unit_test(long_values),
		cmocka_unit_test(sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
