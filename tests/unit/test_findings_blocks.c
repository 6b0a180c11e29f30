/* tools/analysis: fragmentation and post-mortems where an allocator hands out blocks of larger
 * segments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/findings.h"

#define TOTAL (256 * MIB)

static struct told torch_begin(void)
{
	struct told told = told_begin(TOTAL);

	tell(&told,
		(struct vt_record){.kind = VT_REC_allocator,
			.allocator = {
				.allocator_id = 1, .layer = VT_LAYER_TORCH, .name = {"torch", 5}}});
	return told;
}

static void hand_out(struct told *told, uint64_t address, uint64_t bytes, uint64_t stack_id)
{
	tell(told, (struct vt_record){.kind = VT_REC_block_alloc,
			   .block_alloc = {.allocator_id = 1,
				   .address = address,
				   .bytes = bytes,
				   .stack_id = stack_id}});
}

static void give_back_block(struct told *told, uint64_t address, uint64_t bytes)
{
	tell(told, (struct vt_record){.kind = VT_REC_block_free,
			   .block_free = {.allocator_id = 1, .address = address, .bytes = bytes}});
}

/* A segment, cut into blocks of `each` bytes, the first of which are the caller's to free. */
static void cut(
	struct told *told, uint64_t address, uint64_t bytes, uint64_t each, uint64_t stack_id)
{
	take(told, VT_KIND_LINEAR, address, bytes, 100);
	for (uint64_t at = 0; at < bytes; at += each)
		hand_out(told, address + at, each, stack_id);
}

static void wait_for(struct told *told, uint64_t address, uint64_t event)
{
	tell(told, (struct vt_record){.kind = VT_REC_stream_event,
			   .stream_event = {.action = VT_EVENT_WAIT,
				   .event = event,
				   .stream = 0x51,
				   .address = address,
				   .caller = 0x1000,
				   .distance = 64}});
}

static void work_is_done(struct told *told, uint64_t event)
{
	tell(told, (struct vt_record){.kind = VT_REC_stream_event,
			   .stream_event = {.action = VT_EVENT_SYNCHRONISED, .event = event}});
}

static void report(struct told *told, uint64_t bytes, uint64_t stack_id)
{
	tell(told, (struct vt_record){.kind = VT_REC_block_failure,
			   .block_failure = {
				   .allocator_id = 1, .bytes = bytes, .stack_id = stack_id}});
}

static void stack(struct told *told, uint64_t stack_id, const uint64_t *frames, size_t n)
{
	struct vt_record record = {
		.kind = VT_REC_stack, .stack = {.stack_id = stack_id, .frames = {frames, n}}};

	model_apply(told->story.model, &record);
}

static const struct fragmentation_row *torch_row(struct told *told, struct fragmentation *list)
{
	*list = (struct fragmentation){0};
	watch_finish(&told->watch);
	fragmentation_add(
		list, told->story.model, 0, "end", told->story.now, 0, &told->watch.requests);
	check_rows(list);
	for (size_t i = 0; i < list->n_rows; i++)
		if (list->rows[i].level == FRAGMENTATION_FRAMEWORK)
			return &list->rows[i];
	fail_msg("no row of the allocator");
	return NULL;
}

