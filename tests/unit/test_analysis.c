/* tools/analysis: traces written to a file, replayed, and looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/overview.h"
#include "analysis/timeline.h"
#include "unit/records.h"

#define PATH "analysis.vt"
#define MIB  (1024ull * 1024)
#define PAGE (2 * MIB)

static const struct vt_writer_options mapped = {0};

struct story {
	struct vt_writer writer;
	struct vt_lane *lane;
};

static void begin(struct story *story)
{
	trace_begin(&story->writer, PATH, mapped);
	story->lane = vt_writer_lane(&story->writer, 1, 0);
	assert_non_null(story->lane);
	for (unsigned int i = 0; i < 2; i++)
		vt_put_device(story->lane, &(struct vt_rec_device){.ordinal = i,
						   .total_bytes = 64 * MIB,
						   .page_bytes = PAGE,
						   .name = {"Test", 4},
						   .uuid = {"", 0}});
}

static void alloc(struct story *story, uint64_t time_ns, uint64_t kind, int device,
	uint64_t address, uint64_t bytes, uint64_t stack_id)
{
	vt_put_alloc(story->lane, &(struct vt_rec_alloc){.time_ns = time_ns,
					  .kind = kind,
					  .device = device,
					  .context_id = 1,
					  .address = address,
					  .bytes = bytes,
					  .stack_id = stack_id});
}

static void give_back(struct story *story, uint64_t time_ns, uint64_t address)
{
	vt_put_free(story->lane, &(struct vt_rec_free){.time_ns = time_ns, .address = address});
}

static struct replay *end(struct story *story)
{
	struct replay *replay;

	trace_end(&story->writer);
	assert_int_equal(replay_open(&replay, PATH, NULL, NULL), 0);
	return replay;
}

/* Device 0: up to 6 pages at 30, 2 at the end. Device 1: 1 page at 40, which stays. */
static struct replay *tell(void)
{
	struct story story;

	begin(&story);
	alloc(&story, 10, VT_KIND_LINEAR, 0, 0x10000000, 2 * PAGE, 11);
	alloc(&story, 20, VT_KIND_POOL, 0, 0x20000000, PAGE, 12);
	alloc(&story, 25, VT_KIND_MANAGED, 0, 0x70000000, 9 * PAGE, 15);
	alloc(&story, 30, VT_KIND_LINEAR, 0, 0x30000000, 3 * PAGE, 13);
	alloc(&story, 40, VT_KIND_LINEAR, 1, 0x40000000, PAGE, 14);
	give_back(&story, 50, 0x30000000);
	give_back(&story, 60, 0x20000000);
	alloc(&story, 70, VT_KIND_POOL, 0, 0x20000000, PAGE / 2, 12);
	give_back(&story, 90, 0x20000000);
	return end(&story);
}

static void test_peaks(void **state)
{
	struct replay *replay = tell();
	struct overview overview;

	(void)state;
	assert_int_equal(overview_make(&overview, replay, &(struct overview_request){0}), 0);
	assert_int_equal(overview.n_views, 2);
	assert_int_equal(overview.views[0].moment.device, 0);
	assert_int_equal(overview.views[0].time_ns, 30);
	/* Biggest first; managed memory is no part of it. */
	assert_int_equal(overview.views[0].sites.n_rows, 3);
	assert_int_equal(overview.views[0].sites.rows[0].stack_id, 13);
	assert_int_equal(overview.views[0].sites.rows[0].bytes, 3 * PAGE);
	assert_int_equal(overview.views[0].sites.rows[1].stack_id, 11);
	assert_int_equal(overview.views[0].sites.rows[2].stack_id, 12);
	assert_int_equal(overview.views[1].time_ns, 40);
	assert_int_equal(overview.views[1].sites.n_rows, 1);
	assert_int_equal(overview.views[1].sites.rows[0].stack_id, 14);
	/* At the end: managed 9 pages, linear 2 on device 0 and 1 on device 1. */
	assert_int_equal(overview.end.n_rows, 3);
	assert_int_equal(overview.end.rows[0].stack_id, 15);
	assert_int_equal(overview.end.rows[1].stack_id, 11);
	assert_int_equal(overview.end.rows[2].stack_id, 14);
	overview_release(&overview);
	replay_close(replay);
}

