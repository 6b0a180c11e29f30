/* tools/output: what reports say of allocators' blocks, of sums that differ, and of what is not
 * visible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/report.h"
#include "output/leaks_text.h"
#include "unit/json_check.h"
#include "unit/records.h"

#define PATH	"blocks.vt"
#define MIB	(1024ull * 1024)
#define SEGMENT 0x10000000ull

static uint64_t now;

static uint64_t tick(void)
{
	return now += 1000000;
}

static void take(struct vt_lane *lane, uint64_t id, uint64_t address, uint64_t bytes, int64_t jump)
{
	vt_put_block_alloc(lane, &(struct vt_rec_block_alloc){.time_ns = tick(),
					 .allocator_id = id,
					 .address = address,
					 .bytes = bytes,
					 .reserved_jump = jump});
}

static void drop(struct vt_lane *lane, uint64_t address, uint64_t bytes)
{
	vt_put_block_free(lane,
		&(struct vt_rec_block_free){
			.time_ns = tick(), .allocator_id = 1, .address = address, .bytes = bytes});
}

/* 20 MiB of which 8 are in blocks and 1 waits; one report whose sum is wrong, a free of what is not
 * known, a refusal; and an allocator of the program's own in memory that nobody saw. */
static void put_blocks(struct vt_lane *lane)
{
	vt_put_alloc(lane, &(struct vt_rec_alloc){.time_ns = tick(),
				   .kind = VT_KIND_LINEAR,
				   .api_id = 1,
				   .address = SEGMENT,
				   .bytes = 20 * MIB});
	vt_put_allocator(lane, &(struct vt_rec_allocator){.time_ns = tick(),
				       .allocator_id = 1,
				       .layer = VT_LAYER_TORCH,
				       .name = {"torch", 5},
				       .version = {"2.11", 4}});
	vt_put_block_totals(lane, &(struct vt_rec_block_totals){.time_ns = tick(),
					  .allocator_id = 1,
					  .allocated_bytes = 8 * MIB,
					  .reserved_bytes = 20 * MIB});
	take(lane, 1, SEGMENT, 8 * MIB, 0);
	take(lane, 1, SEGMENT + 8 * MIB, MIB, 0);
	vt_put_stream_event(lane, &(struct vt_rec_stream_event){.time_ns = tick(),
					  .action = VT_EVENT_WAIT,
					  .event = 5,
					  .address = SEGMENT + 8 * MIB});
	drop(lane, SEGMENT + 8 * MIB, MIB);
	drop(lane, SEGMENT + 16 * MIB, 0);
	take(lane, 1, SEGMENT + 9 * MIB, 512, 2);
	drop(lane, SEGMENT + 9 * MIB, 512);
	vt_put_block_failure(
		lane, &(struct vt_rec_block_failure){
			      .time_ns = tick(), .allocator_id = 1, .bytes = 999 * MIB});
	vt_put_allocator(lane, &(struct vt_rec_allocator){.time_ns = tick(),
				       .allocator_id = 256,
				       .layer = VT_LAYER_TOLD,
				       .device = -1,
				       .name = {"my\033pool", 7}});
	take(lane, 256, 0x70000000, MIB, 0);
}

struct loaded {
	struct replay *replay;
	struct symbol_table *symbols;
	struct overview overview;
	struct report_trace shown;
	struct style style;
	char *text;
	size_t bytes;
};

static void load(struct loaded *loaded)
{
	struct vt_writer writer;
	struct vt_lane *lane;

	now = 0;
	trace_begin(&writer, PATH, (struct vt_writer_options){0});
	lane = vt_writer_lane(&writer, 1, 0);
	vt_put_api(lane, &(struct vt_rec_api){1, {"cuMemAlloc_v2", 13}});
	put_blocks(lane);
	trace_end(&writer);
	loaded->symbols = symbol_table_new();
	assert_int_equal(replay_open(&loaded->replay, PATH, NULL, NULL), 0);
	assert_int_equal(
		overview_make(&loaded->overview, loaded->replay, &(struct overview_request){0}), 0);
	loaded->shown =
		(struct report_trace){.overview = &loaded->overview, .symbols = loaded->symbols};
	loaded->style = (struct style){.width = 100};
	loaded->style.out = open_memstream(&loaded->text, &loaded->bytes);
	assert_non_null(loaded->style.out);
}

