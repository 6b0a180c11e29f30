/* tools/analysis: verdicts about what stays, from stories of minutes and hours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/untracked.h"
#include "unit/leaks.h"

static void check_verdict(struct told *told, uint64_t stack_id, enum leak_verdict verdict)
{
	struct judged judged = leaks_of(told);

	assert_int_equal(leak_of(&judged, stack_id)->verdict, verdict);
	judged_end(&judged);
}

/* One block of a hundred requests stays, among caches: it is found within two minutes. */
static void test_service(void **state)
{
	struct told told = service_begin();
	struct judged judged;
	const struct leak *leak;

	(void)state;
	take_new(&told, 32 * MIB, OTHER);
	for (unsigned int i = 0; i < 2400; i++) {
		if (i < 40)
			take_new(&told, 4 * MIB, CACHE);
		if (i % 100 == 50)
			take_new(&told, MIB, LEAK);
		request(&told, 50 * MS);
	}
	judged = leaks_of(&told);
	leak = &judged.leaks.items[0];
	assert_int_equal(leak->row.stack_id, LEAK);
	assert_int_equal(leak->verdict, LEAK_GROWING);
	assert_true(leak_is_leak(leak));
	/* 1 MiB in 5 s. */
	assert_in_range(leak->rate_bytes_per_s, MIB / 5 * 8 / 10, MIB / 5 * 12 / 10);
	assert_int_equal(leak->n_births, 24);
	assert_int_equal(leak->n_deaths, 0);
	assert_int_equal(leak_of(&judged, CACHE)->verdict, LEAK_ONE_TIME);
	assert_int_equal(leak_of(&judged, OTHER)->verdict, LEAK_ONE_TIME);
	for (size_t i = 1; i < judged.leaks.n_items; i++)
		assert_false(leak_is_leak(&judged.leaks.items[i]));
	judged_end(&judged);
	told_end(&told);
}

/* Three days, with nights without a request: rest does not hide growth, and memory is bounded. */
static void test_nights(void **state)
{
	struct told told = service_begin();

	(void)state;
	for (unsigned int day = 0; day < 3; day++) {
		for (unsigned int i = 0; i < 2000; i++) {
			if (i % 50 == 0)
				take_new(&told, MIB, LEAK);
			request(&told, 20 * SECOND);
		}
		told.story.now += 12 * 60 * MINUTE;
	}
	check_verdict(&told, LEAK, LEAK_GROWING);
	assert_true(told.watch.history.sites[0].by_time.n_points <= CURVE_N_COLUMNS);
	told_end(&told);
}

/* A process that still runs may be filling its caches at first. */
static void test_running(void **state)
{
	struct told told = service_begin();

	(void)state;
	told.watch.history.is_running = true;
	for (unsigned int i = 0; i < 1200; i++) {
		if (i == 400)
			check_verdict(&told, LEAK, LEAK_NONE);
		take_new(&told, MIB, LEAK);
		request(&told, 50 * MS);
	}
	check_verdict(&told, LEAK, LEAK_GROWING);
	told_end(&told);
}

/* A model is loaded for a minute, and then used for a second, or not at all yet. */
static void test_loading(void **state)
{
	struct told told = service_begin();

	(void)state;
	for (unsigned int i = 0; i < 300; i++) {
		take_new(&told, 16 * MIB, LEAK);
		told.story.now += 150 * MS;
	}
	check_verdict(&told, LEAK, LEAK_NONE);
	for (unsigned int i = 0; i < 20; i++)
		request(&told, 50 * MS);
	check_verdict(&told, LEAK, LEAK_NONE);
	/* It is used for as long again. */
	for (unsigned int i = 0; i < 1000; i++)
		request(&told, 50 * MS);
	check_verdict(&told, LEAK, LEAK_SATURATING);
	told_end(&told);
}

/* Nothing is ever freed, for minutes. */
static void test_no_work(void **state)
{
	struct told told = service_begin();

	(void)state;
	for (unsigned int i = 0; i < 300; i++) {
		take_new(&told, 16 * MIB, LEAK);
		told.story.now += SECOND;
	}
	check_verdict(&told, LEAK, LEAK_GROWING);
	told_end(&told);
}

/* A backlog: more is in use, and all of it is young. */
static void test_backlog(void **state)
{
	uint64_t addresses[4096];
	struct told told = service_begin();
	unsigned int first = 0, last = 0;

	(void)state;
	for (unsigned int i = 0; i < 3000; i++) {
		addresses[last++] = take_new(&told, MIB, LEAK);
		while (last - first > 10 + i / 20)
			give(&told, addresses[first++]);
		request(&told, 50 * MS);
	}
	check_verdict(&told, LEAK, LEAK_NONE);
	told_end(&told);
}

