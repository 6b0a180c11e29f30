/* tools/output: what the report says of every ledger, as text and as JSON, of one trace that has
 * them all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/dump.h"
#include "output/report.h"
#include "output/sites_text.h"
#include "output/timeline_text.h"
#include "unit/json_check.h"
#include "unit/records.h"

#define PATH "ledgers.vt"
#define MIB  (1024ull * 1024)
#define PAGE (2 * MIB)

static uint64_t now;

static uint64_t tick(void)
{
	return now += 1000000;
}

static void put_api(struct vt_lane *lane, uint64_t api_id, const char *name)
{
	vt_put_api(lane, &(struct vt_rec_api){api_id, {name, strlen(name)}});
}

static void put_memory(struct vt_lane *lane, uint64_t used_bytes)
{
	vt_put_memory(lane, &(struct vt_rec_memory){.time_ns = tick(),
				    .free_bytes = 100 * PAGE - used_bytes,
				    .total_bytes = 100 * PAGE});
}

static void put_untracked(struct vt_lane *lane, uint64_t cause, int64_t taken_bytes)
{
	vt_put_untracked(
		lane, &(struct vt_rec_untracked){
			      .time_ns = tick(), .cause = cause, .taken_bytes = taken_bytes});
}

static void put_kind(struct vt_lane *lane, uint64_t kind, uint64_t address, uint64_t bytes)
{
	vt_put_alloc(lane, &(struct vt_rec_alloc){.time_ns = tick(),
				   .kind = kind,
				   .address = address,
				   .bytes = bytes,
				   .stack_id = 1});
}

static void put_context_and_memory(struct vt_lane *lane)
{
	vt_put_context(
		lane, &(struct vt_rec_context){
			      .time_ns = tick(), .action = VT_CONTEXT_RETAIN, .context_id = 1});
	vt_put_others(lane, &(struct vt_rec_others){.time_ns = tick(), .used_bytes = 11 * PAGE});
	put_untracked(lane, VT_CAUSE_CONTEXT, 5 * PAGE);
	put_kind(lane, VT_KIND_LINEAR, 0x1000000, 3 * PAGE);
	put_kind(lane, VT_KIND_ARRAY, 0x50, PAGE);
	put_kind(lane, VT_KIND_SHARED, 0x9000000, 0);
	put_kind(lane, VT_KIND_MANAGED, 0xa000000, 20 * PAGE);
}

/* A pool that holds 8 pages, of which 3 are used, and up to one more may wait for a stream. */
static void put_pool(struct vt_lane *lane)
{
	vt_put_pool(lane,
		&(struct vt_rec_pool){.time_ns = tick(), .action = VT_POOL_CREATE, .pool = 0xa0});
	vt_put_pool(lane, &(struct vt_rec_pool){.time_ns = tick(),
				  .action = VT_POOL_THRESHOLD,
				  .pool = 0xa0,
				  .value = 123});
	for (uint64_t i = 0; i < 3; i++)
		vt_put_alloc(lane, &(struct vt_rec_alloc){.time_ns = tick(),
					   .kind = VT_KIND_POOL,
					   .address = 0x20000000 + i * 4 * PAGE,
					   .bytes = (i + 1) * PAGE,
					   .pool = 0xa0,
					   .stack_id = 1});
	vt_put_free(lane, &(struct vt_rec_free){.time_ns = tick(),
				  .kind = VT_KIND_POOL,
				  .address = 0x20000000 + 8 * PAGE,
				  .stream = 0x77});
	vt_put_pool_memory(lane, &(struct vt_rec_pool_memory){.time_ns = tick(),
					 .pool = 0xa0,
					 .reserved_bytes = 8 * PAGE,
					 .used_bytes = 4 * PAGE});
}

static void put_graph(struct vt_lane *lane)
{
	vt_put_graph_alloc(lane, &(struct vt_rec_graph_alloc){.time_ns = tick(),
					 .graph = 1,
					 .address = 0x30000000,
					 .bytes = PAGE,
					 .stack_id = 1});
	vt_put_graph(lane,
		&(struct vt_rec_graph){
			.time_ns = tick(), .action = VT_GRAPH_INSTANTIATE, .graph = 1, .exec = 2});
	for (int i = 0; i < 2; i++)
		vt_put_graph(
			lane, &(struct vt_rec_graph){
				      .time_ns = tick(), .action = VT_GRAPH_LAUNCH, .exec = 2});
	vt_put_graph_memory(
		lane, &(struct vt_rec_graph_memory){
			      .time_ns = tick(), .reserved_bytes = 2 * PAGE, .used_bytes = PAGE});
}

