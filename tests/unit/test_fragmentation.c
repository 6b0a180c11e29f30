/* tools/analysis: where memory is held and not in use, below every allocator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/findings.h"

static struct fragmentation look(struct told *told)
{
	struct fragmentation list = {0};

	watch_finish(&told->watch);
	fragmentation_add(
		&list, told->story.model, 0, "end", told->story.now, 0, &told->watch.requests);
	check_rows(&list);
	return list;
}

static const struct fragmentation_row *row_of(
	const struct fragmentation *list, enum fragmentation_level level)
{
	for (size_t i = 0; i < list->n_rows; i++)
		if (list->rows[i].level == level)
			return &list->rows[i];
	fail_msg("no row of level %d", (int)level);
	return NULL;
}

/* Blocks of `bytes` until the device is full, then every other one goes. */
static void fill_and_thin(struct told *told, uint64_t bytes, uint64_t n, uint64_t step)
{
	for (uint64_t i = 0; i < n; i++)
		take(told, VT_KIND_LINEAR, GIB + i * step, bytes, 7);
	for (uint64_t i = 0; i < n; i += 2)
		give(told, GIB + i * step);
}

/* Every page is kept by half of it. */
static void test_pinned_pages(void **state)
{
	struct told told = told_begin(256 * MIB);
	const struct fragmentation_row *row;
	struct fragmentation list;

	(void)state;
	fill_and_thin(&told, MIB, 200, MIB);
	list = look(&told);
	row = row_of(&list, FRAGMENTATION_DRIVER);
	assert_int_equal(row->reserved_bytes, 200 * MIB);
	assert_int_equal(row->live_bytes, 100 * MIB);
	assert_int_equal(row->idle_bytes, 100 * MIB);
	assert_int_equal(row->pinned_bytes, 100 * MIB);
	assert_int_equal(row->rounding_bytes, 0);
	assert_int_equal(row->n_containers, 100);
	assert_int_equal(row->n_pinned, 100);
	assert_int_equal(row->n_pinners, 1);
	assert_int_equal(row->pinners[0].stack_id, 7);
	assert_int_equal(row->pinners[0].count, 100);
	assert_int_equal(row->pinners[0].pins_bytes, 100 * MIB);
	assert_int_equal(row->pinners[0].live_bytes, 100 * MIB);
	assert_int_equal(row->verdict, FRAGMENTATION_PINNED);
	assert_int_equal(row->advice, ADVICE_SHARE);
	assert_int_equal(row->advice_bytes, 100 * MIB);
	fragmentation_release(&list);
	told_end(&told);
}

/* Gaps between large blocks are only addresses: nothing to report. */
static void test_gaps_are_none(void **state)
{
	struct told told = told_begin(256 * MIB);
	const struct fragmentation_row *row;
	struct fragmentation list;

	(void)state;
	fill_and_thin(&told, 2 * MIB, 100, 2 * MIB);
	list = look(&told);
	row = row_of(&list, FRAGMENTATION_DRIVER);
	assert_int_equal(row->reserved_bytes, 100 * MIB);
	assert_int_equal(row->live_bytes, 100 * MIB);
	assert_int_equal(row->idle_bytes, 0);
	assert_int_equal(row->n_pinners, 0);
	assert_int_equal(row->verdict, FRAGMENTATION_NONE);
	assert_int_equal(row->advice, ADVICE_NONE);
	fragmentation_release(&list);
	told_end(&told);
}

/* Who holds a page alone is told from those who hold it together, and the most held back comes
 * first. */