/* In use when the recording ends. */
static void test_in_use(void **state)
{
	struct told told = service_begin();
	struct judged judged;

	(void)state;
	for (unsigned int i = 0; i < 1000; i++)
		request(&told, 50 * MS);
	take_new(&told, 8 * MIB, WORK);
	judged = leaks_of(&told);
	assert_int_equal(leak_of(&judged, WORK)->verdict, LEAK_NONE);
	assert_true(leak_of(&judged, WORK)->in_use);
	assert_false(leak_is_leak(leak_of(&judged, WORK)));
	judged_end(&judged);
	told_end(&told);
}

/* Blocks of an allocator leak inside a segment, which does not grow. */
static void test_blocks(void **state)
{
	struct told told = service_begin();
	uint64_t segment = take_new(&told, GIB, OTHER);
	struct judged judged;

	(void)state;
	for (unsigned int i = 0; i < 1000; i++) {
		struct vt_record record = {.kind = VT_REC_block_alloc,
			.block_alloc = {.allocator_id = 1,
				.address = segment + i * 64 * KIB,
				.bytes = 64 * KIB,
				.stack_id = LEAK}};

		tell(&told, record);
		for (unsigned int k = 0; k < 4; k++) {
			record.block_alloc.address = segment + GIB - (k + 1) * MIB;
			record.block_alloc.stack_id = WORK;
			tell(&told, record);
		}
		told.story.now += 50 * MS;
		for (unsigned int k = 0; k < 4; k++)
			tell(&told, (struct vt_record){.kind = VT_REC_block_free,
					    .block_free = {.allocator_id = 1,
						    .address = segment + GIB - (k + 1) * MIB}});
	}
	judged = leaks_of(&told);
	assert_int_equal(judged.leaks.n_items, 2);
	assert_int_equal(judged.leaks.items[0].row.stack_id, LEAK);
	assert_int_equal(judged.leaks.items[0].row.level, SITE_BLOCK);
	assert_int_equal(judged.leaks.items[0].verdict, LEAK_GROWING);
	assert_int_equal(judged.leaks.items[1].row.level, SITE_IDLE);
	assert_int_equal(judged.leaks.items[1].verdict, LEAK_CACHE);
	judged_end(&judged);
	told_end(&told);
}

/* Threads are known to have ended when their lane is given on. */
static void test_threads(void **state)
{
	struct told told = service_begin();
	struct judged judged;

	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		tell(&told, (struct vt_record){.kind = VT_REC_alloc,
				    .tid = 100 + i,
				    .lane = 7,
				    .alloc = {.kind = VT_KIND_LINEAR,
					    .context_id = 1,
					    .address = (i + 1) * PAGE,
					    .bytes = MIB,
					    .stack_id = LEAK}});
		for (unsigned int k = 0; k < 4 * 20; k++)
			request(&told, 50 * MS);
	}
	judged = leaks_of(&told);
	assert_int_equal(judged.leaks.items[0].verdict, LEAK_PER_THREAD);
	assert_int_equal(judged.leaks.items[0].n_ended_threads, 19);
	assert_true(judged.leaks.items[0].grows);
	assert_false(history_thread_ended(&told.watch.history, 119));
	assert_false(history_thread_ended(&told.watch.history, 1));
	judged_end(&judged);
	told_end(&told);
}

/* What succeeds frees its memory; what fails does not. A thread's failure is not another's. */
static void test_failures(void **state)
{
	struct told told = service_begin();
	struct judged judged;

	(void)state;
	for (unsigned int i = 0; i < 100; i++) {
		uint64_t address = take_new(&told, MIB, LEAK);
		bool fails = i % 10 == 3;

		if (i == 50)
			tell(&told, (struct vt_record){.kind = VT_REC_alloc,
					    .tid = 2,
					    .lane = 1,
					    .alloc = {.kind = VT_KIND_LINEAR,
						    .address = PAGE,
						    .bytes = MIB,
						    .stack_id = OTHER}});
		told.story.now += 10 * MS;
		if (fails)
			refuse(&told, VT_KIND_LINEAR, 300 * GIB, OTHER);
		else
			give(&told, address);
		request(&told, 50 * MS);
	}
	judged = leaks_of(&told);
	assert_int_equal(leak_of(&judged, LEAK)->verdict, LEAK_RETAINED_BY_FAILURE);
	assert_int_equal(leak_of(&judged, LEAK)->row.count, 10);
	assert_int_not_equal(leak_of(&judged, OTHER)->verdict, LEAK_RETAINED_BY_FAILURE);
	judged_end(&judged);
	told_end(&told);
}

