/* src/record/path.c: the pattern of the trace's path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "record/path.h"

static char out[PATH_MAX];

static const char *expand(const char *pattern, unsigned int number)
{
	assert_true(path_expand(out, sizeof(out), pattern, number));
	return out;
}

static void plain_paths_stay(void **state)
{
	(void)state;
	assert_string_equal(expand("a/b.vt", 0), "a/b.vt");
	assert_string_equal(expand("100%% of it", 0), "100% of it");
	assert_string_equal(expand("%x %", 0), "%x %");
	assert_string_equal(expand("%%p", 0), "%p");
}

static void values(void **state)
{
	char expected[PATH_MAX], host[256];

	(void)state;
	snprintf(expected, sizeof(expected), "x.test_path.%d.vt", (int)getpid());
	assert_string_equal(expand("x.%e.%p.vt", 0), expected);
	assert_int_equal(gethostname(host, sizeof(host)), 0);
	assert_string_equal(expand("%h", 0), host);
}

/* The launchers' variables, in this order; slashes must not lead elsewhere. */
static void ranks(void **state)
{
	(void)state;
	unsetenv("RANK");
	unsetenv("OMPI_COMM_WORLD_RANK");
	unsetenv("SLURM_PROCID");
	assert_string_equal(expand("%r", 0), "0");
	setenv("SLURM_PROCID", "7", 1);
	assert_string_equal(expand("%r", 0), "7");
	setenv("OMPI_COMM_WORLD_RANK", "6", 1);
	assert_string_equal(expand("%r", 0), "6");
	setenv("RANK", "../../5", 1);
	assert_string_equal(expand("a/%r.vt", 0), "a/.._.._5.vt");
}

/* As gmtime has it; the second may pass in between. */
static void start_time(void **state)
{
	char before[32], after[32];
	time_t now = time(NULL);

	(void)state;
	strftime(before, sizeof(before), "%Y%m%dT%H%M%SZ", gmtime(&now));
	expand("%t", 0);
	now = time(NULL);
	strftime(after, sizeof(after), "%Y%m%dT%H%M%SZ", gmtime(&now));
	assert_true(!strcmp(out, before) || !strcmp(out, after));
}

static void numbers(void **state)
{
	(void)state;
	assert_string_equal(expand("x.vt", 1), "x.1.vt");
	assert_string_equal(expand("d.vt/x", 12), "d.vt/x.12");
	assert_string_equal(expand("x.vtt", 999), "x.vtt.999");
	assert_string_equal(expand(".vt", 3), ".vt.3");
}

/* What does not fit is refused, never cut. */
static void too_long(void **state)
{
	char small[8];

	(void)state;
	memset(small, 'z', sizeof(small));
	assert_true(path_expand(small, sizeof(small), "1234567", 0));
	assert_string_equal(small, "1234567");
	assert_false(path_expand(small, sizeof(small), "12345678", 0));
	assert_false(path_expand(small, sizeof(small), "1234.vt", 1));
	assert_false(path_expand(small, sizeof(small), "123456", 1));
	assert_false(path_expand(small, sizeof(small), "%t", 0));
	assert_true(path_expand(small, 1, "", 0));
	assert_string_equal(small, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_paths_stay),
		cmocka_unit_test(values),
		cmocka_unit_test(ranks),
		cmocka_unit_test(start_time),
		cmocka_unit_test(numbers),
		cmocka_unit_test(too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
