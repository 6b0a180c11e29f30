/* tools/model and tools/analysis: where all of a device's memory went, in rows that add up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/account.h"
#include "unit/story.h"

#define TOTAL (100 * PAGE)

static void says_free(struct story *story, uint64_t free_bytes)
{
	apply(story, (struct vt_record){.kind = VT_REC_memory,
			     .memory = {.free_bytes = free_bytes, .total_bytes = TOTAL}});
}

static void untracked(struct story *story, uint64_t cause, int64_t bytes)
{
	apply(story, (struct vt_record){.kind = VT_REC_untracked,
			     .untracked = {.cause = cause, .taken_bytes = bytes}});
}

static void others(struct story *story, uint64_t bytes)
{
	apply(story, (struct vt_record){.kind = VT_REC_others, .others = {.used_bytes = bytes}});
}

static const struct model_account *account(const struct story *story)
{
	return &model_device_find(story->model, 0)->account;
}

static int64_t row(const struct account_row *rows, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(rows[i].key, key))
			return rows[i].bytes;
	fail_msg("no row %s", key);
	return 0;
}

static bool is_measured(const struct account_row *rows, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(rows[i].key, key))
			return rows[i].measured;
	fail_msg("no row %s", key);
	return false;
}

/* The rows of a story add up to the device at its last sample, whatever they are. */
static size_t check_rows(const struct story *story, struct account_row *rows)
{
	size_t n = account_rows(account(story), rows);
	int64_t sum = 0, tracked_sum = 0;

	assert_true(n <= ACCOUNT_MAX_ROWS);
	for (size_t i = 0; i < n; i++) {
		sum += rows[i].bytes;
		tracked_sum += rows[i].part == ACCOUNT_TRACKED ? rows[i].bytes : 0;
	}
	assert_int_equal(sum, account(story)->total_bytes);
	assert_int_equal(tracked_sum, account(story)->tracked_bytes);
	return n;
}

/* With NVML: what others use and what the context takes are measured. */
static void test_measured(void **state)
{
	struct account_row rows[ACCOUNT_MAX_ROWS];
	struct story story = begin(1);
	size_t n;

	(void)state;
	context(&story, VT_CONTEXT_RETAIN, 1);
	others(&story, 11 * PAGE);
	untracked(&story, VT_CAUSE_CONTEXT, 5 * PAGE);
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, 3 * PAGE + 1, 1);
	alloc(&story, VT_KIND_ARRAY, 0, 0x1000, 2 * PAGE, 1);
	alloc(&story, VT_KIND_POOL, 0, 0x4000000, PAGE, 1);
	untracked(&story, VT_CAUSE_MODULES, 2 * PAGE);
	untracked(&story, VT_CAUSE_MODULES, PAGE);
	untracked(&story, VT_CAUSE_MODULES, -PAGE);
	untracked(&story, VT_CAUSE_LOCAL_MEMORY, 7 * PAGE);
	untracked(&story, VT_N_CAUSES + 1, 7 * PAGE);
	says_free(&story, TOTAL - 35 * PAGE);
	n = check_rows(&story, rows);
	assert_int_equal(row(rows, n, "linear"), 4 * PAGE);
	assert_int_equal(row(rows, n, "array"), 2 * PAGE);
	assert_int_equal(row(rows, n, "pool"), PAGE);
	assert_int_equal(row(rows, n, "context"), 5 * PAGE);
	assert_int_equal(row(rows, n, "modules"), 2 * PAGE);
	assert_int_equal(row(rows, n, "local_memory"), 7 * PAGE);
	assert_int_equal(row(rows, n, "other_processes"), 11 * PAGE);
	assert_int_equal(row(rows, n, "unexplained"), 3 * PAGE);
	assert_int_equal(row(rows, n, "free"), TOTAL - 35 * PAGE);
	assert_true(is_measured(rows, n, "context"));
	assert_true(is_measured(rows, n, "other_processes"));
	assert_false(is_measured(rows, n, "linear"));
	assert_false(is_measured(rows, n, "unexplained"));
	/* The driver has not said yet what the pool reserves. */
	assert_false(is_measured(rows, n, "pool"));
	apply(&story, (struct vt_record){.kind = VT_REC_pool_memory,
			      .pool_memory = {.pool = 1, .reserved_bytes = 4 * PAGE}});
	says_free(&story, TOTAL - 35 * PAGE);
	n = check_rows(&story, rows);
	assert_true(is_measured(rows, n, "pool"));
	assert_int_equal(row(rows, n, "pool"), 4 * PAGE);
	assert_int_equal(row(rows, n, "unexplained"), 0);
	model_free(story.model);
}