/* Segments for a graph whose capture failed are kept for nobody. */
static void test_failed_capture(void **state)
{
	struct told told = service_begin();
	uint64_t segments[2];
	struct judged judged;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		segments[i] = take_new(&told, 20 * MIB, OTHER);
		tell(&told, (struct vt_record){.kind = VT_REC_capture, .capture = {.begin = 1}});
		tell(&told, (struct vt_record){.kind = VT_REC_block_alloc,
				    .block_alloc = {.allocator_id = 1,
					    .address = segments[i],
					    .bytes = MIB,
					    .stack_id = LEAK}});
		tell(&told, (struct vt_record){.kind = VT_REC_block_stream,
				    .block_stream = {.allocator_id = 1,
					    .address = segments[i],
					    .flags = VT_STREAM_CAPTURED}});
		tell(&told, (struct vt_record){
				    .kind = VT_REC_capture, .capture = {.result = i ? 901 : 0}});
		tell(&told, (struct vt_record){.kind = VT_REC_block_free,
				    .block_free = {.allocator_id = 1, .address = segments[i]}});
	}
	judged = leaks_of(&told);
	assert_int_equal(judged.leaks.n_items, 2);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(judged.leaks.items[i].row.bytes, 20 * MIB);
	assert_int_not_equal(judged.leaks.items[0].verdict, judged.leaks.items[1].verdict);
	assert_true(judged.leaks.items[0].verdict == LEAK_RETAINED_BY_FAILURE ||
		    judged.leaks.items[1].verdict == LEAK_RETAINED_BY_FAILURE);
	judged_end(&judged);
	told_end(&told);
}

/* The context takes along what leaked: the growth before counts. What came and went with contexts
 * does not. */
static void test_teardown(void **state)
{
	struct told told = service_begin();

	(void)state;
	for (unsigned int i = 0; i < 1000; i++) {
		take_new(&told, MIB, LEAK);
		request(&told, 50 * MS);
	}
	take_new(&told, MIB, OTHER);
	tell(&told, (struct vt_record){.kind = VT_REC_context,
			    .context = {.action = VT_CONTEXT_DESTROY, .context_id = 1}});
	check_verdict(&told, LEAK, LEAK_GROWING);
	check_verdict(&told, OTHER, LEAK_FREED_AT_TEARDOWN);
	told_end(&told);
	told = service_begin();
	for (unsigned int i = 0; i < 1000; i++) {
		take_new(&told, MIB, LEAK);
		request(&told, 50 * MS);
		if (i % 10 == 9)
			tell(&told, (struct vt_record){.kind = VT_REC_context,
					    .context = {.action = VT_CONTEXT_DESTROY,
						    .context_id = 1}});
	}
	check_verdict(&told, LEAK, LEAK_FREED_AT_TEARDOWN);
	told_end(&told);
}

static void say_mark(struct told *told, const char *name)
{
	tell(told, (struct vt_record){.kind = VT_REC_mark, .mark = {.name = {name, strlen(name)}}});
}

/* Few steps, and each long: marks tell what time alone does not. */
static void test_marks(void **state)
{
	struct told told = service_begin();
	struct judged judged;

	(void)state;
	for (unsigned int step = 0; step < 200; step++) {
		char name[32];

		snprintf(name, sizeof(name), "step %u", step);
		if (step == 0)
			say_mark(&told, "model loaded");
		say_mark(&told, name);
		take_new(&told, 3 * MIB, LEAK);
		/* The pace changes: by time alone the growth slows down. */
		told.story.now += (step < 100 ? 10 : 100) * MS;
		give(&told, take_new(&told, MIB, OTHER));
	}
	take_new(&told, MIB, OTHER);
	judged = leaks_of(&told);
	assert_int_equal(leak_of(&judged, LEAK)->verdict, LEAK_GROWING);
	assert_int_equal(leak_of(&judged, LEAK)->bytes_per_mark, 3 * MIB);
	assert_string_equal(leak_of(&judged, LEAK)->mark, "step *");
	assert_int_not_equal(leak_of(&judged, OTHER)->verdict, LEAK_GROWING);
	judged_end(&judged);
	told_end(&told);
}

static void say_phase(struct told *told, uint64_t action, const char *name)
{
	tell(told, (struct vt_record){.kind = VT_REC_phase,
			   .phase = {.action = action,
				   .told = VT_TOLD_API,
				   .name = {name, strlen(name)}}});
}

/* Without marks the outermost phases are steps. */
static void test_phases(void **state)
{
	struct told told = service_begin();
	struct judged judged;

	(void)state;
	for (unsigned int step = 0; step < 100; step++) {
		say_phase(&told, VT_PHASE_BEGIN, "request");
		take_new(&told, MIB, LEAK);
		for (unsigned int layer = 0; layer < 5; layer++) {
			say_phase(&told, VT_PHASE_BEGIN, "layer");
			told.story.now += MS;
			say_phase(&told, VT_PHASE_END, "layer");
		}
		say_phase(&told, VT_PHASE_END, "request");
	}
	judged = leaks_of(&told);
	assert_int_equal(leak_of(&judged, LEAK)->verdict, LEAK_GROWING);
	assert_int_equal(leak_of(&judged, LEAK)->bytes_per_mark, MIB);
	assert_string_equal(leak_of(&judged, LEAK)->mark, "request");
	judged_end(&judged);
	told_end(&told);
}