/* Two blocks of 64 KiB and 1 MiB keep a segment of 80 MiB. */
static void test_pinned_segment(void **state)
{
	struct told told = torch_begin();
	const struct fragmentation_row *row;
	struct fragmentation list;

	(void)state;
	take(&told, VT_KIND_LINEAR, GIB, 80 * MIB, 100);
	hand_out(&told, GIB, 30 * MIB, 1);
	hand_out(&told, GIB + 30 * MIB, MIB, 2);
	hand_out(&told, GIB + 31 * MIB, 48 * MIB, 1);
	hand_out(&told, GIB + 79 * MIB, MIB, 3);
	take(&told, VT_KIND_LINEAR, 2 * GIB, 20 * MIB, 100);
	hand_out(&told, 2 * GIB, 20 * MIB, 4);
	give_back_block(&told, GIB, 30 * MIB);
	give_back_block(&told, GIB + 31 * MIB, 48 * MIB);
	row = torch_row(&told, &list);
	assert_int_equal(row->reserved_bytes, 100 * MIB);
	assert_int_equal(row->live_bytes, 22 * MIB);
	assert_int_equal(row->idle_bytes, 78 * MIB);
	assert_int_equal(row->pinned_bytes, 78 * MIB);
	assert_int_equal(row->pinning_bytes, 2 * MIB);
	assert_int_equal(row->n_pinned, 1);
	assert_int_equal(row->n_holes, 2);
	assert_int_equal(row->largest_hole_bytes, 48 * MIB);
	assert_int_equal(row->holes[0].bytes, 48 * MIB);
	assert_int_equal(row->n_pinners, 2);
	/* Both hold it, neither does alone; the block that fills its segment holds nothing back. */
	assert_int_equal(row->pinners[0].pins_bytes, 0);
	assert_int_equal(row->pinners[0].shared_bytes, 78 * MIB);
	assert_int_equal(row->n_segments, 1);
	assert_int_equal(row->segments[0].address, GIB);
	assert_int_equal(row->segments[0].n_holders, 2);
	assert_int_equal(row->segments[0].holders[0].bytes, MIB);
	assert_int_equal(row->verdict, FRAGMENTATION_PINNED);
	assert_int_equal(row->advice, ADVICE_EXPANDABLE);
	/* Of holes from 0 to 30 and 31 to 79, in pages of 2. */
	assert_int_equal(row->advice_bytes, 30 * MIB + 46 * MIB);
	assert_int_equal(row->split_bytes, 0);
	fragmentation_release(&list);
	told_end(&told);
}

/* Who holds back most for each live byte comes first, but not those who hold back next to nothing.
 */
static void test_ranking(void **state)
{
	struct told told = torch_begin();
	const struct fragmentation_row *row;
	struct fragmentation list;

	(void)state;
	take(&told, VT_KIND_LINEAR, GIB, 64 * MIB, 100);
	hand_out(&told, GIB, 8 * MIB, 1); /* 56 for 8 */
	take(&told, VT_KIND_LINEAR, 2 * GIB, 32 * MIB, 100);
	hand_out(&told, 2 * GIB, MIB, 2); /* 31 for 1 */
	take(&told, VT_KIND_LINEAR, 3 * GIB, MIB, 100);
	hand_out(&told, 3 * GIB, 512, 3); /* nearly 1 for next to nothing */
	row = torch_row(&told, &list);
	assert_int_equal(row->n_pinners, 3);
	assert_int_equal(row->pinners[0].stack_id, 2);
	assert_int_equal(row->pinners[0].pins_bytes, 31 * MIB);
	assert_int_equal(row->pinners[1].stack_id, 1);
	assert_int_equal(row->pinners[2].stack_id, 3);
	fragmentation_release(&list);
	told_end(&told);
}

static void test_filter(void **state)
{
	const struct site_filter filter = {.min_bytes = 2 * MIB, .limit = 1};
	struct told told = torch_begin();
	struct fragmentation list;

	(void)state;
	for (uint64_t i = 1; i <= 3; i++) {
		take(&told, VT_KIND_LINEAR, i * GIB, 32 * MIB, 100);
		hand_out(&told, i * GIB, MIB, i);
	}
	torch_row(&told, &list);
	fragmentation_filter(&list, &filter);
	for (size_t i = 0; i < list.n_rows; i++) {
		if (list.rows[i].level != FRAGMENTATION_FRAMEWORK)
			continue;
		assert_int_equal(list.rows[i].n_pinners, 1);
		assert_int_equal(list.rows[i].n_pinners_left_out, 2);
		assert_int_equal(list.rows[i].n_segments, 1);
		assert_int_equal(list.rows[i].n_segments_left_out, 2);
	}
	fragmentation_filter(&list, &(struct site_filter){.one_device = true, .device = 1});
	assert_int_equal(list.n_rows, 0);
	fragmentation_release(&list);
	told_end(&told);
}

/* Whole segments without a block can be given back: no fragmentation, a cache. */
static void test_cached(void **state)
{
	struct told told = torch_begin();
	const struct fragmentation_row *row;
	struct fragmentation list;

	(void)state;
	cut(&told, GIB, 60 * MIB, 60 * MIB, 1);
	cut(&told, 2 * GIB, 20 * MIB, 20 * MIB, 1);
	give_back_block(&told, GIB, 60 * MIB);
	row = torch_row(&told, &list);
	assert_int_equal(row->returnable_bytes, 60 * MIB);
	assert_int_equal(row->pinned_bytes, 0);
	assert_int_equal(row->n_holes, 0);
	assert_int_equal(row->largest_free_bytes, 60 * MIB);
	assert_int_equal(row->verdict, FRAGMENTATION_CACHED);
	assert_int_equal(row->advice, ADVICE_EMPTY_CACHE);
	fragmentation_release(&list);
	told_end(&told);
}

