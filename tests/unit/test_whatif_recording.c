/* tools/analysis/whatif_*.c: which steps records become, and which recordings are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/whatif_recording.h"
#include "unit/records.h"

#define PATH  "whatif.vt"
#define MIB   SETTINGS_MIB
#define FIRST 0x10000000u
#define NEXT  0x20000000u

static struct {
	struct vt_writer writer;
	struct vt_lane *lane;
	uint64_t now, reserved_bytes, allocated_bytes;
	struct replay *replay;
	struct whatif_built built;
} story;

static void report_allocator(uint64_t allocator_id)
{
	vt_put_allocator(story.lane, &(struct vt_rec_allocator){.time_ns = story.now++,
					     .allocator_id = allocator_id,
					     .layer = VT_LAYER_TORCH,
					     .name = {"torch", 5},
					     .version = {"2.11.0", 6},
					     .path = {"", 0}});
}

static void begin(void)
{
	memset(&story, 0, sizeof(story));
	story.now = 10;
	trace_begin(&story.writer, PATH, (struct vt_writer_options){0});
	story.lane = vt_writer_lane(&story.writer, 1, 0);
	vt_put_device(story.lane, &(struct vt_rec_device){.total_bytes = 1024 * MIB,
					  .page_bytes = 2 * MIB,
					  .name = {"Test", 4},
					  .uuid = {"", 0}});
	report_allocator(1);
}

static void segment(uint64_t address, uint64_t bytes)
{
	vt_put_alloc(story.lane, &(struct vt_rec_alloc){.time_ns = story.now++,
					 .kind = VT_KIND_LINEAR,
					 .address = address,
					 .bytes = bytes});
	story.reserved_bytes += bytes;
}

static void segment_gone(uint64_t address, uint64_t bytes)
{
	vt_put_free(story.lane, &(struct vt_rec_free){.time_ns = story.now++, .address = address});
	story.reserved_bytes -= bytes;
}

static void totals(void)
{
	vt_put_block_totals(story.lane, &(struct vt_rec_block_totals){.time_ns = story.now++,
						.allocator_id = 1,
						.allocated_bytes = story.allocated_bytes,
						.reserved_bytes = story.reserved_bytes});
}

static void get(uint64_t address, uint64_t bytes)
{
	story.allocated_bytes += bytes;
	totals();
	vt_put_block_alloc(story.lane, &(struct vt_rec_block_alloc){.time_ns = story.now++,
					       .allocator_id = 1,
					       .address = address,
					       .bytes = bytes});
}

static void put(uint64_t address, uint64_t bytes)
{
	story.allocated_bytes -= bytes;
	totals();
	vt_put_block_free(story.lane, &(struct vt_rec_block_free){.time_ns = story.now++,
					      .allocator_id = 1,
					      .address = address,
					      .bytes = bytes});
}

static void stream(uint64_t address, int64_t number)
{
	vt_put_block_stream(story.lane, &(struct vt_rec_block_stream){.time_ns = story.now++,
						.allocator_id = 1,
						.address = address,
						.stream = number});
}

static void refused_by_driver(uint64_t bytes)
{
	vt_put_failure(story.lane, &(struct vt_rec_failure){.time_ns = story.now++,
					   .kind = VT_KIND_LINEAR,
					   .bytes = bytes,
					   .result = VT_RESULT_OUT_OF_MEMORY});
}

static void refused(uint64_t bytes)
{
	vt_put_block_failure(story.lane, &(struct vt_rec_block_failure){.time_ns = story.now++,
						 .allocator_id = 1,
						 .bytes = bytes,
						 .allocated_bytes = story.allocated_bytes,
						 .reserved_bytes = story.reserved_bytes});
}

static void graph(uint64_t action, int64_t number)
{
	vt_put_graph_pool(story.lane,
		&(struct vt_rec_graph_pool){
			.time_ns = story.now++, .action = action, .object = 77, .stream = number});
}

static void end(void)
{
	trace_end(&story.writer);
	assert_int_equal(replay_open(&story.replay, PATH, NULL, NULL), 0);
	assert_int_equal(whatif_build(&story.built, story.replay, -1), 0);
}

static void forget(void)
{
	whatif_built_release(&story.built);
	replay_close(story.replay);
}

/* The trace has these steps, by kind. */
#define expect_steps(...)                                                                          \
	expect_kinds((const enum whatif_kind[]){__VA_ARGS__},                                      \
		sizeof((const enum whatif_kind[]){__VA_ARGS__}) / sizeof(enum whatif_kind))

