/* tools/analysis: what belongs to one out-of-memory episode, why it was, and what would have
 * sufficed; and who is not to blame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/findings.h"

#define TOTAL (256 * MIB)

/* --- Episodes --- */

static void test_one_request(void **state)
{
	struct told told = told_begin(TOTAL);
	const struct episode *episode;

	(void)state;
	take(&told, VT_KIND_LINEAR, GIB, 200 * MIB, 1);
	refuse(&told, VT_KIND_LINEAR, 100 * MIB, 2);
	say_free(&told, 56 * MIB, TOTAL);
	give(&told, GIB);
	refuse(&told, VT_KIND_LINEAR, 100 * MIB, 3);
	say_free(&told, 99 * MIB, TOTAL);
	assert_int_equal(told.watch.episodes.n_items, 1);
	episode = &told.watch.episodes.items[0];
	assert_int_equal(episode->want, EPISODE_MEMORY);
	assert_int_equal(episode->n_calls, 2);
	assert_int_equal(episode->bytes, 100 * MIB);
	assert_int_equal(episode->stack_id, 3);
	assert_int_equal(episode->first_ns, 101);
	assert_int_equal(episode->last_ns, 104);
	assert_true(episode->sampled);
	assert_int_equal(episode->free_bytes, 99 * MIB);
	assert_int_equal(episode->moment.time_ns, 105);
	assert_false(episode->recovered);
	/* Before the first refusal. */
	assert_int_equal(episode->n_events, 1);
	assert_int_equal(episode->events[0].kind, VT_REC_alloc);
	take(&told, VT_KIND_LINEAR, GIB, 100 * MIB, 3);
	assert_true(told.watch.episodes.items[0].recovered);
	assert_int_equal(told.watch.episodes.n_items, 1);
	told_end(&told);
}

/* Memory that comes page by page: some come, then one is refused, again. */
static void test_page_by_page(void **state)
{
	struct told told = told_begin(TOTAL);

	(void)state;
	for (int i = 0; i < 3; i++) {
		tell(&told, (struct vt_record){.kind = VT_REC_handle_create,
				    .handle_create = {.handle = 1, .bytes = PAGE}});
		refuse(&told, VT_KIND_VMM, PAGE, 2);
	}
	assert_int_equal(told.watch.episodes.n_items, 1);
	assert_int_equal(told.watch.episodes.items[0].n_calls, 3);
	assert_false(told.watch.episodes.items[0].recovered);
	told_end(&told);
}

/* Other sizes, other threads, work in between and long pauses part what is refused. */
static void test_several(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	refuse(&told, VT_KIND_LINEAR, 100 * MIB, 1);
	refuse(&told, VT_KIND_LINEAR, 50 * MIB, 1);
	take(&told, VT_KIND_LINEAR, GIB, 25 * MIB, 1);
	refuse(&told, VT_KIND_LINEAR, 50 * MIB, 1);
	copy(&told);
	refuse(&told, VT_KIND_LINEAR, 50 * MIB, 1);
	told.story.now += 2000000000;
	refuse(&told, VT_KIND_LINEAR, 50 * MIB, 1);
	tell(&told, (struct vt_record){.kind = VT_REC_failure,
			    .tid = 2,
			    .failure = {.kind = VT_KIND_LINEAR,
				    .bytes = 50 * MIB,
				    .result = VT_RESULT_OUT_OF_MEMORY}});
	refuse(&told, VT_KIND_LINEAR, 50 * MIB, 1);
	assert_int_equal(told.watch.episodes.n_items, 6);
	assert_int_equal(told.watch.episodes.items[4].n_calls, 2);
	oom_list_make(&list, &told.watch.episodes);
	assert_int_equal(list.items[5].episode.tid, 2);
	assert_int_equal(list.items[5].number, 6);
	oom_list_release(&list);
	told_end(&told);
}

/* What is not for lack of memory is none. */
static void test_other_errors(void **state)
{
	struct told told = told_begin(TOTAL);

	(void)state;
	tell(&told, (struct vt_record){.kind = VT_REC_failure,
			    .failure = {.kind = VT_KIND_LINEAR, .result = 1}});
	tell(&told, (struct vt_record){.kind = VT_REC_reserve, .reserve = {.result = 1}});
	tell(&told, (struct vt_record){.kind = VT_REC_context, .context = {.result = 100}});
	assert_int_equal(told.watch.episodes.n_items, 0);
	told_end(&told);
}