/* What was sampled stays as it was, whatever comes later. */
static void test_of_its_moment(void **state)
{
	struct story story = begin(1);

	(void)state;
	others(&story, 0);
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, 3 * PAGE, 1);
	says_free(&story, TOTAL - 3 * PAGE);
	alloc(&story, VT_KIND_LINEAR, 0, 0x4000000, 5 * PAGE, 1);
	untracked(&story, VT_CAUSE_MODULES, PAGE);
	assert_int_equal(account(&story)->tracked_bytes, 3 * PAGE);
	assert_int_equal(account(&story)->untracked_sum_bytes, 0);
	assert_int_equal(account(&story)->unexplained_bytes, 0);
	assert_int_equal(account(&story)->time_ns, 102);
	says_free(&story, TOTAL - 9 * PAGE);
	assert_int_equal(account(&story)->untracked_sum_bytes, PAGE);
	assert_int_equal(account(&story)->unexplained_bytes, 0);
	model_free(story.model);
}

/* More is accounted for than is in use: said, not hidden. */
static void test_negative(void **state)
{
	struct account_row rows[ACCOUNT_MAX_ROWS];
	struct story story = begin(1);
	size_t n;

	(void)state;
	others(&story, 10 * PAGE);
	untracked(&story, VT_CAUSE_GRAPH_EXEC, -PAGE);
	says_free(&story, TOTAL - 4 * PAGE);
	n = check_rows(&story, rows);
	assert_int_equal(row(rows, n, "unexplained"), -5 * (int64_t)PAGE);
	assert_int_equal(row(rows, n, "graph_exec"), -(int64_t)PAGE);
	model_free(story.model);
}

/* Without NVML: what is in use at the first sample beyond what is known is the others', and stays
 * theirs. */
static void test_inferred(void **state)
{
	struct account_row rows[ACCOUNT_MAX_ROWS];
	struct story story = begin(1);
	size_t n;

	(void)state;
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, 3 * PAGE, 1);
	untracked(&story, VT_CAUSE_MODULES, PAGE);
	says_free(&story, TOTAL - 24 * PAGE);
	n = check_rows(&story, rows);
	assert_int_equal(row(rows, n, "other_processes"), 20 * PAGE);
	assert_false(is_measured(rows, n, "other_processes"));
	assert_int_equal(row(rows, n, "unexplained"), 0);
	assert_false(account(&story)->context_known);
	alloc(&story, VT_KIND_LINEAR, 0, 0x2000000, PAGE, 1);
	says_free(&story, TOTAL - 27 * PAGE);
	n = check_rows(&story, rows);
	assert_int_equal(row(rows, n, "other_processes"), 20 * PAGE);
	assert_int_equal(row(rows, n, "unexplained"), 2 * PAGE);
	model_free(story.model);
}

/* Less is in use than is known: others cannot have less than nothing. */
static void test_inferred_nothing(void **state)
{
	struct story story = begin(1);

	(void)state;
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, 3 * PAGE, 1);
	says_free(&story, TOTAL - 2 * PAGE);
	assert_int_equal(account(&story)->others_bytes, 0);
	assert_int_equal(account(&story)->unexplained_bytes, -(int64_t)PAGE);
	model_free(story.model);
}