/* What waits for a stream is no hole. */
static void test_pending(void **state)
{
	struct told told = torch_begin();
	const struct fragmentation_row *row;
	struct fragmentation list;

	(void)state;
	cut(&told, GIB, 60 * MIB, 20 * MIB, 1);
	wait_for(&told, GIB, 0xe1);
	give_back_block(&told, GIB, 20 * MIB);
	wait_for(&told, GIB + 20 * MIB, 0xe2);
	give_back_block(&told, GIB + 20 * MIB, 20 * MIB);
	row = torch_row(&told, &list);
	assert_int_equal(row->pending_bytes, 40 * MIB);
	assert_int_equal(row->idle_bytes, 0);
	assert_int_equal(row->n_holes, 0);
	assert_int_equal(row->verdict, FRAGMENTATION_PENDING);
	fragmentation_release(&list);
	work_is_done(&told, 0xe1);
	row = torch_row(&told, &list);
	assert_int_equal(row->pending_bytes, 20 * MIB);
	assert_int_equal(row->largest_hole_bytes, 20 * MIB);
	fragmentation_release(&list);
	told_end(&told);
}

/* Each step's size just misses what the step before left. */
static void test_drift(void **state)
{
	struct told told = torch_begin();
	const struct fragmentation_row *row;
	struct fragmentation list;

	(void)state;
	for (uint64_t i = 0; i < 8; i++) {
		cut(&told, GIB + i * GIB, (12 + 2 * i) * MIB, (12 + 2 * i) * MIB, 1);
		give_back_block(&told, GIB + i * GIB, (12 + 2 * i) * MIB);
	}
	row = torch_row(&told, &list);
	assert_int_equal(row->n_drifting, 1);
	assert_int_equal(row->verdict, FRAGMENTATION_DRIFT);
	assert_int_equal(row->advice, ADVICE_EXPANDABLE);
	fragmentation_release(&list);
	told_end(&told);
}

/* Nobody can say what helps an allocator of the program's own. */
static void test_told_allocator(void **state)
{
	struct told told = told_begin(TOTAL);
	const struct fragmentation_row *row;
	struct fragmentation list;

	(void)state;
	tell(&told, (struct vt_record){.kind = VT_REC_allocator,
			    .allocator = {.allocator_id = 1,
				    .layer = VT_LAYER_TOLD,
				    .device = -1,
				    .name = {"arena", 5}}});
	cut(&told, GIB, 60 * MIB, 20 * MIB, 1);
	give_back_block(&told, GIB, 20 * MIB);
	row = torch_row(&told, &list);
	assert_int_equal(row->verdict, FRAGMENTATION_PINNED);
	assert_int_equal(row->advice, ADVICE_NONE);
	assert_int_equal(row->requests.n_requests, 3);
	assert_int_equal(row->requests.n_fitting, 3);
	fragmentation_release(&list);
	told_end(&told);
}

/* --- Post-mortems --- */

/* What the driver refused and the allocator then reported is one request. */
static void test_report_joins(void **state)
{
	struct told told = torch_begin();
	const struct episode *episode;

	(void)state;
	refuse(&told, VT_KIND_LINEAR, 20 * MIB, 2);
	say_free(&told, MIB, TOTAL);
	give(&told, GIB);
	refuse(&told, VT_KIND_LINEAR, 20 * MIB, 2);
	say_free(&told, 2 * MIB, TOTAL);
	report(&told, 4 * MIB, 3);
	assert_int_equal(told.watch.episodes.n_items, 1);
	episode = &told.watch.episodes.items[0];
	assert_int_equal(episode->n_calls, 2);
	assert_true(episode->reported);
	assert_int_equal(episode->report_bytes, 4 * MIB);
	assert_int_equal(episode->report_stack_id, 3);
	assert_int_equal(episode->free_bytes, 2 * MIB);
	/* The next request is another one. */
	report(&told, 4 * MIB, 3);
	assert_int_equal(told.watch.episodes.n_items, 2);
	assert_int_equal(told.watch.episodes.items[1].n_calls, 0);
	told_end(&told);
}

/* A block that is handed out in the call that was refused memory: that call was served. In another
 * call it says nothing. */