static void test_moments(void **state)
{
	const struct replay_moment moments[] = {{.at = REPLAY_AT_TIME, .time_ns = 45},
		{.at = REPLAY_AT_END}, {.at = REPLAY_AT_TIME, .time_ns = 50},
		{.at = REPLAY_AT_TIME, .time_ns = 5}};
	struct replay *replay = tell();
	struct overview overview;

	(void)state;
	assert_int_equal(overview_make(&overview, replay,
				 &(struct overview_request){.moments = moments, .n = 4}),
		0);
	assert_int_equal(overview.views[0].devices[0].tracked_bytes, 6 * PAGE);
	assert_int_equal(overview.views[0].devices[1].tracked_bytes, PAGE);
	assert_int_equal(overview.views[0].sites.n_rows, 5);
	assert_int_equal(overview.views[1].devices[0].tracked_bytes, 2 * PAGE);
	/* What happens at 50 has happened at 50. */
	assert_int_equal(overview.views[2].devices[0].tracked_bytes, 3 * PAGE);
	assert_int_equal(overview.views[3].sites.n_rows, 0);
	overview_end_from_views(&overview);
	assert_int_equal(overview.end.n_rows, 5 + 3 + 4);
	overview_release(&overview);
	replay_close(replay);
}

/* Stacks 11 and 12 are of one owner, 13 and 14 of another, and the rest is not known. */
static const char *label(void *user, const struct model *model, uint64_t stack_id)
{
	(void)user;
	(void)model;
	return stack_id <= 12 ? "one" : stack_id <= 14 ? "other" : NULL;
}

static void check_owner(const struct overview *overview, size_t i, int device, const char *owner,
	uint64_t peak_bytes, uint64_t live_bytes, uint64_t n_frees)
{
	const struct owner_row *row = overview->owners.rows[i];

	assert_int_equal(row->device, device);
	assert_string_equal(row->owner ? row->owner : "unknown", owner);
	assert_int_equal(row->totals.peak_live_bytes, peak_bytes);
	assert_int_equal(row->totals.live_bytes, live_bytes);
	assert_int_equal(row->totals.n_frees, n_frees);
}

/* Peaks of owners need not fall together with that of the device, nor lie before it. */
static void test_owners(void **state)
{
	const struct owner_source source = {label, NULL};
	const struct replay_moment start = {.at = REPLAY_AT_TIME, .time_ns = 15};
	struct replay *replay;
	struct overview overview;
	struct story story;

	(void)state;
	begin(&story);
	alloc(&story, 10, VT_KIND_LINEAR, 0, 0x10000000, 2 * PAGE, 11);
	alloc(&story, 20, VT_KIND_POOL, 0, 0x20000000, PAGE, 12);
	alloc(&story, 25, VT_KIND_MANAGED, 0, 0x70000000, 9 * PAGE, 11);
	alloc(&story, 26, VT_KIND_PINNED, -1, 0x80000000, 9 * PAGE, 11);
	alloc(&story, 30, VT_KIND_LINEAR, 0, 0x30000000, 7 * PAGE, 13);
	alloc(&story, 40, VT_KIND_LINEAR, 1, 0x40000000, PAGE, 14);
	give_back(&story, 50, 0x30000000);
	alloc(&story, 60, VT_KIND_LINEAR, 0, 0x30000000, 2 * PAGE, 12);
	alloc(&story, 70, VT_KIND_LINEAR, 0, 0x50000000, 4 * PAGE, 15);
	give_back(&story, 80, 0x20000000);
	replay = end(&story);
	assert_int_equal(
		overview_make(&overview, replay,
			&(struct overview_request){.moments = &start, .n = 1, .owners = &source}),
		0);
	assert_int_equal(overview.views[0].devices[0].tracked_bytes, 2 * PAGE);
	assert_true(overview.owners_known);
	assert_int_equal(overview.owners.n_rows, 4);
	check_owner(&overview, 0, 0, "other", 7 * PAGE, 0, 1);
	check_owner(&overview, 1, 0, "one", 5 * PAGE, 4 * PAGE, 1);
	check_owner(&overview, 2, 0, "unknown", 4 * PAGE, 4 * PAGE, 0);
	check_owner(&overview, 3, 1, "other", PAGE, PAGE, 0);
	assert_int_equal(overview.owners.rows[1]->totals.n_allocs, 3);
	overview_release(&overview);
	assert_int_equal(overview_make(&overview, replay, &(struct overview_request){0}), 0);
	assert_false(overview.owners_known);
	assert_int_equal(overview.owners.n_rows, 0);
	overview_release(&overview);
	replay_close(replay);
}