static void put_calls(struct vt_lane *lane)
{
	for (uint64_t i = 0; i < 3; i++)
		vt_put_copy(lane, &(struct vt_rec_copy){.time_ns = now,
					  .direction = VT_DIR_H2D,
					  .flags = VT_COPY_ASYNC | (i ? VT_COPY_SAME_CALL : 0),
					  .dst = 0x1000000,
					  .bytes = MIB,
					  .duration_ns = i ? 0 : 5000});
	vt_put_migrate(lane, &(struct vt_rec_migrate){.time_ns = tick(),
				     .action = VT_MIGRATE_PREFETCH,
				     .bytes = 20 * PAGE,
				     .duration_ns = 7000});
	vt_put_failure(lane, &(struct vt_rec_failure){.time_ns = tick(),
				     .api_id = 1,
				     .caller_api = 2,
				     .kind = VT_KIND_LINEAR,
				     .bytes = 99 * PAGE,
				     .result = 2});
	vt_put_free(lane, &(struct vt_rec_free){.time_ns = tick(),
				  .api_id = 3,
				  .kind = VT_KIND_LINEAR,
				  .address = 0x1000000,
				  .result = 719});
}

/* At the last sample: 3 + 1 pages of linear memory and arrays, 8 of the pool, 2 for graphs; 5 + 1
 * untracked, 11 of others, 2 that nothing explains. */
static void write_trace(bool driver)
{
	struct vt_writer writer;
	struct vt_lane *lane;

	now = 0;
	trace_begin(&writer, PATH, (struct vt_writer_options){0});
	lane = vt_writer_lane(&writer, 1, 0);
	vt_put_device(
		lane, &(struct vt_rec_device){
			      .total_bytes = 100 * PAGE, .page_bytes = PAGE, .name = {"T", 1}});
	put_api(lane, 2, "cudaMalloc");
	if (driver) {
		put_api(lane, 1, "cuMemAlloc_v2");
		put_api(lane, 3, "cuMemFree_v2");
	}
	put_context_and_memory(lane);
	put_pool(lane);
	put_graph(lane);
	put_untracked(lane, VT_CAUSE_MODULES, PAGE);
	put_calls(lane);
	put_memory(lane, 33 * PAGE);
	/* After the last sample: no part of its account. */
	put_kind(lane, VT_KIND_LINEAR, 0x60000000, PAGE);
	trace_end(&writer);
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

static const char *label(void *user, const struct model *model, uint64_t stack_id)
{
	(void)user;
	(void)model;
	return stack_id ? "torch" : NULL;
}

static void load(struct loaded *loaded, bool driver)
{
	const struct owner_source source = {label, NULL};

	write_trace(driver);
	loaded->symbols = symbol_table_new();
	assert_int_equal(replay_open(&loaded->replay, PATH, NULL, NULL), 0);
	assert_int_equal(overview_make(&loaded->overview, loaded->replay,
				 &(struct overview_request){.owners = &source}),
		0);
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

/* Each text is there, behind the one before it. */
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
		"PEAK           30.0 MiB (15 % of the card, 170.0 MiB headroom)",
		"10.0 MiB  reserved by pools and not in use\n",
		"2.0 MiB  reserved for graphs and not in use\n",
		"AT THE END     200.0 MiB = 28.0 MiB tracked + 16.0 MiB untracked "
		"(contexts 10.0 MiB, code 2.0 MiB, unexplained 4.0 MiB) + 22.0 MiB other processes "
		"+ 134.0 MiB free, at 0:00.0",
		"8.0 MiB linear in 2 blocks, 2.0 MiB array in 1 block, 6.0 MiB pool in 2 blocks, "
		"40.0 MiB managed in 1 block, 2.0 MiB graph in 1 block, 0 B shared in 1 block\n",
		"TRANSFERS      3.0 MiB to the device in 1 call (3 copies), 5.0 us of host time",
		"MIGRATED       40.0 MiB of managed memory prefetched in 1 call, 7.0 us of host "
		"time\n",
		"cudaMalloc failed 1 time (out of memory)",
		"NOT SEEN       2 graph launches: copies inside them are not itemised\n",
	};
	struct loaded loaded;

	(void)state;
	load(&loaded, true);
	report_text(&loaded.style, &loaded.shown);
	CHECK_ORDER(&loaded, expected);
	unload(&loaded);
}