static void unload(struct loaded *loaded)
{
	free(loaded->text);
	overview_release(&loaded->overview);
	symbol_table_free(loaded->symbols);
	replay_close(loaded->replay);
}

static void check_order(struct loaded *loaded, const char *const *expected, size_t n)
{
	const char *at;

	fclose(loaded->style.out);
	at = loaded->text;
	for (size_t i = 0; i < n; i++) {
		const char *found = strstr(at, expected[i]);

		if (!found)
			fail_msg("'%s' is not in, or not behind what should be before it:\n%s",
				expected[i], loaded->text);
		at = found + strlen(expected[i]);
	}
}

#define CHECK_ORDER(loaded, expected)                                                              \
	check_order(loaded, expected, sizeof(expected) / sizeof(*(expected)))

static void test_report(void **state)
{
	static const char *const expected[] = {
		"12.0 MiB  torch  (kept by torch, in no block)",
		"1 segment\n",
		"8.0 MiB         (no stack recorded)",
		"BLOCKS         PyTorch 2.11 on GPU 0: 8.0 MiB in 1 block, of 20.0 MiB in 1 "
		"segment; at "
		"most 9.0 MiB of 20.0 MiB\n",
		"1.0 MiB  freed in 1 block, waiting for other streams\n",
		"11.0 MiB  not in use, 11.0 MiB of it in segments that are\n",
		"my?pool: 1.0 MiB in 1 block, of 0 B in 0 segments; at most 1.0 MiB of 0 B\n",
		"FAILED       ! torch's allocation failed 1 time (out of memory), 999.0 MiB",
		("NOT SEEN     ! PyTorch 2.11 on GPU 0: the sums it passes differ from those of "
		 "its blocks in 2 of 6 reports, first at 0:00."),
		"PyTorch 2.11 on GPU 0: 1 block freed that had not been seen allocated\n",
	};
	struct loaded loaded;

	(void)state;
	load(&loaded);
	report_text(&loaded.style, &loaded.shown);
	CHECK_ORDER(&loaded, expected);
	unload(&loaded);
}

static void test_leaks(void **state)
{
	static const char *const expected[] = {
		"  12.0 MiB  in 1 segment of torch, linear on GPU 0; ",
		"      kept by the allocator, in no block\n",
		"   8.0 MiB  in 1 block of torch, linear on GPU 0; ",
	};
	struct loaded loaded;

	(void)state;
	load(&loaded);
	leaks_text(&loaded.style, &loaded.shown);
	CHECK_ORDER(&loaded, expected);
	assert_null(strstr(loaded.text, "20.0 MiB"));
	unload(&loaded);
}

static void test_json(void **state)
{
	static const char *const expected[] = {
		"\"coverage\": {",
		"\"torch\": {",
		"\"blocks\": true",
		"\"leaks\": [",
		"\"level\": \"idle\"",
		"\"allocator\": \"torch\"",
		"\"bytes\": 12582912",
		"\"verdict\": \"cache\"",
		"\"owner\": \"torch\"",
		"\"stack\": null",
		"\"level\": \"block\"",
		"\"api\": \"torch\"",
		"\"call\": \"block\"",
		"\"torch\": {",
		"\"version\": \"2.11\"",
		"\"allocated_bytes\": 8388608",
		"\"reserved_bytes\": 20971520",
		"\"peak_allocated_bytes\": 9437184",
		"\"pending_bytes\": 1048576",
		"\"inactive_split_bytes\": 11534336",
		"\"segment_list\": [",
		"\"expandable\": false",
		"\"stream\": null",
		"\"state\": \"active\"",
		"\"state\": \"pending\"",
		"\"state\": \"inactive\"",
		"\"self_check\": {",
		"\"reports\": 6",
		"\"allocated_differ\": 0",
		"\"reserved_differ\": 2",
		"\"allocators\": [",
		"\"outside_bytes\": 1048576",
		"\"self_check\": null",
	};
	struct loaded loaded;

	(void)state;
	load(&loaded);
	report_json(loaded.style.out, &loaded.shown, 1, REPORT_ALL);
	CHECK_ORDER(&loaded, expected);
	assert_true(json_check(loaded.text));
	unload(&loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_leaks),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