static void test_many(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		refuse(&told, VT_KIND_LINEAR, (i + 1) * MIB, i);
		say_free(&told, 0, TOTAL);
	}
	oom_list_make(&list, &told.watch.episodes);
	assert_int_equal(list.n_items, EPISODES_MAX);
	assert_int_equal(list.n_left_out, 100 - EPISODES_MAX);
	assert_int_equal(list.items[EPISODES_MAX - 2].episode.bytes, (EPISODES_MAX - 1) * MIB);
	/* The last one may be what ended the program. */
	assert_int_equal(list.items[EPISODES_MAX - 1].episode.bytes, 100 * MIB);
	assert_int_equal(list.items[EPISODES_MAX - 1].episode.n_events, EPISODES_N_EVENTS);
	oom_list_release(&list);
	told_end(&told);
}

/* --- Classes --- */

static void check_class(struct told *told, enum oom_class class, struct oom_list *list)
{
	struct oom *oom = judge(told, list);

	assert_string_equal(oom_class_name(oom->class), oom_class_name(class));
}

static void test_impossible(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	refuse(&told, VT_KIND_LINEAR, TOTAL + 1, 2);
	say_free(&told, 10 * MIB, TOTAL);
	check_class(&told, OOM_IMPOSSIBLE, &list);
	assert_int_equal(list.items[0].n_remedies, 0);
	oom_list_release(&list);
	told_end(&told);
}

static void test_address_space(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		tell(&told, (struct vt_record){.kind = VT_REC_reserve,
				    .reserve = {.address = (i + 1) << 40,
					    .bytes = 2 * GIB,
					    .stack_id = 5}});
	tell(&told, (struct vt_record){
			    .kind = VT_REC_map, .map = {.address = 1ull << 40, .bytes = PAGE}});
	tell(&told, (struct vt_record){.kind = VT_REC_reserve,
			    .reserve = {.bytes = 2 * GIB,
				    .result = VT_RESULT_OUT_OF_MEMORY,
				    .stack_id = 6}});
	say_free(&told, 200 * MIB, TOTAL);
	check_class(&told, OOM_ADDRESS_SPACE, &list);
	assert_int_equal(list.items[0].episode.stack_id, 6);
	assert_int_equal(list.items[0].reserved_address_bytes, 6 * GIB);
	assert_int_equal(remedy(&list.items[0], OOM_RELEASE_ADDRESSES), 6 * GIB - PAGE);
	assert_int_equal(list.items[0].holders.n_rows, 1);
	assert_int_equal(list.items[0].holders.rows[0].stack_id, 5);
	assert_int_equal(list.items[0].holders.rows[0].count, 3);
	assert_int_equal(list.items[0].tracked_bytes, 0);
	oom_list_release(&list);
	told_end(&told);
}

static void take_of_pool(struct told *told, uint64_t pool, uint64_t address, uint64_t bytes)
{
	tell(told, (struct vt_record){.kind = VT_REC_alloc,
			   .alloc = {.kind = VT_KIND_POOL,
				   .address = address,
				   .bytes = bytes,
				   .pool = pool,
				   .stack_id = 8}});
}

static void refuse_of_pool(struct told *told, uint64_t pool, uint64_t bytes)
{
	tell(told, (struct vt_record){.kind = VT_REC_failure,
			   .failure = {.kind = VT_KIND_POOL,
				   .bytes = bytes,
				   .pool = pool,
				   .stack_id = 9,
				   .result = VT_RESULT_OUT_OF_MEMORY}});
}

/* A pool of at most 64 MiB, with 48 live and the device nearly empty. */
static void test_limit(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	do_pool(&told, VT_POOL_CREATE, 0xa0, 64 * MIB);
	take_of_pool(&told, 0xa0, GIB, 48 * MIB);
	refuse_of_pool(&told, 0xa0, 32 * MIB);
	say_pool(&told, 0xa0, 64 * MIB, 48 * MIB);
	say_free(&told, 150 * MIB, TOTAL);
	check_class(&told, OOM_LIMIT, &list);
	assert_int_equal(list.items[0].limit_bytes, 64 * MIB);
	assert_int_equal(remedy(&list.items[0], OOM_RAISE_LIMIT), 16 * MIB);
	oom_list_release(&list);
	told_end(&told);
}