static void test_served_otherwise(void **state)
{
	static const uint64_t refused[] = {1, 2, 3, 10, 11, 12}, served[] = {7, 3, 10, 11, 12},
			      other[] = {7, 3, 20, 21, 12};
	struct told told = torch_begin();

	(void)state;
	stack(&told, 1, refused, 6);
	stack(&told, 2, served, 5);
	stack(&told, 3, other, 5);
	take(&told, VT_KIND_LINEAR, GIB, 40 * MIB, 100);
	refuse(&told, VT_KIND_LINEAR, 20 * MIB, 1);
	hand_out(&told, GIB, 4 * MIB, 2);
	assert_true(told.watch.episodes.items[0].recovered);
	assert_int_equal(told.watch.episodes.items[0].allocator_id, 1);
	refuse(&told, VT_KIND_LINEAR, 20 * MIB, 1);
	hand_out(&told, GIB + 4 * MIB, 4 * MIB, 3);
	assert_int_equal(told.watch.episodes.n_items, 2);
	assert_false(told.watch.episodes.items[1].recovered);
	told_end(&told);
}

/* Without stacks: a block in what was had in the end tells whose request it was. */
static void test_whose_request(void **state)
{
	struct told told = torch_begin();

	(void)state;
	cut(&told, GIB, 40 * MIB, 40 * MIB, 0);
	give_back_block(&told, GIB, 40 * MIB);
	refuse(&told, VT_KIND_LINEAR, 20 * MIB, 0);
	give(&told, GIB);
	take(&told, VT_KIND_LINEAR, 2 * GIB, 20 * MIB, 0);
	hand_out(&told, 2 * GIB, 4 * MIB, 0);
	assert_true(told.watch.episodes.items[0].recovered);
	assert_int_equal(told.watch.episodes.items[0].allocator_id, 1);
	refuse(&told, VT_KIND_LINEAR, 20 * MIB, 0);
	take(&told, VT_KIND_LINEAR, 3 * GIB, 20 * MIB, 0);
	hand_out(&told, 2 * GIB + 4 * MIB, 4 * MIB, 0);
	assert_true(told.watch.episodes.items[1].recovered);
	assert_int_equal(told.watch.episodes.items[1].allocator_id, 0);
	told_end(&told);
}

static void check_class(struct told *told, enum oom_class class, struct oom_list *list)
{
	struct oom *oom = judge(told, list);

	assert_string_equal(oom_class_name(oom->class), oom_class_name(class));
}

/* Refused without a call of the driver: a cap, unless the allocator's own pieces would do. */
static void test_limit(void **state)
{
	struct told told = torch_begin();
	struct oom_list list;

	(void)state;
	cut(&told, GIB, 60 * MIB, 60 * MIB, 1);
	say_free(&told, 180 * MIB, TOTAL);
	report(&told, 40 * MIB, 3);
	check_class(&told, OOM_LIMIT, &list);
	assert_int_equal(remedy(&list.items[0], OOM_RAISE_LIMIT), 40 * MIB);
	oom_list_release(&list);

	cut(&told, 2 * GIB, 60 * MIB, 20 * MIB, 1);
	give_back_block(&told, 2 * GIB, 20 * MIB);
	give_back_block(&told, 2 * GIB + 40 * MIB, 20 * MIB);
	report(&told, 40 * MIB, 3);
	check_class(&told, OOM_FRAGMENTATION, &list);
	assert_int_equal(remedy(&list.items[1], OOM_MOVE_PINNING), 40 * MIB);
	assert_int_equal(remedy(&list.items[1], OOM_RAISE_LIMIT), 0);
	oom_list_release(&list);
	told_end(&told);
}

/* Before it has anything. */
static void test_limit_at_start(void **state)
{
	struct told told = torch_begin();
	struct oom_list list;

	(void)state;
	say_free(&told, 180 * MIB, TOTAL);
	report(&told, 40 * MIB, 3);
	check_class(&told, OOM_LIMIT, &list);
	oom_list_release(&list);
	told_end(&told);
}