/* A context takes along what it took; the last one everything. What NVML says while the process
 * has a context already is not of others. */
static void test_contexts(void **state)
{
	struct story story = begin(1);
	const struct model_device *dev = model_device_find(story.model, 0);

	(void)state;
	context(&story, VT_CONTEXT_RETAIN, 1);
	others(&story, 9 * PAGE);
	untracked(&story, VT_CAUSE_CONTEXT, 5 * PAGE);
	context(&story, VT_CONTEXT_CREATE, 2);
	others(&story, 16 * PAGE);
	untracked(&story, VT_CAUSE_CONTEXT, 3 * PAGE);
	untracked(&story, VT_CAUSE_MODULES, PAGE);
	assert_int_equal(dev->n_contexts, 2);
	assert_int_equal(dev->others_bytes, 9 * PAGE);
	assert_int_equal(dev->untracked_bytes[VT_CAUSE_CONTEXT], 8 * PAGE);
	context(&story, VT_CONTEXT_DESTROY, 2);
	assert_int_equal(dev->untracked_bytes[VT_CAUSE_CONTEXT], 5 * PAGE);
	assert_int_equal(dev->untracked_bytes[VT_CAUSE_MODULES], PAGE);
	context(&story, VT_CONTEXT_RESET, 1);
	assert_int_equal(dev->n_contexts, 0);
	assert_int_equal(dev->untracked_bytes[VT_CAUSE_CONTEXT], 0);
	assert_int_equal(dev->untracked_bytes[VT_CAUSE_MODULES], 0);
	/* Used again, it is there again. */
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, PAGE, 1);
	assert_int_equal(dev->n_contexts, 1);
	model_free(story.model);
}

/* Letting go of the primary context ends nothing until the process goes on with it. */
static void test_released_context(void **state)
{
	struct story story = begin(1);
	const struct model_device *dev = model_device_find(story.model, 0);

	(void)state;
	context(&story, VT_CONTEXT_RETAIN, 1);
	untracked(&story, VT_CAUSE_CONTEXT, 5 * PAGE);
	context(&story, VT_CONTEXT_RELEASE, 1);
	assert_int_equal(dev->untracked_bytes[VT_CAUSE_CONTEXT], 5 * PAGE);
	context(&story, VT_CONTEXT_RETAIN, 1);
	assert_int_equal(dev->n_contexts, 1);
	assert_int_equal(dev->untracked_bytes[VT_CAUSE_CONTEXT], 0);
	model_free(story.model);
}

static void listed(struct story *story, uint64_t bytes)
{
	apply(story, (struct vt_record){.kind = VT_REC_others,
			     .others = {.used_bytes = bytes,
				     .at_refusal = 1,
				     .n_processes = 2,
				     .largest_pid = 77,
				     .largest_bytes = bytes - PAGE}});
}

/* What NVML lists when memory is refused holds from then on, where contexts are not part of it. */
static void test_listed(void **state)
{
	struct story story = begin(1);
	const struct model_device *dev = model_device_find(story.model, 0);

	(void)state;
	listed(&story, 7 * PAGE);
	assert_true(dev->listed.seen);
	assert_int_equal(dev->listed.largest_pid, 77);
	assert_false(dev->others_known);
	others(&story, 2 * PAGE);
	untracked(&story, VT_CAUSE_CONTEXT, PAGE);
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, PAGE, 1);
	listed(&story, 5 * PAGE);
	assert_int_equal(dev->others_bytes, 5 * PAGE);
	says_free(&story, TOTAL - 7 * PAGE);
	assert_int_equal(account(&story)->unexplained_bytes, 0);
	model_free(story.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_of_its_moment),
		cmocka_unit_test(test_negative),
		cmocka_unit_test(test_inferred),
		cmocka_unit_test(test_inferred_nothing),
		cmocka_unit_test(test_contexts),
		cmocka_unit_test(test_listed),
		cmocka_unit_test(test_released_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