static void test_pinners(void **state)
{
	struct told told = told_begin(64 * MIB);
	const struct fragmentation_row *row;
	struct fragmentation list;

	(void)state;
	/* Page 0: one of 11. Page 1: 11 and 12. Page 2: two of 13, nearly full. */
	take(&told, VT_KIND_LINEAR, GIB, 1000, 11);
	take(&told, VT_KIND_LINEAR, GIB + PAGE, 512, 11);
	take(&told, VT_KIND_LINEAR, GIB + PAGE + 512, 512, 12);
	take(&told, VT_KIND_LINEAR, GIB + 2 * PAGE, MIB, 13);
	take(&told, VT_KIND_LINEAR, GIB + 2 * PAGE + MIB, MIB - 512, 13);
	list = look(&told);
	row = row_of(&list, FRAGMENTATION_DRIVER);
	assert_int_equal(row->reserved_bytes, 3 * PAGE);
	assert_int_equal(row->rounding_bytes, 24);
	assert_int_equal(row->idle_bytes, 2 * PAGE - 1024 - 1024 + 512);
	assert_int_equal(row->n_pinners, 3);
	assert_int_equal(row->pinners[0].stack_id, 11);
	assert_int_equal(row->pinners[0].pins_bytes, PAGE - 1024);
	assert_int_equal(row->pinners[0].shared_bytes, PAGE - 1024);
	assert_int_equal(row->pinners[0].count, 2);
	assert_int_equal(row->pinners[0].address, GIB + PAGE);
	assert_int_equal(row->pinners[0].bytes, 512);
	assert_int_equal(row->pinners[0].first_ns, 100);
	assert_int_equal(row->pinners[1].stack_id, 13);
	assert_int_equal(row->pinners[1].pins_bytes, 512);
	assert_int_equal(row->pinners[2].stack_id, 12);
	assert_int_equal(row->pinners[2].pins_bytes, 0);
	assert_int_equal(row->pinners[2].shared_bytes, PAGE - 1024);
	fragmentation_release(&list);
	told_end(&told);
}

/* Little in a large device is no finding, though every byte of it is pinned. */
static void test_small_change(void **state)
{
	struct told told = told_begin(8 * GIB);
	struct fragmentation list;

	(void)state;
	take(&told, VT_KIND_LINEAR, GIB, 512, 7);
	list = look(&told);
	assert_int_equal(row_of(&list, FRAGMENTATION_DRIVER)->pinned_bytes, PAGE - 512);
	assert_int_equal(row_of(&list, FRAGMENTATION_DRIVER)->verdict, FRAGMENTATION_NONE);
	fragmentation_release(&list);
	told_end(&told);
}

/* It is one where as much was refused. */
static void test_as_much_as_refused(void **state)
{
	struct told told = told_begin(8 * GIB);

	(void)state;
	take(&told, VT_KIND_LINEAR, GIB, 512, 7);
	for (uint64_t more = 0; more <= 1; more++) {
		struct fragmentation list = {0};

		fragmentation_add(&list, told.story.model, 0, "oom:1", told.story.now,
			PAGE - 512 + more, &told.watch.requests);
		assert_int_equal(row_of(&list, FRAGMENTATION_DRIVER)->verdict,
			more ? FRAGMENTATION_NONE : FRAGMENTATION_PINNED);
		fragmentation_release(&list);
	}
	told_end(&told);
}

/* A little over a page takes two. */
static void test_rounding(void **state)
{
	struct told told = told_begin(64 * MIB);
	const struct fragmentation_row *row;
	struct fragmentation list;

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		take(&told, VT_KIND_LINEAR, GIB + i * 2 * PAGE, PAGE + 1, 7);
	list = look(&told);
	row = row_of(&list, FRAGMENTATION_DRIVER);
	assert_int_equal(row->rounding_bytes, 10 * (PAGE - 1));
	assert_int_equal(row->idle_bytes, 0);
	assert_int_equal(row->verdict, FRAGMENTATION_ROUNDING);
	assert_int_equal(row->advice, ADVICE_WHOLE_PAGES);
	fragmentation_release(&list);
	told_end(&told);
}