static void test_table(void **state)
{
	static const char *const expected[] = {
		"  20.0 MiB  at most  torch",
		"ACCOUNT of GPU 0 at 0:00.0",
		"     6.0 MiB  linear memory, in whole pages               inferred\n",
		"     2.0 MiB  arrays, in whole pages                      inferred\n",
		"    16.0 MiB  reserved by pools                           measured\n",
		"     4.0 MiB  reserved for graphs                         measured\n",
		"    10.0 MiB  contexts                                    measured\n",
		"     2.0 MiB  code                                        measured\n",
		"     4.0 MiB  not explained by anything                   inferred\n",
		"    22.0 MiB  other processes                             measured\n",
		"   134.0 MiB  free                                        measured\n",
		"   200.0 MiB  in all                                      measured\n",
		"Managed memory moves by itself: what of its 40.0 MiB is on the device",
	};
	struct loaded loaded;

	(void)state;
	load(&loaded, true);
	sites_text_views(&loaded.style, &loaded.shown);
	CHECK_ORDER(&loaded, expected);
	unload(&loaded);
}

static void test_json(void **state)
{
	static const char *const expected[] = {
		"\"driver_hooks\": true",
		"\"runtimes_static\": null",
		"\"runtimes_shared\": null",
		"\"graph_launches\": 2",
		"\"end\": {",
		"\"tracked_bytes\": 31457280",
		"\"untracked_bytes\": 16777216",
		"\"other_processes_bytes\": 23068672",
		"\"other_processes_source\": \"measured\"",
		"\"free_bytes\": 140509184",
		"\"linear_held_bytes\": 8388608",
		"\"array_held_bytes\": 2097152",
		"\"by_kind\": {",
		"\"linear\": 8388608",
		"\"array\": 2097152",
		"\"pool_reserved\": 16777216",
		"\"pool_used\": 6291456",
		"\"vmm\": 0",
		"\"managed\": 41943040",
		"\"graph\": 4194304",
		"\"shared\": 0",
		"\"shared_count\": 1",
		"\"untracked_by_cause\": {",
		"\"context\": 10485760",
		"\"modules\": 2097152",
		"\"local_memory\": 0",
		"\"unexplained\": 4194304",
		"\"account\": {",
		"\"total_bytes\": 209715200",
		"\"tracked_bytes\": 29360128",
		"\"row\": \"linear\"",
		"\"bytes\": 6291456",
		"\"source\": \"inferred\"",
		"\"row\": \"free\"",
		"\"pools\": [",
		"\"pool\": \"0xa0\"",
		"\"default\": false",
		"\"reserved_bytes\": 16777216",
		"\"used_bytes\": 6291456",
		"\"pending_bytes\": 2097152",
		"\"stream\": \"0x77\"",
		"\"bytes\": 2097152",
		"\"release_threshold_bytes\": 123",
		"\"owners\": [",
		"\"owner\": \"torch\"",
		"\"peak_bytes\": 20971520",
		/* What is shared was not allocated. */
		"\"allocations\": 8",
		"\"failed_frees\": [",
		"\"api\": \"cuMemFree_v2\"",
		"\"driver_api\": \"cuMemFree_v2\"",
		"\"error\": \"CUDA_ERROR_LAUNCH_FAILED\"",
		"\"failures\": [",
		"\"api\": \"cudaMalloc\"",
		"\"driver_api\": \"cuMemAlloc_v2\"",
		"\"error\": \"CUDA_ERROR_OUT_OF_MEMORY\"",
		"\"calls\": 1",
		"\"copies\": 3",
		"\"migrations\": [",
		"\"action\": \"prefetch\"",
		"\"bytes\": 41943040",
		"\"host_time_ns\": 7000",
	};
	struct loaded loaded;

	(void)state;
	load(&loaded, true);
	report_json(loaded.style.out, &loaded.shown, 1, REPORT_ALL);
	CHECK_ORDER(&loaded, expected);
	assert_true(json_check(loaded.text));
	unload(&loaded);
}