/* The same pool, but what was freed on a stream is not there yet. */
static void test_pending_under_limit(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	do_pool(&told, VT_POOL_CREATE, 0xa0, 64 * MIB);
	take_of_pool(&told, 0xa0, GIB, 48 * MIB);
	take_of_pool(&told, 0xa0, 2 * GIB, 16 * MIB);
	tell(&told, (struct vt_record){.kind = VT_REC_free,
			    .free = {.kind = VT_KIND_POOL, .address = GIB, .stream = 0x51}});
	refuse_of_pool(&told, 0xa0, 32 * MIB);
	say_pool(&told, 0xa0, 64 * MIB, 64 * MIB);
	say_free(&told, 150 * MIB, TOTAL);
	check_class(&told, OOM_PENDING, &list);
	assert_int_equal(remedy(&list.items[0], OOM_WAIT_FOR_STREAMS), 48 * MIB);
	oom_list_release(&list);
	told_end(&told);
}

static void say_others(struct told *told, uint64_t bytes, uint64_t n)
{
	tell(told, (struct vt_record){.kind = VT_REC_others,
			   .others = {.used_bytes = bytes,
				   .at_refusal = 1,
				   .n_processes = n,
				   .largest_pid = 77,
				   .largest_bytes = bytes}});
}

static void test_other_process(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	take(&told, VT_KIND_LINEAR, GIB, 100 * MIB, 1);
	refuse(&told, VT_KIND_LINEAR, 100 * MIB, 2);
	say_others(&told, 90 * MIB, 1);
	say_free(&told, 50 * MIB, TOTAL);
	check_class(&told, OOM_OTHER_PROCESS, &list);
	assert_true(list.items[0].listed.seen);
	assert_int_equal(list.items[0].listed.largest_pid, 77);
	assert_int_equal(remedy(&list.items[0], OOM_END_OTHERS), 90 * MIB);
	assert_int_equal(remedy(&list.items[0], OOM_FREE_SITE), 100 * MIB);
	oom_list_release(&list);
	told_end(&told);
}

/* They hold less than is missing: not their fault. Nor is it where only a guess says that somebody
 * else holds something: that may be the context. */
static void test_other_process_is_innocent(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	take(&told, VT_KIND_LINEAR, GIB, 180 * MIB, 1);
	refuse(&told, VT_KIND_LINEAR, 100 * MIB, 2);
	say_others(&told, 30 * MIB, 1);
	say_free(&told, 40 * MIB, TOTAL);
	check_class(&told, OOM_EXHAUSTED, &list);
	assert_int_equal(remedy(&list.items[0], OOM_END_OTHERS), 0);
	oom_list_release(&list);
	told_end(&told);

	told = told_begin(TOTAL);
	take(&told, VT_KIND_LINEAR, GIB, 100 * MIB, 1);
	refuse(&told, VT_KIND_LINEAR, 100 * MIB, 2);
	say_free(&told, 50 * MIB, TOTAL);
	check_class(&told, OOM_EXHAUSTED, &list);
	assert_false(list.items[0].others_known);
	assert_int_equal(list.items[0].others_bytes, 106 * MIB);
	oom_list_release(&list);
	told_end(&told);
}

/* A listing of long ago says nothing about now. */
static void test_old_listing(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	refuse(&told, VT_KIND_LINEAR, TOTAL, 2);
	say_others(&told, 100 * MIB, 1);
	say_free(&told, 156 * MIB, TOTAL);
	told.story.now += 5000000000;
	take(&told, VT_KIND_LINEAR, GIB, 200 * MIB, 1);
	refuse(&told, VT_KIND_LINEAR, 100 * MIB, 2);
	say_free(&told, 56 * MIB, TOTAL);
	check_class(&told, OOM_EXHAUSTED, &list);
	assert_false(list.items[1].listed.seen);
	oom_list_release(&list);
	told_end(&told);
}

