/* tools/analysis: what is made of lists of leaks: suppressions, differences, sums for limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/diff.h"
#include "analysis/limits.h"
#include "analysis/suppressions.h"
#include "unit/leaks.h"

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool matches;
	} rows[] = {
		{"alloc", "my_allocator", true},
		{"alloc", "my_allotter", false},
		{"^alloc", "my_allocator", false},
		{"^my", "my_allocator", true},
		{"ator$", "my_allocator", true},
		{"alloc$", "my_allocator", false},
		{"^my_allocator$", "my_allocator", true},
		{"^my_alloc$", "my_allocator", false},
		{"my*tor", "my_allocator", true},
		{"^*tor$", "my_allocator_tor", true},
		{"^my*x*r$", "my_allocator", false},
		{"a*b*c$", "a_b_abc", true},
		{"$", "anything", true},
		{"*", "", true},
		{"x", "", false},
		{"a$b", "a$b", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (suppression_matches(rows[i].pattern, rows[i].name) != rows[i].matches)
			fail_msg("%s and %s", rows[i].pattern, rows[i].name);
}

static void test_suppressions_file(void **state)
{
	struct suppressions suppressions = {0};

	(void)state;
	assert_int_equal(suppressions_add(&suppressions, "# text\n\n  leak:one \r\nleak:two*"), 0);
	assert_int_equal(suppressions.n_items, 2);
	assert_string_equal(suppressions.items[0].pattern, "one");
	assert_string_equal(suppressions.items[1].pattern, "two*");
	assert_int_equal(suppressions_add(&suppressions, "leak:three\nthread:four\n"), 2);
	assert_int_equal(suppressions_add(&suppressions, "leak:"), 1);
	assert_int_equal(suppressions.n_items, 3);
	suppressions_add_built_in(&suppressions);
	assert_true(suppressions.n_items > 3);
	assert_true(suppressions.items[3].built_in);
	suppressions_release(&suppressions);
}

static const char *suppress_all(
	void *user, const struct model *model, uint64_t stack_id, bool grows, bool *built_in)
{
	(void)model;
	*built_in = true;
	return !grows && stack_id != OTHER ? user : NULL;
}

static void test_suppress(void **state)
{
	char pattern[] = "pattern";
	struct leak_suppressor suppressor = {suppress_all, pattern};
	struct told told = service_begin();
	struct site_filter filter = {.limit = 1};
	struct judged judged;

	(void)state;
	take_new(&told, 32 * MIB, CACHE);
	take_new(&told, 4 * MIB, OTHER);
	take_new(&told, 2 * MIB, LEAK);
	take_new(&told, MIB, OTHER + 1);
	judged = leaks_of(&told);
	assert_true(leak_is_leak(leak_of(&judged, CACHE)));
	leak_list_suppress(&judged.leaks, told.story.model, &suppressor);
	assert_int_equal(judged.leaks.n_suppressions, 1);
	assert_int_equal(judged.leaks.suppressions[0].n_sites, 3);
	assert_int_equal(judged.leaks.suppressions[0].bytes, 35 * MIB);
	assert_false(leak_is_leak(leak_of(&judged, CACHE)));
	assert_true(leak_is_leak(leak_of(&judged, OTHER)));
	/* What is suppressed takes no place. */
	leak_list_filter(&judged.leaks, &filter);
	assert_null(leak_of(&judged, OTHER)->suppressed_by);
	judged_end(&judged);
	told_end(&told);
}

static char *key_of(void *user, const struct site_row *row)
{
	char text[32];

	(void)user;
	snprintf(text, sizeof(text), "%d", (int)row->stack_id);
	return strdup(text);
}

static const char *owner_of(void *user, const struct site_row *row)
{
	(void)user;
	return row->stack_id == CACHE ? NULL : row->stack_id == LEAK ? "leak" : "rest";
}