static void test_timeline(void **state)
{
	static const char *const expected[] = {
		"time_ns,device,tracked_bytes,",
		",device_used_bytes,untracked_bytes,other_processes_bytes,unexplained_bytes",
		",resident_bytes,locked_bytes,machine_available_bytes,machine_swap_used_bytes",
		",live_bytes,refused\n",
		/* Nothing was sampled in the first column, and owners were not asked for. */
		",,,,,,,,,0,0\n",
		",69206016,12582912,23068672,4194304,,,,,0,0\n",
		("last sample: 66.0 MiB in use = 28.0 MiB tracked + 12.0 MiB untracked + 4.0 MiB "
		 "unexplained + 22.0 MiB of others\n"),
	};
	struct timeline timeline;
	struct loaded loaded;

	(void)state;
	load(&loaded, true);
	assert_int_equal(
		timeline_make(&timeline, loaded.replay, 4, &(struct timeline_also){NULL, NULL}), 0);
	timeline_csv(loaded.style.out, &timeline);
	timeline_text(&loaded.style, &timeline, loaded.replay->model);
	CHECK_ORDER(&loaded, expected);
	timeline_release(&timeline);
	unload(&loaded);
}

/* Only calls of the runtime were seen: first of all that is said, and no total is shown. */
static void test_inactive(void **state)
{
	static const char *const text[] = {
		"! no call of the CUDA driver was seen", "pid ", "NOT SEEN"};
	static const char *const json[] = {"\"host_memory\": null", "\"driver_hooks\": false",
		"\"graph_launches\": null", "\"devices\": null", "\"host_memory\": null"};
	struct loaded loaded;

	(void)state;
	load(&loaded, false);
	report_text(&loaded.style, &loaded.shown);
	CHECK_ORDER(&loaded, text);
	assert_int_equal(strncmp(loaded.text, text[0], strlen(text[0])), 0);
	assert_null(strstr(loaded.text, "PEAK"));
	assert_null(strstr(loaded.text, "AT THE END"));
	assert_null(strstr(loaded.text, "COPIES"));
	unload(&loaded);
	load(&loaded, false);
	report_json(loaded.style.out, &loaded.shown, 1, REPORT_ALL);
	CHECK_ORDER(&loaded, json);
	unload(&loaded);
}

/* What numbers stand for, record by record. */
static void test_dump(void **state)
{
	static const char *const expected[] = {
		" context api_id=0 action=retain",
		" untracked api_id=0 cause=context",
		" pool api_id=0 action=create pool=0xa0",
		" pool api_id=0 action=threshold",
		" graph api_id=0 action=instantiate graph=0x1 exec=0x2",
		" graph api_id=0 action=launch graph=0 exec=0x2",
		" migrate api_id=0 action=prefetch",
		" failure api_id=cuMemAlloc_v2 kind=linear",
		"result=out of memory caller_api=cudaMalloc address=0 stream=0 pool=0\n",
		" free api_id=cuMemFree_v2",
		" caller_api=0\n",
	};
	struct vt_record record;
	struct loaded loaded;

	(void)state;
	load(&loaded, true);
	assert_int_equal(vt_reader_rewind(loaded.replay->reader), 0);
	while (vt_reader_next(loaded.replay->reader, &record) == 1)
		dump_text(loaded.style.out, loaded.replay->model, &record);
	CHECK_ORDER(&loaded, expected);
	unload(&loaded);
}

static void test_signed_bytes(void **state)
{
	(void)state;
	assert_string_equal(format_signed_bytes(0).text, "0 B");
	assert_string_equal(format_signed_bytes(1536).text, "1.5 KiB");
	assert_string_equal(format_signed_bytes(-1536).text, "-1.5 KiB");
	assert_string_equal(format_signed_bytes(INT64_MIN).text, "-8.0 EiB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_timeline),
		cmocka_unit_test(test_inactive),
		cmocka_unit_test(test_dump),
		cmocka_unit_test(test_signed_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