/* A pool keeps what it does not use; somebody else asks the driver. */
static void test_other_allocator(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	do_pool(&told, VT_POOL_CREATE, 0xa0, 0);
	do_pool(&told, VT_POOL_THRESHOLD, 0xa0, UINT64_MAX);
	take_of_pool(&told, 0xa0, GIB, 4 * MIB);
	refuse(&told, VT_KIND_LINEAR, 100 * MIB, 2);
	say_pool(&told, 0xa0, 224 * MIB, 4 * MIB);
	say_free(&told, 32 * MIB, TOTAL);
	check_class(&told, OOM_OTHER_ALLOCATOR, &list);
	assert_int_equal(remedy(&list.items[0], OOM_TRIM_POOL), 220 * MIB);
	assert_int_equal(list.items[0].remedies[0].pool, 0xa0);
	oom_list_release(&list);

	/* The pool itself is asked: its own idle bytes are in pieces. */
	refuse_of_pool(&told, 0xa0, 100 * MIB);
	say_pool(&told, 0xa0, 224 * MIB, 4 * MIB);
	say_free(&told, 32 * MIB, TOTAL);
	check_class(&told, OOM_FRAGMENTATION, &list);
	assert_int_equal(remedy(&list.items[1], OOM_TRIM_POOL), 0);
	oom_list_release(&list);
	told_end(&told);
}

static void test_pending(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	take_of_pool(&told, 0, GIB, 100 * MIB);
	take_of_pool(&told, 0, 2 * GIB, 120 * MIB);
	tell(&told, (struct vt_record){.kind = VT_REC_free,
			    .free = {.kind = VT_KIND_POOL, .address = GIB, .stream = 0x51}});
	refuse_of_pool(&told, 0, 100 * MIB);
	say_pool(&told, 0, 220 * MIB, 220 * MIB);
	say_free(&told, 36 * MIB, TOTAL);
	check_class(&told, OOM_PENDING, &list);
	assert_int_equal(remedy(&list.items[0], OOM_WAIT_FOR_STREAMS), 100 * MIB);
	oom_list_release(&list);
	told_end(&told);
}

/* Half of every page is free and no page is. */
static void test_pinned_pages(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	for (uint64_t i = 0; i < 240; i++)
		take(&told, VT_KIND_LINEAR, GIB + i * MIB, MIB, 4);
	for (uint64_t i = 0; i < 240; i += 2)
		give(&told, GIB + i * MIB);
	refuse(&told, VT_KIND_LINEAR, 100 * MIB, 2);
	say_free(&told, 16 * MIB, TOTAL);
	check_class(&told, OOM_FRAGMENTATION, &list);
	assert_int_equal(remedy(&list.items[0], OOM_MOVE_PINNING), 120 * MIB);
	assert_int_equal(list.items[0].remedies[0].stack_id, 4);
	oom_list_release(&list);
	told_end(&told);
}

/* Gaps of addresses between large blocks are no fragmentation: the device is simply full. */
static void test_exhausted(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;
	struct oom *oom;

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		take(&told, VT_KIND_LINEAR, GIB + i * GIB, 20 * MIB, i % 2 ? 4 : 5);
	take(&told, VT_KIND_LINEAR, 100 * GIB, 30 * MIB, 5);
	refuse(&told, VT_KIND_LINEAR, 100 * MIB, 2);
	say_free(&told, 26 * MIB, TOTAL);
	oom = judge(&told, &list);
	assert_int_equal(oom->class, OOM_EXHAUSTED);
	assert_int_equal(oom->free_bytes, 26 * MIB);
	assert_true(oom->free_measured);
	assert_int_equal(oom->total_bytes, TOTAL);
	assert_int_equal(oom->tracked_bytes, 230 * MIB);
	assert_int_equal(oom->holders.n_rows, 2);
	assert_int_equal(oom->holders.rows[0].stack_id, 5);
	assert_int_equal(oom->holders.rows[0].bytes, 130 * MIB);
	/* The smallest that would do comes first. */
	assert_int_equal(oom->remedies[0].stack_id, 4);
	assert_int_equal(oom->remedies[0].bytes, 100 * MIB);
	assert_int_equal(oom->remedies[1].stack_id, 5);
	oom_list_release(&list);
	told_end(&told);
}

