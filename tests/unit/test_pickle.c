/* tools/analysis/pickle.c: pickles as Python writes them, and what must not be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "analysis/pickle.h"

/* pickle.dumps({"a": [1, -2, 300, 70000, -5000000000, -2**47, 2**47, 2.5, None, True, False],
 * "b": ("x", ("y",), ()), "c": {"d": [[]]}}, protocol=2) */
static const uint8_t protocol_2[] =
	"\x80\x02}q\x00(X\x01\x00\x00\x00"
	"aq\x01]q\x02(K\x01J\xfe\xff\xff\xff"
	"M,\x01Jp\x11\x01\x00\x8a\x05\x00\x0e\xfa\xd5\xfe\x8a\x06\x00\x00\x00"
	"\x00\x00\x80\x8a\x07\x00\x00\x00\x00\x00\x80\x00G@\x04\x00\x00\x00\x00"
	"\x00\x00N\x88\x89"
	"eX\x01\x00\x00\x00"
	"bq\x03X\x01\x00\x00\x00xq\x04"
	"X\x01\x00\x00\x00yq\x05\x85q\x06)\x87q\x07X\x01\x00\x00\x00"
	"cq\x08}q"
	"\x09X\x01\x00\x00\x00"
	"dq\x0a]q\x0b]q\x0c"
	"asu.";

static const struct pickle_value *list_of(const struct pickle *pickle)
{
	return pickle_get(pickle->root, "a");
}

static void reads_what_python_writes(void **state)
{
	static const int64_t integers[] = {
		1, -2, 300, 70000, -5000000000, -(INT64_C(1) << 47), INT64_C(1) << 47};
	const struct pickle_value *value;
	struct pickle pickle;

	(void)state;
	assert_true(pickle_look(protocol_2, sizeof(protocol_2) - 1));
	pickle_read(&pickle, protocol_2, sizeof(protocol_2) - 1);
	if (!pickle.root)
		fail_msg("%s at %zu", pickle.problem, pickle.at);
	for (size_t i = 0; i < sizeof(integers) / sizeof(*integers); i++)
		assert_int_equal(pickle_integer(pickle_item(list_of(&pickle), i), 0), integers[i]);
	assert_true(pickle_item(list_of(&pickle), 7)->real > 2.4);
	assert_int_equal(pickle_item(list_of(&pickle), 8)->kind, PICKLE_NONE);
	assert_int_equal(pickle_integer(pickle_item(list_of(&pickle), 9), 5), 1);
	assert_int_equal(pickle_integer(pickle_item(list_of(&pickle), 10), 5), 0);
	assert_null(pickle_item(list_of(&pickle), 11));
	value = pickle_get(pickle.root, "b");
	assert_true(pickle_is_text(pickle_item(value, 0), "x"));
	assert_true(pickle_is_text(pickle_item(pickle_item(value, 1), 0), "y"));
	assert_int_equal(pickle_item(value, 2)->n_items, 0);
	value = pickle_item(pickle_get(pickle_get(pickle.root, "c"), "d"), 0);
	assert_int_equal(value->kind, PICKLE_LIST);
	assert_null(pickle_get(pickle.root, "e"));
	assert_null(pickle_get(NULL, "e"));
	assert_int_equal(pickle_integer(NULL, 7), 7);
	pickle_release(&pickle);
}

/* Every beginning of a pickle is refused, and none of them reads behind its end. */
static void refuses_what_is_cut(void **state)
{
	(void)state;
	for (size_t bytes = 0; bytes < sizeof(protocol_2) - 1; bytes++) {
		uint8_t part[sizeof(protocol_2)];
		struct pickle pickle;

		memcpy(part, protocol_2, bytes);
		pickle_read(&pickle, part, bytes);
		assert_null(pickle.root);
		assert_non_null(pickle.problem);
		pickle_release(&pickle);
	}
}

static void refuses_what_is_no_plain_value(void **state)
{
	static const struct {
		const char *bytes, *problem;
		size_t n;
	} cases[] = {
		/* os.system("true") */
		{"\x80\x02"
		 "cposix\nsystem\nX\x04\x00\x00\x00true\x85R.",
			"more than plain", 28},
		{"\x80\x04\x8c\x05posix\x8c\x06system\x93.", "more than plain", 19},
		{"\x80\x02N}b.", "more than plain", 6},
		{"\x80\x02P1\n.", "more than plain", 6},
		{"\x80\x01N.", "does not begin", 4},
		{"\x80\x06N.", "does not begin", 4},
		{"\x80\x02NN.", "not one value", 5},
		{"\x80\x02.", "not one value", 3},
		{"\x80\x02(.", "not one value", 4},
		{"\x80\x02Na.", "missing", 5},
		{"\x80\x02NNa.", "cannot hold", 6},
		{"\x80\x02}Na.", "cannot hold", 6},
		{"\x80\x02]Ns.", "missing", 6},
		{"\x80\x02]NNs.", "cannot hold", 7},
		{"\x80\x02}(Nu.", "no value", 7},
		{"\x80\x02(Ne.", "missing", 6},
		{"\x80\x02Nt.", "missing", 5},
		{"\x80\x02N\x86.", "missing", 6},
		{"\x80\x02h\x00.", "remembered", 6},
		{"\x80\x02q\x00.", "remembered", 6},
		{"\x80\x02Nr\xff\xff\xff\xff.", "remembered", 9},
		{"\x80\x02\x8a\x09"
		 "12345678\x01.",
			"64 bits", 14},
		{"\x80\x02\x8b\xff\xff\xff\xff.", "64 bits", 9},
		{"\x80\x02X\xff\xff\xff\x7f.", "ends in the middle", 9},
		{"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "ends in the middle", 12},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pickle pickle;

		pickle_read(&pickle, (const uint8_t *)cases[i].bytes, cases[i].n);
		assert_null(pickle.root);
		if (!strstr(pickle.problem, cases[i].problem))
			fail_msg("case %zu: %s", i, pickle.problem);
		pickle_release(&pickle);
	}
}

/* l = []; l.append(l) */
static void survives_what_holds_itself(void **state)
{
	static const uint8_t bytes[] = "\x80\x02]q\x00h\x00"
				       "a.";
	struct pickle pickle;

	(void)state;
	pickle_read(&pickle, bytes, sizeof(bytes) - 1);
	assert_non_null(pickle.root);
	assert_ptr_equal(pickle_item(pickle.root, 0), pickle.root);
	pickle_release(&pickle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_python_writes),
		cmocka_unit_test(refuses_what_is_cut),
		cmocka_unit_test(refuses_what_is_no_plain_value),
		cmocka_unit_test(survives_what_holds_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