static void test_filter(void **state)
{
	struct site_filter one = {.one_device = true, .device = 0, .limit = 2};
	struct site_filter big = {.min_bytes = 2 * PAGE};
	struct replay *replay = tell();
	struct site_list list = {0}, copy = {0};

	(void)state;
	site_list_add_live(&list, replay->model);
	site_list_sort(&list);
	site_list_append(&copy, &list);
	assert_int_equal(list.n_rows, 3);
	site_list_filter(&list, &big);
	assert_int_equal(list.n_rows, 2);
	one.limit = 1;
	site_list_filter(&copy, &one);
	assert_int_equal(copy.n_rows, 1);
	assert_int_equal(copy.rows[0].stack_id, 15);
	assert_int_equal(copy.n_left_out, 1);
	assert_int_equal(copy.left_out_bytes, 2 * PAGE);
	site_list_release(&list);
	site_list_release(&copy);
	replay_close(replay);
}

static void test_teardown_is_last(void **state)
{
	struct story story;
	struct replay *replay;
	struct overview overview;

	(void)state;
	begin(&story);
	alloc(&story, 10, VT_KIND_LINEAR, 0, 0x10000000, 9 * PAGE, 11);
	vt_put_context(
		story.lane, &(struct vt_rec_context){
				    .time_ns = 20, .action = VT_CONTEXT_DESTROY, .context_id = 1});
	alloc(&story, 30, VT_KIND_LINEAR, 0, 0x10000000, PAGE, 12);
	replay = end(&story);
	assert_int_equal(overview_make(&overview, replay, &(struct overview_request){0}), 0);
	assert_int_equal(overview.end.n_rows, 2);
	assert_int_equal(overview.end.rows[0].stack_id, 12);
	assert_false(overview.end.rows[0].teardown);
	assert_int_equal(overview.end.rows[1].stack_id, 11);
	assert_true(overview.end.rows[1].teardown);
	assert_int_equal(overview.end.rows[1].bytes, 9 * PAGE);
	overview_release(&overview);
	replay_close(replay);
}

static void test_copies_and_failures(void **state)
{
	struct vt_rec_copy copy = {.time_ns = 10,
		.direction = VT_DIR_H2D,
		.bytes = 100,
		.duration_ns = 7,
		.stack_id = 1};
	struct vt_rec_failure failure = {
		.time_ns = 20, .kind = VT_KIND_LINEAR, .bytes = 5, .result = 2, .stack_id = 3};
	const struct transfer_sum *total;
	struct overview overview;
	struct replay *replay;
	struct story story;

	(void)state;
	begin(&story);
	vt_put_copy(story.lane, &copy);
	copy.stack_id = 2;
	copy.duration_ns = 9;
	vt_put_copy(story.lane, &copy);
	copy.result = 1;
	vt_put_copy(story.lane, &copy);
	vt_put_failure(story.lane, &failure);
	failure.bytes = 8;
	vt_put_failure(story.lane, &failure);
	replay = end(&story);
	assert_int_equal(overview_make(&overview, replay, &(struct overview_request){0}), 0);
	assert_int_equal(overview.transfers.n_rows, 2);
	assert_int_equal(overview.transfers.rows[0].key.stack_id, 2);
	total = &overview.transfers.totals[VT_DIR_H2D][MODEL_HOST_PAGEABLE];
	assert_int_equal(total->n_calls, 2);
	assert_int_equal(total->bytes, 200);
	assert_int_equal(total->host_time_ns, 16);
	assert_int_equal(overview.n_failures, 2);
	assert_int_equal(overview.failures[0]->n_calls, 2);
	assert_int_equal(overview.failures[0]->largest_bytes, 8);
	assert_int_equal(overview.failures[0]->key.refusal, MODEL_REFUSED_ALLOC);
	assert_int_equal(overview.failures[1]->key.refusal, MODEL_REFUSED_COPY);
	assert_int_equal(overview.n_views, 0);
	overview_release(&overview);
	replay_close(replay);
}