/* A pool with a threshold keeps what it has; without one it is between two synchronisations. */
static void test_pool(void **state)
{
	struct told told = told_begin(64 * MIB);
	const struct fragmentation_row *row;
	struct fragmentation list;

	(void)state;
	do_pool(&told, VT_POOL_CREATE, 0xa0, 48 * MIB);
	take(&told, VT_KIND_POOL, GIB, 4 * MIB, 7);
	say_pool(&told, 0xa0, 32 * MIB, 4 * MIB);
	list = look(&told);
	/* What the default pool reserves was never told. */
	assert_int_equal(list.n_rows, 1);
	assert_int_equal(list.rows[0].pool, 0xa0);
	fragmentation_release(&list);

	tell(&told, (struct vt_record){.kind = VT_REC_alloc,
			    .alloc = {.kind = VT_KIND_POOL,
				    .address = 2 * GIB,
				    .bytes = 8 * MIB,
				    .pool = 0xa0,
				    .stack_id = 8}});
	say_pool(&told, 0xa0, 32 * MIB, 8 * MIB);
	list = look(&told);
	row = row_of(&list, FRAGMENTATION_POOL);
	assert_int_equal(row->pool, 0xa0);
	assert_int_equal(row->reserved_bytes, 32 * MIB);
	assert_int_equal(row->live_bytes, 8 * MIB);
	assert_int_equal(row->idle_bytes, 24 * MIB);
	assert_int_equal(row->pending_bytes, 0);
	assert_int_equal(row->most_bytes, 48 * MIB);
	assert_int_equal(row->verdict, FRAGMENTATION_NONE);
	fragmentation_release(&list);

	do_pool(&told, VT_POOL_THRESHOLD, 0xa0, UINT64_MAX);
	list = look(&told);
	row = row_of(&list, FRAGMENTATION_POOL);
	assert_int_equal(row->verdict, FRAGMENTATION_CACHED);
	assert_int_equal(row->advice, ADVICE_THRESHOLD);
	assert_int_equal(row->advice_bytes, 24 * MIB);
	fragmentation_release(&list);
	told_end(&told);
}

static void free_on(struct told *told, uint64_t address, uint64_t stream)
{
	tell(told, (struct vt_record){.kind = VT_REC_free,
			   .free = {.kind = VT_KIND_POOL, .address = address, .stream = stream}});
}

/* Freed on two streams and still in use, by what the driver says. */
static void test_pending(void **state)
{
	struct told told = told_begin(64 * MIB);
	const struct fragmentation_row *row;
	struct fragmentation list;

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		take(&told, VT_KIND_POOL, GIB + i * 8 * MIB, 8 * MIB, 7);
	free_on(&told, GIB, 0x51);
	free_on(&told, GIB + 8 * MIB, 0x52);
	free_on(&told, GIB + 16 * MIB, 0x52);
	tell(&told, (struct vt_record){.kind = VT_REC_pool_memory,
			    .pool_memory = {.reserved_bytes = 32 * MIB, .used_bytes = 32 * MIB}});
	list = look(&told);
	row = row_of(&list, FRAGMENTATION_POOL);
	assert_int_equal(row->live_bytes, 8 * MIB);
	assert_int_equal(row->pending_bytes, 24 * MIB);
	assert_int_equal(row->idle_bytes, 0);
	assert_int_equal(row->n_pending, 2);
	assert_int_equal(row->pending[0].stream, 0x52);
	assert_int_equal(row->pending[0].bytes, 16 * MIB);
	assert_int_equal(row->verdict, FRAGMENTATION_PENDING);
	assert_int_equal(row->advice, ADVICE_SYNCHRONISE);
	fragmentation_release(&list);

	tell(&told, (struct vt_record){.kind = VT_REC_pool_memory,
			    .pool_memory = {.reserved_bytes = 32 * MIB, .used_bytes = 8 * MIB}});
	list = look(&told);
	row = row_of(&list, FRAGMENTATION_POOL);
	assert_int_equal(row->pending_bytes, 0);
	assert_int_equal(row->idle_bytes, 24 * MIB);
	fragmentation_release(&list);
	told_end(&told);
}

/* What the driver rounds up is not waiting for anything. */
static void test_rounding_is_not_pending(void **state)
{
	struct told told = told_begin(64 * MIB);
	struct fragmentation list;

	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		take(&told, VT_KIND_POOL, GIB + i * 8 * MIB, PAGE + MIB, 7);
	free_on(&told, GIB, 0x51);
	tell(&told,
		(struct vt_record){.kind = VT_REC_pool_memory,
			.pool_memory = {.reserved_bytes = 32 * MIB, .used_bytes = 7 * 2 * PAGE}});
	list = look(&told);
	assert_int_equal(row_of(&list, FRAGMENTATION_POOL)->pending_bytes, 0);
	fragmentation_release(&list);
	told_end(&told);
}