static void expect_kinds(const enum whatif_kind *kinds, size_t n)
{
	struct whatif_check check;

	end();
	assert_string_equal(story.built.reason, "");
	assert_int_equal(story.built.recording.n_steps, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(story.built.steps[i].kind, kinds[i]);
	whatif_check(&story.built.recording, &check);
	assert_true(check.is_equal);
	assert_int_equal(check.result.stats.peak_reserved_bytes, story.built.peak_reserved_bytes);
}

static void expect_refusal(enum whatif_refusal refusal)
{
	end();
	assert_int_equal(story.built.refusal, refusal);
	assert_true(story.built.reason[0]);
	forget();
}

static void test_empty_cache(void **state)
{
	(void)state;
	begin();
	segment(FIRST, 20 * MIB);
	get(FIRST, 4 * MIB);
	put(FIRST, 4 * MIB);
	segment_gone(FIRST, 20 * MIB);
	segment(NEXT, 30 * MIB);
	get(NEXT, 30 * MIB);
	expect_steps(WHATIF_GET, WHATIF_PUT, WHATIF_EMPTY_CACHE, WHATIF_GET);
	assert_int_equal(story.built.n_device_frees, 1);
	forget();
}

/* The same records, but that the driver refused before: what was released was so for the block. */
static void test_retry(void **state)
{
	(void)state;
	begin();
	segment(FIRST, 20 * MIB);
	get(FIRST, 4 * MIB);
	put(FIRST, 4 * MIB);
	refused_by_driver(30 * MIB);
	segment_gone(FIRST, 20 * MIB);
	segment(NEXT, 30 * MIB);
	get(NEXT, 30 * MIB);
	expect_steps(WHATIF_GET, WHATIF_PUT, WHATIF_GET);
	assert_int_equal(story.built.recording.n_answers, 3);
	assert_int_equal(story.built.answers[1].address, 0);
	forget();
}

/* Another library's refusal, after which PyTorch has no need of the driver. */
static void test_other_refusal(void **state)
{
	(void)state;
	begin();
	segment(FIRST, 20 * MIB);
	get(FIRST, 4 * MIB);
	refused_by_driver(500 * MIB);
	get(FIRST + 4 * MIB, 4 * MIB);
	segment(NEXT, 64 * MIB);
	expect_steps(WHATIF_GET, WHATIF_GET);
	assert_int_equal(story.built.recording.n_answers, 1);
	forget();
}

/* PyTorch refuses without a word to the driver: there is a limit, and what it gives back may be for
 * the sake of a block. */
static void test_limit(void **state)
{
	(void)state;
	begin();
	segment(FIRST, 20 * MIB);
	get(FIRST, 4 * MIB);
	put(FIRST, 4 * MIB);
	segment_gone(FIRST, 20 * MIB);
	segment(NEXT, 30 * MIB);
	get(NEXT, 30 * MIB);
	refused(20 * MIB);
	expect_steps(WHATIF_GET, WHATIF_PUT, WHATIF_GET, WHATIF_REFUSED);
	assert_true(story.built.cap_is_guessed);
	assert_int_equal(story.built.recording.cap_bytes, 30 * MIB);
	forget();
}

/* What is wanted between capture_begin and the driver's capture is of the ordinary pool. */
static void test_capture(void **state)
{
	(void)state;
	begin();
	graph(VT_GRAPH_POOL_BEGIN, 5);
	segment(FIRST, 2 * MIB);
	get(FIRST, 512);
	stream(FIRST, 5);
	vt_put_capture(story.lane, &(struct vt_rec_capture){.time_ns = story.now++, .begin = 1});
	segment(NEXT, 2 * MIB);
	get(NEXT, 512);
	stream(NEXT, 5);
	graph(VT_GRAPH_POOL_END, 0);
	graph(VT_GRAPH_POOL_DESTROYED, 0);
	expect_steps(
		WHATIF_GET, WHATIF_SCOPE_BEGIN, WHATIF_GET, WHATIF_SCOPE_END, WHATIF_POOL_UNUSED);
	assert_int_equal(story.built.steps[0].pool, 0);
	assert_int_equal(story.built.steps[0].stream, 5);
	assert_int_equal(story.built.steps[2].pool, 1);
	assert_int_equal(story.built.n_streams, 1);
	forget();
}

static void test_refusals(void **state)
{
	(void)state;
	/* Blocks are given back that were never handed out; or sums that are too large at once. */
	begin();
	segment(FIRST, 20 * MIB);
	story.allocated_bytes = 4 * MIB;
	put(FIRST, 4 * MIB);
	expect_refusal(WHATIF_BEGAN_LATE);
	begin();
	segment(FIRST, 20 * MIB);
	story.allocated_bytes = 4 * MIB;
	get(FIRST, 4 * MIB);
	expect_refusal(WHATIF_BEGAN_LATE);

	begin();
	segment(FIRST, 20 * MIB);
	get(FIRST, 4 * MIB);
	story.reserved_bytes += MIB;
	get(FIRST + 4 * MIB, 4 * MIB);
	expect_refusal(WHATIF_SUMS);

	begin();
	segment(FIRST, 20 * MIB);
	get(FIRST, 4 * MIB);
	get(FIRST, 4 * MIB);
	expect_refusal(WHATIF_LOST);

	begin();
	get(FIRST, 4 * MIB);
	expect_refusal(WHATIF_OUTSIDE);

	begin();
	report_allocator(2);
	expect_refusal(WHATIF_SEVERAL);

	begin();
	trace_end(&story.writer);
	assert_int_equal(replay_open(&story.replay, PATH, NULL, NULL), 0);
	assert_int_equal(whatif_build(&story.built, story.replay, 1), 0);
	assert_int_equal(story.built.refusal, WHATIF_NO_BLOCKS);
	forget();
}

static void test_settings(void **state)
{
	(void)state;
	begin();
	vt_put_environment(
		story.lane, &(struct vt_rec_environment){.name = {"PYTORCH_CUDA_ALLOC_CONF", 23},
				    .value = {"no_such:1", 9}});
	expect_refusal(WHATIF_SETTINGS);

	/* The older name wins. */
	begin();
	vt_put_environment(
		story.lane, &(struct vt_rec_environment){.name = {"PYTORCH_ALLOC_CONF", 18},
				    .value = {"backend:cudaMallocAsync", 23}});
	vt_put_environment(
		story.lane, &(struct vt_rec_environment){.name = {"PYTORCH_CUDA_ALLOC_CONF", 23},
				    .value = {"max_split_size_mb:64", 20}});
	segment(FIRST, 20 * MIB);
	get(FIRST, 4 * MIB);
	expect_steps(WHATIF_GET);
	assert_int_equal(story.built.recording.settings.max_split_bytes, 64 * MIB);
	assert_int_equal(story.built.recording.version, 211);
	forget();

	begin();
	vt_put_environment(
		story.lane, &(struct vt_rec_environment){.name = {"PYTORCH_ALLOC_CONF", 18},
				    .value = {"backend:cudaMallocAsync", 23}});
	expect_refusal(WHATIF_ASYNC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_cache),
		cmocka_unit_test(test_retry),
		cmocka_unit_test(test_other_refusal),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_capture),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