static void test_came_free_too_late(void **state)
{
	struct told told = torch_begin();
	struct oom_list list;

	(void)state;
	cut(&told, GIB, 200 * MIB, 100 * MIB, 1);
	wait_for(&told, GIB, 0xe1);
	give_back_block(&told, GIB, 100 * MIB);
	refuse(&told, VT_KIND_LINEAR, 90 * MIB, 2);
	say_free(&told, 56 * MIB, TOTAL);
	work_is_done(&told, 0xe1);
	refuse(&told, VT_KIND_LINEAR, 90 * MIB, 2);
	say_free(&told, 56 * MIB, TOTAL);
	report(&told, 90 * MIB, 3);
	check_class(&told, OOM_PENDING, &list);
	assert_int_equal(remedy(&list.items[0], OOM_RETRY), 100 * MIB);
	oom_list_release(&list);
	told_end(&told);
}

/* The same sizes, but what is free was free all along: it is for somebody else. */
static void test_not_too_late(void **state)
{
	struct told told = torch_begin();
	struct oom_list list;

	(void)state;
	cut(&told, GIB, 200 * MIB, 100 * MIB, 1);
	give_back_block(&told, GIB, 100 * MIB);
	refuse(&told, VT_KIND_LINEAR, 90 * MIB, 2);
	say_free(&told, 56 * MIB, TOTAL);
	report(&told, 90 * MIB, 3);
	check_class(&told, OOM_FRAGMENTATION, &list);
	assert_int_equal(remedy(&list.items[0], OOM_RETRY), 0);
	oom_list_release(&list);
	told_end(&told);
}

/* A library asks the driver while PyTorch keeps nearly all of it; and PyTorch itself is not blamed
 * for its own cache. */
static void test_cache_of_another(void **state)
{
	struct told told = torch_begin();
	struct oom_list list;

	(void)state;
	cut(&told, GIB, 200 * MIB, 200 * MIB, 1);
	give_back_block(&told, GIB, 200 * MIB);
	refuse(&told, VT_KIND_LINEAR, 100 * MIB, 2);
	say_free(&told, 56 * MIB, TOTAL);
	check_class(&told, OOM_OTHER_ALLOCATOR, &list);
	assert_int_equal(remedy(&list.items[0], OOM_RELEASE_CACHE), 200 * MIB);
	oom_list_release(&list);
	copy(&told);
	refuse(&told, VT_KIND_LINEAR, 220 * MIB, 2);
	say_free(&told, 56 * MIB, TOTAL);
	report(&told, 220 * MIB, 2);
	check_class(&told, OOM_FRAGMENTATION, &list);
	assert_int_equal(remedy(&list.items[1], OOM_RELEASE_CACHE), 0);
	oom_list_release(&list);
	told_end(&told);
}

/* Live blocks fill the device: one of those that are large enough would have to go. */
static void test_full(void **state)
{
	struct told told = torch_begin();
	struct oom_list list;

	(void)state;
	cut(&told, GIB, 120 * MIB, 60 * MIB, 1);
	cut(&told, 2 * GIB, 120 * MIB, 10 * MIB, 2);
	refuse(&told, VT_KIND_LINEAR, 40 * MIB, 3);
	say_free(&told, 16 * MIB, TOTAL);
	report(&told, 40 * MIB, 3);
	check_class(&told, OOM_EXHAUSTED, &list);
	assert_int_equal(list.items[0].n_remedies, 1);
	assert_int_equal(list.items[0].remedies[0].stack_id, 1);
	assert_int_equal(list.items[0].remedies[0].bytes, 60 * MIB);
	assert_int_equal(list.items[0].holders.n_rows, 2);
	oom_list_release(&list);
	told_end(&told);
}

/* Full to the last page, which the driver says is free and does not give out. */
static void test_last_page(void **state)
{
	struct told told = torch_begin();
	struct oom_list list;

	(void)state;
	cut(&told, GIB, 253 * MIB, MIB, 1);
	refuse(&told, VT_KIND_LINEAR, MIB, 3);
	say_free(&told, 3 * MIB, TOTAL);
	report(&told, MIB, 3);
	check_class(&told, OOM_EXHAUSTED, &list);
	oom_list_release(&list);
	told_end(&told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pinned_segment),
		cmocka_unit_test(test_ranking),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_cached),
		cmocka_unit_test(test_pending),
		cmocka_unit_test(test_drift),
		cmocka_unit_test(test_told_allocator),
		cmocka_unit_test(test_report_joins),
		cmocka_unit_test(test_served_otherwise),
		cmocka_unit_test(test_whose_request),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_limit_at_start),
		cmocka_unit_test(test_came_free_too_late),
		cmocka_unit_test(test_not_too_late),
		cmocka_unit_test(test_cache_of_another),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_last_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