/* From 10 to 90 in 8 columns of 11 ns. */
static void test_timeline(void **state)
{
	static const uint64_t pages_0[8] = {3, 6, 6, 6, 3, 2, 2, 2};
	struct replay *replay = tell();
	struct timeline timeline;

	(void)state;
	assert_int_equal(
		timeline_make(&timeline, replay, 8, &(struct timeline_also){NULL, NULL}), 0);
	assert_int_equal(timeline.start_ns, 10);
	assert_int_equal(timeline.column_ns, 11);
	assert_int_equal(timeline.n_devices, 2);
	for (unsigned int i = 0; i < 8; i++) {
		const struct timeline_column *column = &timeline.devices[0].columns[i];
		/* The half page of 70 to 90 lies in columns 5 to 7. */
		uint64_t expected = pages_0[i] * PAGE + (i >= 5 ? PAGE / 2 : 0);

		assert_int_equal(column->tracked_bytes, expected);
		assert_false(column->used_known);
		assert_int_equal(timeline.devices[1].columns[i].tracked_bytes, i >= 2 ? PAGE : 0);
	}
	assert_int_equal(timeline.devices[0].columns[1].kind_bytes[VT_KIND_LINEAR], 5 * PAGE);
	assert_int_equal(timeline.devices[0].columns[1].kind_bytes[VT_KIND_MANAGED], 9 * PAGE);
	timeline_release(&timeline);
	assert_int_equal(
		timeline_make(&timeline, replay, 1, &(struct timeline_also){NULL, NULL}), 0);
	assert_int_equal(timeline.devices[0].columns[0].tracked_bytes, 6 * PAGE);
	timeline_release(&timeline);
	replay_close(replay);
}

static void put_process(struct story *story, uint64_t start_ticks)
{
	char boot_id[64] = "", exe[4096];
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe));

	assert_non_null(file);
	assert_non_null(fgets(boot_id, sizeof(boot_id), file));
	fclose(file);
	assert_true(n > 0);
	vt_put_process(story->lane, &(struct vt_rec_process){.pid = (uint64_t)getpid(),
					    .ppid = 1,
					    .start_ticks = start_ticks,
					    .host = {"here", 4},
					    .boot_id = {boot_id, strcspn(boot_id, "\n")},
					    .exe = {exe, (size_t)n},
					    .cmdline = {"a\0b", 4},
					    .recorder_version = {"1", 1}});
}

static uint64_t own_start_ticks(void)
{
	char stat[1024] = "", *p;
	FILE *file = fopen("/proc/self/stat", "r");

	assert_non_null(file);
	assert_true(fread(stat, 1, sizeof(stat) - 1, file) > 0);
	fclose(file);
	p = strrchr(stat, ')');
	for (int field = 2; field < 22; field++)
		p = strchr(p + 1, ' ');
	return strtoull(p, NULL, 10);
}

static struct trace_facts facts_of(struct replay *replay)
{
	struct trace_facts facts;

	trace_facts_get(&facts, replay);
	return facts;
}