static void test_diff(void **state)
{
	struct site_row from[] = {{.stack_id = WORK, .bytes = 100, .count = 1},
		{.stack_id = LEAK, .bytes = 10, .count = 1},
		{.stack_id = CACHE, .bytes = 50, .count = 5},
		{.stack_id = LEAK, .bytes = 1000, .count = 1, .teardown = true}};
	struct site_row to[] = {{.stack_id = LEAK, .bytes = 30, .count = 3},
		{.stack_id = CACHE, .bytes = 50, .count = 5},
		{.stack_id = OTHER, .bytes = 99, .count = 2}};
	struct site_list lists[] = {{.rows = from, .n_rows = 4}, {.rows = to, .n_rows = 3}};
	struct diff_side sides[] = {
		{&lists[0], key_of, owner_of, NULL}, {&lists[1], key_of, owner_of, NULL}};
	struct diff diff = {0};

	(void)state;
	diff_make(&diff, sides);
	assert_int_equal(diff.sites.n_items, 3);
	assert_ptr_equal(diff.sites.items[0].sites[1], &to[2]);
	assert_null(diff.sites.items[0].sites[0]);
	assert_int_equal(diff.sites.items[1].bytes[0], 10);
	assert_int_equal(diff.sites.items[1].bytes[1], 30);
	assert_int_equal(diff.sites.items[1].counts[1], 3);
	assert_int_equal(diff.sites.items[2].bytes[1], 0);
	assert_int_equal(diff.owners.n_items, 2);
	assert_string_equal(diff.owners.items[0].owner, "leak");
	assert_int_equal(diff.owners.items[1].bytes[0], 100);
	assert_int_equal(diff.owners.items[1].bytes[1], 99);
	diff_filter(&diff, &(struct site_filter){.min_bytes = 50, .limit = 1});
	assert_int_equal(diff.sites.n_items, 1);
	assert_int_equal(diff.sites.n_left_out, 1);
	assert_int_equal(diff.owners.n_items, 0);
	diff_release(&diff);
}

/* What is called a leak, what is live, what grows: suppressed and given back rows are in none. */
static void test_limits(void **state)
{
	struct leak leaks[] = {
		{.row = {.bytes = 1},
			.verdict = LEAK_GROWING,
			.grows = true,
			.rate_bytes_per_s = 10},
		{.row = {.bytes = 2},
			.verdict = LEAK_PER_THREAD,
			.grows = true,
			.rate_bytes_per_s = 20},
		{.row = {.bytes = 4}, .verdict = LEAK_PER_THREAD},
		{.row = {.bytes = 8}, .verdict = LEAK_NONE},
		{.row = {.bytes = 16}, .verdict = LEAK_NONE, .in_use = true},
		{.row = {.bytes = 32}, .verdict = LEAK_ONE_TIME},
		{.row = {.bytes = 64}, .verdict = LEAK_RETAINED_BY_FAILURE},
		{.row = {.bytes = 128, .level = SITE_IDLE}, .verdict = LEAK_CACHE},
		{.row = {.bytes = 256, .teardown = true}, .verdict = LEAK_FREED_AT_TEARDOWN},
		{.row = {.bytes = 512},
			.verdict = LEAK_GROWING,
			.grows = true,
			.rate_bytes_per_s = 40,
			.suppressed_by = "x"},
		{.row = {.bytes = 1024, .kind = VT_KIND_SHARED}, .verdict = LEAK_NONE},
	};
	struct untracked_growth growth = {.rate_bytes_per_s = 100};
	struct oom ooms[2] = {{.number = 1}, {.number = 2}};
	struct overview overview = {
		.leaks = {.items = leaks, .n_items = sizeof(leaks) / sizeof(*leaks)},
		.untracked = {.items = &growth, .n_items = 1},
		.ooms = {.items = ooms, .n_items = 2},
	};
	struct limit_sums sums;

	(void)state;
	ooms[0].episode.recovered = true;
	limit_sums_get(&sums, &overview);
	assert_int_equal(sums.leak_bytes, 1 + 2 + 8 + 64);
	assert_int_equal(sums.live_bytes, 127);
	assert_int_equal(sums.growth_bytes_per_s, 130);
	assert_int_equal(sums.n_refused, 1);
	assert_ptr_equal(sums.fastest, &leaks[1]);
	assert_ptr_equal(sums.largest, &leaks[6]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_suppressions_file),
		cmocka_unit_test(test_suppress),
		cmocka_unit_test(test_diff),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