static void test_graphs(void **state)
{
	struct told told = told_begin(64 * MIB);
	const struct fragmentation_row *row;
	struct fragmentation list;

	(void)state;
	tell(&told, (struct vt_record){.kind = VT_REC_graph_memory,
			    .graph_memory = {.reserved_bytes = 20 * MIB, .used_bytes = 0}});
	list = look(&told);
	row = row_of(&list, FRAGMENTATION_POOL);
	assert_true(row->graphs);
	assert_int_equal(row->idle_bytes, 20 * MIB);
	assert_int_equal(row->verdict, FRAGMENTATION_CACHED);
	assert_int_equal(row->advice, ADVICE_TRIM_GRAPHS);
	fragmentation_release(&list);
	told_end(&told);
}

/* --- Requests --- */

static const struct request_site *site_for(struct told *told, uint64_t stack_id)
{
	return requests_site(&told->watch.requests, REQUEST_DRIVER, 0, stack_id);
}

static void test_drift(void **state)
{
	struct told told = told_begin(GIB);
	uint64_t random = 1;

	(void)state;
	/* 21: fifty of a size, then fifty of a little more. 22: a few sizes in turn. 23: random.
	 * 24: doubles. 25: always the same. */
	for (uint64_t step = 0; step < 20; step++)
		for (uint64_t i = 0; i < 50; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			take(&told, VT_KIND_LINEAR, GIB, 100 * KIB + step * KIB, 21);
			take(&told, VT_KIND_LINEAR, GIB, (i % 20 + 50) * KIB, 22);
			take(&told, VT_KIND_LINEAR, GIB, random >> 40, 23);
			take(&told, VT_KIND_LINEAR, GIB, KIB << step, 24);
			take(&told, VT_KIND_LINEAR, GIB, KIB, 25);
		}
	assert_true(request_site_drifts(site_for(&told, 21)));
	assert_int_equal(site_for(&told, 21)->first_bytes, 100 * KIB);
	assert_int_equal(site_for(&told, 21)->largest_bytes, 119 * KIB);
	assert_int_equal(site_for(&told, 21)->n_steps, 19);
	assert_false(request_site_drifts(site_for(&told, 22)));
	assert_false(request_site_drifts(site_for(&told, 23)));
	assert_false(request_site_drifts(site_for(&told, 24)));
	assert_false(request_site_drifts(site_for(&told, 25)));
	assert_null(site_for(&told, 26));
	assert_false(request_site_drifts(NULL));
	told_end(&told);
}

static void test_span(void **state)
{
	struct told told = told_begin(GIB);
	struct request_span span;

	(void)state;
	for (uint64_t i = 1; i <= 9; i++)
		take(&told, VT_KIND_LINEAR, GIB, i * MIB, i);
	take(&told, VT_KIND_MANAGED, GIB, 2 * MIB, 1);
	watch_finish(&told.watch);
	span = requests_span(&told.watch.requests, REQUEST_DRIVER, 0, MIB, 4 * MIB);
	assert_int_equal(span.n_requests, 8);
	assert_int_equal(span.n_fitting, 3);
	assert_int_equal(span.median_bytes, 5 * MIB);
	span = requests_span(&told.watch.requests, REQUEST_FRAMEWORK, 0, 0, GIB);
	assert_int_equal(span.n_requests, 0);
	assert_int_equal(span.median_bytes, 0);
	told_end(&told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pinned_pages),
		cmocka_unit_test(test_gaps_are_none),
		cmocka_unit_test(test_pinners),
		cmocka_unit_test(test_small_change),
		cmocka_unit_test(test_as_much_as_refused),
		cmocka_unit_test(test_rounding),
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_pending),
		cmocka_unit_test(test_rounding_is_not_pending),
		cmocka_unit_test(test_graphs),
		cmocka_unit_test(test_drift),
		cmocka_unit_test(test_span),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