static void test_running_or_killed(void **state)
{
	struct story story;
	struct replay *replay;
	struct trace_facts facts;

	(void)state;
	begin(&story);
	put_process(&story, own_start_ticks());
	alloc(&story, 10, VT_KIND_LINEAR, 0, 0x10000000, PAGE, 11);
	replay = end(&story);
	facts = facts_of(replay);
	assert_int_equal(facts.end, TRACE_END_RUNNING);
	assert_false(facts.complete);
	assert_int_equal(facts.n_events, 1);
	assert_int_equal(facts.duration_ns, 10);
	replay_close(replay);

	/* Another process had this pid. */
	begin(&story);
	put_process(&story, own_start_ticks() + 1);
	replay = end(&story);
	facts = facts_of(replay);
	assert_int_equal(facts.end, TRACE_END_KILLED);
	assert_true(facts.complete);
	assert_int_equal(facts.status, -1);
	replay_close(replay);
}

static void test_exit_and_rank(void **state)
{
	struct story story;
	struct replay *replay;
	struct trace_facts facts;

	(void)state;
	begin(&story);
	vt_put_environment(story.lane, &(struct vt_rec_environment){{"RANK", 4}, {"x", 1}});
	vt_put_environment(
		story.lane, &(struct vt_rec_environment){{"SLURM_PROCID", 12}, {"17", 2}});
	vt_put_end(story.lane,
		&(struct vt_rec_end){.time_ns = 500, .reason = VT_END_EXIT, .status = 3});
	atomic_store(&story.writer.header->n_lost, 4);
	replay = end(&story);
	facts = facts_of(replay);
	assert_int_equal(facts.end, TRACE_END_EXIT);
	assert_int_equal(facts.status, 3);
	assert_int_equal(facts.duration_ns, 500);
	assert_int_equal(facts.rank, 17);
	assert_int_equal(facts.n_lost, 4);
	assert_false(facts.complete);
	replay_close(replay);
}

/* What a launcher saw counts more than what the process could know. */
static void test_launcher(void **state)
{
	struct story story;
	struct replay *replay;
	struct trace_facts facts;

	(void)state;
	begin(&story);
	vt_put_end(story.lane,
		&(struct vt_rec_end){.time_ns = 500, .reason = VT_END_EXIT, .status = 0});
	atomic_store(&story.writer.header->launcher_status, 11);
	atomic_store(&story.writer.header->launcher_end, VT_END_SIGNAL);
	replay = end(&story);
	facts = facts_of(replay);
	assert_int_equal(facts.end, TRACE_END_SIGNAL);
	assert_int_equal(facts.status, 11);
	replay_close(replay);
}

static void test_exec(void **state)
{
	struct trace_facts before = {
		.pid = 5, .ppid = 1, .start_realtime_ns = 10, .end = TRACE_END_KILLED};
	struct trace_facts after = {
		.pid = 5, .ppid = 1, .start_realtime_ns = 20, .end = TRACE_END_KILLED};
	struct trace_facts other = {
		.pid = 6, .ppid = 1, .start_realtime_ns = 30, .end = TRACE_END_KILLED};
	struct trace_facts *all[] = {&after, &other, &before};

	(void)state;
	trace_facts_settle(all, 3);
	assert_int_equal(before.end, TRACE_END_EXEC);
	assert_int_equal(after.end, TRACE_END_KILLED);
	assert_int_equal(other.end, TRACE_END_KILLED);
}

static void test_cut_trace(void **state)
{
	struct replay *replay = tell();
	struct trace_facts facts;
	size_t bytes;
	uint8_t *data = file_read(PATH, &bytes);

	(void)state;
	replay_close(replay);
	/* In the middle of the only chunk's records. */
	file_write(PATH, data, VT_HEADER_BYTES + sizeof(struct vt_chunk_header) + 130);
	free(data);
	assert_int_equal(replay_open(&replay, PATH, NULL, NULL), 0);
	facts = facts_of(replay);
	assert_true(facts.damaged);
	assert_false(facts.complete);
	assert_true(facts.n_events > 0);
	assert_true(facts.n_events < 9);
	replay_close(replay);
	assert_true(replay_open(&replay, "no such file", NULL, NULL) < 0);
	assert_null(replay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_peaks),
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_teardown_is_last),
		cmocka_unit_test(test_copies_and_failures),
		cmocka_unit_test(test_timeline),
		cmocka_unit_test(test_running_or_killed),
		cmocka_unit_test(test_exit_and_rank),
		cmocka_unit_test(test_launcher),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_cut_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