static void say_untracked(struct told *told, uint64_t cause, int64_t bytes)
{
	tell(told, (struct vt_record){.kind = VT_REC_untracked,
			   .untracked = {.cause = cause, .taken_bytes = bytes, .stack_id = LEAK}});
}

static void say_graph(struct told *told, uint64_t action, uint64_t exec)
{
	tell(told, (struct vt_record){.kind = VT_REC_graph,
			   .graph = {.action = action, .exec = exec, .stack_id = LEAK}});
}

static void say_objects(struct told *told, uint64_t object, uint64_t created, uint64_t destroyed)
{
	tell(told, (struct vt_record){.kind = VT_REC_objects,
			   .objects = {.time_ns = told->story.now,
				   .sort = object,
				   .created = created,
				   .destroyed = destroyed}});
}

/* Memory that no allocation explains: by measured causes, and by the counts of what was made. */
static void test_untracked(void **state)
{
	struct told told = service_begin();
	struct untracked_list list = {0};
	uint64_t used = GIB;

	(void)state;
	for (unsigned int i = 0; i < 400; i++) {
		say_graph(&told, VT_GRAPH_INSTANTIATE, i);
		if (i % 10 == 0)
			say_graph(&told, VT_GRAPH_EXEC_DESTROY, i);
		if (i % 4 == 0) {
			say_untracked(&told, VT_CAUSE_GRAPH_EXEC, 2 * MIB);
			used += 2 * MIB;
		}
		say_objects(&told, VT_OBJECT_GRAPH_EXEC, i + 1, i / 10);
		say_objects(&told, VT_OBJECT_STREAM, i + 32, i);
		say_objects(&told, VT_OBJECT_STREAM, i, i); /* too late */
		say_objects(&told, VT_OBJECT_EVENT, i < 40 ? i : 40, 0);
		request(&told, 100 * MS);
		say_free(&told, 256 * GIB - used, 256 * GIB);
	}
	untracked_list_make(&list, &told.watch.history);
	assert_int_equal(list.n_items, 1);
	assert_in_range(list.items[0].growth_bytes, 140 * MIB, 180 * MIB);
	assert_in_range(list.items[0].rate_bytes_per_s, 4 * MIB, 6 * MIB);
	assert_int_equal(list.items[0].cause_bytes[0], 0);
	assert_int_equal(
		list.items[0].cause_bytes[VT_CAUSE_GRAPH_EXEC], list.items[0].growth_bytes);
	assert_int_equal(list.items[0].n_execs_made, 400);
	assert_int_equal(list.items[0].n_execs_destroyed, 40);
	for (unsigned int object = 0; object < VT_N_OBJECTS; object++)
		assert_int_equal(
			list.items[0].counts[object].grows, object == VT_OBJECT_GRAPH_EXEC);
	assert_in_range(list.items[0].counts[VT_OBJECT_GRAPH_EXEC].n_more, 260, 360);
	assert_int_equal(list.items[0].counts[VT_OBJECT_STREAM].n_created, 399 + 32);
	assert_int_equal(list.items[0].counts[VT_OBJECT_STREAM].n_destroyed, 399);
	assert_int_equal(list.items[0].counts[VT_OBJECT_STREAM].n_more, 0);
	assert_int_equal(list.items[0].n_makers, 1);
	assert_int_equal(list.items[0].makers[0].stack_id, LEAK);
	assert_int_equal(list.items[0].makers[0].n_made, 400);
	untracked_list_release(&list);
	told_end(&told);
	/* Once, and no more. */
	told = service_begin();
	used = GIB;
	for (unsigned int i = 0; i < 400; i++) {
		if (i < 40) {
			say_untracked(&told, VT_CAUSE_MODULES, 2 * MIB);
			used += 2 * MIB;
		}
		request(&told, 100 * MS);
		say_free(&told, 256 * GIB - used, 256 * GIB);
	}
	untracked_list_make(&list, &told.watch.history);
	assert_int_equal(list.n_items, 0);
	untracked_list_release(&list);
	told_end(&told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_service),
		cmocka_unit_test(test_nights),
		cmocka_unit_test(test_running),
		cmocka_unit_test(test_loading),
		cmocka_unit_test(test_no_work),
		cmocka_unit_test(test_backlog),
		cmocka_unit_test(test_in_use),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_failed_capture),
		cmocka_unit_test(test_teardown),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_untracked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