/* The driver refuses with enough free, or with nobody who holds what is missing: that is said, and
 * nothing is guessed. */
static void test_unexplained(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	take(&told, VT_KIND_LINEAR, GIB, 20 * MIB, 1);
	refuse(&told, VT_KIND_LINEAR, 100 * MIB, 2);
	say_free(&told, 200 * MIB, TOTAL);
	check_class(&told, OOM_UNEXPLAINED, &list);
	assert_int_equal(list.items[0].n_remedies, 0);
	oom_list_release(&list);

	/* 100 MiB have gone since, and no call took them. */
	refuse(&told, VT_KIND_LINEAR, 150 * MIB, 2);
	say_free(&told, 100 * MIB, TOTAL);
	check_class(&told, OOM_UNEXPLAINED, &list);
	assert_int_equal(list.items[1].account.unexplained_bytes, 100 * MIB);
	oom_list_release(&list);
	told_end(&told);
}

static void test_host(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	refuse(&told, VT_KIND_PINNED, 100 * GIB, 2);
	say_free(&told, 0, TOTAL);
	check_class(&told, OOM_UNEXPLAINED, &list);
	assert_int_equal(list.items[0].episode.want, EPISODE_HOST);
	assert_int_equal(list.items[0].episode.device, MODEL_DEVICE_HOST);
	oom_list_release(&list);
	refuse(&told, VT_KIND_MANAGED, 100 * GIB, 2);
	say_free(&told, 0, TOTAL);
	check_class(&told, OOM_UNEXPLAINED, &list);
	oom_list_release(&list);
	told_end(&told);
}

/* A library's start fails, and says only that it is not initialised: its code found no memory. The
 * call does not tell how much it wanted, but it was more than there was. */
static void test_size_not_told(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	do_pool(&told, VT_POOL_CREATE, 0xa0, 0);
	refuse(&told, VT_KIND_NONE, 0, 2);
	say_pool(&told, 0xa0, 200 * MIB, 0);
	say_free(&told, 0, TOTAL);
	check_class(&told, OOM_OTHER_ALLOCATOR, &list);
	assert_int_equal(list.items[0].episode.want, EPISODE_CODE);
	assert_int_equal(list.items[0].need_bytes, PAGE);
	oom_list_release(&list);
	told_end(&told);
}

/* Where the driver was not asked at the refusal, what it said last counts, less what was taken
 * since. */
static void test_worked_out(void **state)
{
	struct told told = told_begin(TOTAL);
	struct oom_list list;

	(void)state;
	say_free(&told, 200 * MIB, TOTAL);
	take(&told, VT_KIND_LINEAR, GIB, 150 * MIB, 1);
	refuse(&told, VT_KIND_LINEAR, 100 * MIB, 2);
	check_class(&told, OOM_EXHAUSTED, &list);
	assert_false(list.items[0].free_measured);
	assert_int_equal(list.items[0].free_bytes, 50 * MIB);
	oom_list_release(&list);
	told_end(&told);
	/* Never asked: nothing is known. */
	told = told_begin(TOTAL);
	take(&told, VT_KIND_LINEAR, GIB, 150 * MIB, 1);
	refuse(&told, VT_KIND_LINEAR, 110 * MIB, 2);
	check_class(&told, OOM_UNEXPLAINED, &list);
	assert_false(list.items[0].free_known);
	oom_list_release(&list);
	told_end(&told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_request),
		cmocka_unit_test(test_page_by_page),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_other_errors),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_impossible),
		cmocka_unit_test(test_address_space),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_pending_under_limit),
		cmocka_unit_test(test_other_process),
		cmocka_unit_test(test_other_process_is_innocent),
		cmocka_unit_test(test_old_listing),
		cmocka_unit_test(test_other_allocator),
		cmocka_unit_test(test_pending),
		cmocka_unit_test(test_pinned_pages),
		cmocka_unit_test(test_exhausted),
		cmocka_unit_test(test_unexplained),
		cmocka_unit_test(test_host),
		cmocka_unit_test(test_size_not_told),
		cmocka_unit_test(test_worked_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
