/* tools/model and tools/analysis: allocators above the driver, their segments, blocks and waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/coverage.h"
#include "analysis/layout.h"
#include "analysis/sites.h"
#include "unit/story.h"

#define TORCH	1
#define ARENA	256
#define SEGMENT 0x10000000ull
#define OTHER	0x20000000ull
#define RANGE	0x40000000ull
#define KEPT_AT 7 /* stack of segments */

static void announce(struct story *story, uint64_t id, uint64_t layer, int64_t ordinal)
{
	apply(story, (struct vt_record){.kind = VT_REC_allocator,
			     .allocator = {.allocator_id = id,
				     .layer = layer,
				     .device = ordinal,
				     .name = {"torch", 5},
				     .version = {"2.11", 4}}});
}

static void totals_are(struct story *story, uint64_t allocated, uint64_t reserved)
{
	apply(story, (struct vt_record){.kind = VT_REC_block_totals,
			     .block_totals = {.allocator_id = TORCH,
				     .allocated_bytes = allocated,
				     .reserved_bytes = reserved}});
}

static void take(struct story *story, uint64_t address, uint64_t bytes, uint64_t stack_id,
	int64_t reserved_jump)
{
	apply(story, (struct vt_record){.kind = VT_REC_block_alloc,
			     .block_alloc = {.allocator_id = TORCH,
				     .address = address,
				     .bytes = bytes,
				     .stack_id = stack_id,
				     .reserved_jump = reserved_jump}});
}

static void drop(struct story *story, uint64_t address, uint64_t bytes)
{
	apply(story,
		(struct vt_record){.kind = VT_REC_block_free,
			.block_free = {.allocator_id = TORCH, .address = address, .bytes = bytes}});
}

static void event(struct story *story, uint64_t action, uint64_t number, uint64_t address,
	uint64_t caller, uint64_t distance)
{
	apply(story, (struct vt_record){.kind = VT_REC_stream_event,
			     .stream_event = {.action = action,
				     .event = number,
				     .address = address,
				     .caller = caller,
				     .distance = distance}});
}

static void wait_for(struct story *story, uint64_t number, uint64_t address)
{
	event(story, VT_EVENT_WAIT, number, address, 0xca11, 64);
}

static void done(struct story *story, uint64_t number)
{
	event(story, VT_EVENT_QUERIED, number, 0, 0, 0);
}

static const struct model_allocator *torch(const struct story *story)
{
	const struct model_allocator *allocator = model_allocator_find(story->model, TORCH);

	assert_non_null(allocator);
	return allocator;
}

/* One segment of 2 MiB with a first block of half a MiB. */
static struct story begin_torch(void)
{
	struct story story = begin(1);

	announce(&story, TORCH, VT_LAYER_TORCH, 0);
	alloc(&story, VT_KIND_LINEAR, 0, SEGMENT, PAGE, KEPT_AT);
	totals_are(&story, MIB / 2, PAGE);
	take(&story, SEGMENT, MIB / 2, 1, 0);
	return story;
}

static void test_books(void **state)
{
	struct story story = begin_torch();
	const struct model_allocator *allocator = torch(&story);

	(void)state;
	take(&story, SEGMENT + MIB / 2, MIB / 4, 2, 0);
	alloc(&story, VT_KIND_LINEAR, 0, OTHER, 10 * PAGE, KEPT_AT);
	take(&story, OTHER, 9 * PAGE, 1, 10 * PAGE);
	assert_int_equal(allocator->live_bytes, MIB * 3 / 4 + 9 * PAGE);
	assert_int_equal(allocator->reserved_bytes, 11 * PAGE);
	assert_int_equal(allocator->split_bytes, PAGE - MIB * 3 / 4 + PAGE);
	drop(&story, OTHER, 9 * PAGE);
	/* A segment that is wholly free is not split. */
	assert_int_equal(allocator->split_bytes, PAGE - MIB * 3 / 4);
	assert_int_equal(allocator->peak_split.bytes, PAGE - MIB * 3 / 4 + PAGE);
	assert_int_equal(allocator->peak_live.bytes, MIB * 3 / 4 + 9 * PAGE);
	assert_int_equal(allocator->peak_reserved.bytes, 11 * PAGE);
	give_back(&story, OTHER, 0);
	assert_int_equal(allocator->reserved_bytes, PAGE);
	assert_int_equal(allocator->segments.n_nodes, 1);
	assert_int_equal(allocator->n_lost_pieces, 0);
	/* The bytes are the driver's, once. */
	assert_int_equal(tracked(&story, 0), PAGE);
	assert_int_equal(totals(&story, 0, VT_KIND_LINEAR)->n_allocs, 2);
	model_free(story.model);
}

/* Every sum that is told is compared; what is wrong is counted, and not hidden by what follows. */
static void test_self_check(void **state)
{
	struct story story = begin_torch();
	const struct model_check *check = &torch(&story)->check;

	(void)state;
	take(&story, SEGMENT + MIB / 2, 512, 2, 0);
	assert_int_equal(check->n_reports, 2);
	assert_int_equal(check->n_allocated_differ, 0);
	assert_int_equal(check->n_reserved_differ, 0);
	/* A segment that was not seen, with a block in it. */
	take(&story, OTHER, 512, 2, 10 * PAGE);
	assert_int_equal(check->n_reports, 3);
	assert_int_equal(check->n_reserved_differ, 1);
	assert_int_equal(check->n_allocated_differ, 0);
	assert_int_equal(check->first_ns, story.now - 1);
	assert_int_equal(torch(&story)->outside_bytes, 512);
	/* A block that was not seen: its sum is in the totals, restated now and then. */
	totals_are(&story, MIB / 2 + 3 * 512 + 4096, 11 * PAGE);
	take(&story, SEGMENT + MIB, 512, 2, 0);
	assert_int_equal(check->n_allocated_differ, 1);
	drop(&story, SEGMENT + MIB, 512);
	assert_int_equal(check->n_allocated_differ, 2);
	assert_int_equal(check->n_reports, 5);
	model_free(story.model);
}

/* A trace that begins in the middle is not compared before the first sums. */
static void test_check_begins_with_totals(void **state)
{
	struct story story = begin(1);

	(void)state;
	announce(&story, TORCH, VT_LAYER_TORCH, 0);
	drop(&story, SEGMENT, 512);
	assert_false(torch(&story)->check.known);
	assert_int_equal(torch(&story)->check.n_reports, 0);
	assert_int_equal(torch(&story)->n_unknown_frees, 1);
	model_free(story.model);
}

static void test_pending(void **state)
{
	struct story story = begin_torch();
	const struct model_allocator *allocator = torch(&story);

	(void)state;
	take(&story, SEGMENT + MIB, 4096, 2, 0);
	wait_for(&story, 1, SEGMENT + MIB);
	wait_for(&story, 2, SEGMENT + MIB);
	drop(&story, SEGMENT + MIB, 4096);
	assert_int_equal(allocator->live_bytes, MIB / 2);
	assert_int_equal(allocator->pending_bytes, 4096);
	assert_int_equal(allocator->split_bytes, PAGE - MIB / 2 - 4096);
	done(&story, 2);
	assert_int_equal(allocator->pending_bytes, 4096);
	done(&story, 1);
	assert_int_equal(allocator->pending_bytes, 0);
	assert_int_equal(allocator->split_bytes, PAGE - MIB / 2);
	/* Without events before it a free is a free. */
	take(&story, SEGMENT + MIB, 4096, 2, 0);
	drop(&story, SEGMENT + MIB, 4096);
	assert_int_equal(allocator->pending_bytes, 0);
	model_free(story.model);
}

/* What ends a wait beside a query: the event is recorded again or destroyed, the block is handed
 * out again, or the segment goes. */
static void test_waits_end(void **state)
{
	struct story story = begin_torch();
	const struct model_allocator *allocator = torch(&story);

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		take(&story, SEGMENT + MIB + i * 4096, 4096, 2, 0);
		wait_for(&story, 10 + i, SEGMENT + MIB + i * 4096);
		drop(&story, SEGMENT + MIB + i * 4096, 4096);
	}
	assert_int_equal(allocator->pending.n_nodes, 4);
	event(&story, VT_EVENT_DESTROYED, 10, 0, 0, 0);
	assert_int_equal(allocator->pending.n_nodes, 3);
	take(&story, SEGMENT + MIB / 2, 4096, 2, 0);
	wait_for(&story, 11, SEGMENT + MIB / 2);
	drop(&story, SEGMENT + MIB / 2, 4096);
	assert_int_equal(allocator->pending.n_nodes, 3);
	take(&story, SEGMENT + MIB + 2 * 4096, 512, 2, 0);
	assert_int_equal(allocator->pending.n_nodes, 2);
	assert_int_equal(allocator->n_missed_frees, 0);
	give_back(&story, SEGMENT, 0);
	assert_int_equal(allocator->pending.n_nodes, 0);
	assert_int_equal(allocator->pending_bytes, 0);
	assert_int_equal(allocator->n_lost_pieces, 2);
	assert_int_equal(allocator->live_bytes, 0);
	assert_int_equal(allocator->reserved_bytes, 0);
	assert_int_equal(allocator->split_bytes, 0);
	done(&story, 13);
	model_free(story.model);
}

/* Events recorded by somebody else are near a free only by chance: a place that is seen with two
 * distances has never been the allocator's. */
static void test_chance(void **state)
{
	struct story story = begin_torch();
	const struct model_allocator *allocator = torch(&story);

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		take(&story, SEGMENT + MIB + i * 4096, 4096, 2, 0);
		event(&story, VT_EVENT_WAIT, 20 + i, SEGMENT + MIB + i * 4096, 0xbad,
			64 + i / 2 * 8);
		drop(&story, SEGMENT + MIB + i * 4096, 4096);
		assert_int_equal(allocator->pending.n_nodes, i == 2 ? 0 : i + 1);
	}
	/* Of another thread, or for another block. */
	take(&story, SEGMENT + MIB, 4096, 2, 0);
	apply(&story, (struct vt_record){.kind = VT_REC_stream_event,
			      .tid = 2,
			      .stream_event = {.action = VT_EVENT_WAIT,
				      .event = 30,
				      .address = SEGMENT + MIB,
				      .caller = 1}});
	event(&story, VT_EVENT_WAIT, 31, SEGMENT + 4096, 1, 0);
	drop(&story, SEGMENT + MIB, 4096);
	assert_int_equal(allocator->pending.n_nodes, 0);
	model_free(story.model);
}

static void map(struct story *story, uint64_t handle, uint64_t address, uint64_t bytes)
{
	apply(story, (struct vt_record){.kind = VT_REC_handle_create,
			     .handle_create = {.handle = handle,
				     .bytes = bytes,
				     .location = 1,
				     .stack_id = KEPT_AT}});
	apply(story, (struct vt_record){.kind = VT_REC_map,
			     .map = {.handle = handle, .address = address, .bytes = bytes}});
}

static void unmap(struct story *story, uint64_t address, uint64_t bytes)
{
	apply(story, (struct vt_record){
			     .kind = VT_REC_unmap, .unmap = {.address = address, .bytes = bytes}});
}

static struct story begin_expandable(void)
{
	struct story story = begin(1);

	announce(&story, TORCH, VT_LAYER_TORCH, 0);
	apply(&story, (struct vt_record){.kind = VT_REC_reserve,
			      .reserve = {.address = RANGE, .bytes = 1 << 30}});
	for (uint64_t i = 0; i < 3; i++)
		map(&story, 100 + i, RANGE + i * PAGE, PAGE);
	return story;
}

/* Pages are segments as soon as a block covers them; free ones are never split. */
static void test_expandable(void **state)
{
	struct story story = begin_expandable();
	const struct model_allocator *allocator = torch(&story);
	struct layout layout;

	(void)state;
	take(&story, RANGE, PAGE + MIB, 1, 0);
	assert_int_equal(allocator->reserved_bytes, 2 * PAGE);
	take(&story, RANGE + PAGE + MIB, PAGE, 2, 0);
	assert_int_equal(allocator->reserved_bytes, 3 * PAGE);
	assert_int_equal(allocator->split_bytes, 0);
	drop(&story, RANGE, PAGE + MIB);
	assert_int_equal(allocator->split_bytes, 0);
	layout_make(&layout, story.model, allocator);
	assert_int_equal(layout.n_segments, 1);
	assert_int_equal(layout.segments[0].bytes, 3 * PAGE);
	assert_int_equal(layout.n_ranges, 3);
	assert_int_equal(layout.ranges[0].state, LAYOUT_INACTIVE);
	assert_int_equal(layout.ranges[1].bytes, PAGE);
	assert_int_equal(layout.ranges[2].address, RANGE + 2 * PAGE + MIB);
	layout_release(&layout);
	unmap(&story, RANGE, PAGE);
	assert_int_equal(allocator->reserved_bytes, 2 * PAGE);
	assert_int_equal(allocator->live_bytes, PAGE);
	assert_int_equal(site(&story, KEPT_AT)->segment_bytes, 2 * PAGE);
	model_free(story.model);
}

/* Ranges that were reserved apart are segments apart, also where they touch. */
static void test_layout_of_neighbours(void **state)
{
	struct story story = begin_expandable();
	struct layout layout;

	(void)state;
	apply(&story, (struct vt_record){.kind = VT_REC_reserve,
			      .reserve = {.address = RANGE + (1 << 30), .bytes = 1 << 30}});
	map(&story, 200, RANGE + (1 << 30) - PAGE, PAGE);
	map(&story, 201, RANGE + (1 << 30), PAGE);
	take(&story, RANGE + (1 << 30) - PAGE, PAGE, 1, 0);
	take(&story, RANGE + (1 << 30), MIB, 1, 0);
	layout_make(&layout, story.model, torch(&story));
	assert_int_equal(layout.n_segments, 2);
	assert_int_equal(layout.segments[0].n_ranges, 1);
	assert_int_equal(layout.segments[1].n_ranges, 2);
	layout_release(&layout);
	model_free(story.model);
}

/* No byte is in two rows, and all rows add up to what the driver gave. */
static void test_rows(void **state)
{
	struct story story = begin_torch();
	struct site_list list = {0};
	uint64_t sum = 0;

	(void)state;
	alloc(&story, VT_KIND_LINEAR, 0, OTHER, 5 * PAGE, KEPT_AT);
	alloc(&story, VT_KIND_LINEAR, 0, OTHER + 0x1000000, 3 * PAGE, 8);
	take(&story, SEGMENT + MIB, 4096, 2, 0);
	site_list_add_live(&list, story.model);
	site_list_sort(&list);
	assert_int_equal(list.n_rows, 5);
	for (size_t i = 0; i < list.n_rows; i++)
		sum += list.rows[i].bytes;
	assert_int_equal(sum, 9 * PAGE);
	/* The allocation from the segments' own stack that holds no block is the driver's. */
	assert_int_equal(list.rows[0].bytes, 5 * PAGE);
	assert_int_equal(list.rows[0].level, SITE_DRIVER);
	assert_int_equal(list.rows[0].count, 1);
	assert_int_equal(list.rows[2].level, SITE_IDLE);
	assert_int_equal(list.rows[2].bytes, PAGE - MIB / 2 - 4096);
	assert_int_equal(list.rows[3].level, SITE_BLOCK);
	assert_int_equal(list.rows[3].allocator_id, TORCH);
	site_list_release(&list);
	model_free(story.model);
}

static void tell(struct story *story, uint64_t address, uint64_t bytes)
{
	apply(story, (struct vt_record){.kind = VT_REC_block_alloc,
			     .block_alloc = {.allocator_id = ARENA,
				     .address = address,
				     .bytes = bytes,
				     .stack_id = 3}});
}

/* An allocator whose memory is another's, or of no known place: its blocks are known, but no row
 * counts their bytes. */
static void test_outside(void **state)
{
	struct story story = begin_torch();
	const struct model_allocator *arena;
	struct site_list list = {0};

	(void)state;
	announce(&story, ARENA, VT_LAYER_TOLD, -1);
	tell(&story, SEGMENT + 4096, 512);
	tell(&story, OTHER, 1024);
	arena = model_allocator_find(story.model, ARENA);
	assert_int_equal(arena->live_bytes, 1536);
	assert_int_equal(arena->outside_bytes, 1536);
	assert_int_equal(arena->reserved_bytes, 0);
	assert_int_equal(arena->device, MODEL_DEVICE_UNKNOWN);
	assert_false(arena->check.known);
	site_list_add_live(&list, story.model);
	assert_int_equal(list.n_rows, 2);
	site_list_release(&list);
	/* On the host and elsewhere. */
	alloc(&story, VT_KIND_PINNED, -1, OTHER, MIB, 4);
	tell(&story, OTHER, 2048);
	assert_int_equal(arena->n_missed_frees, 1);
	assert_int_equal(arena->reserved_bytes, MIB);
	assert_int_equal(arena->holdings[0].device->ordinal, MODEL_DEVICE_HOST);
	model_free(story.model);
}

/* Memory whose size is not known still ends what lies in it. */
static void test_unsized(void **state)
{
	struct story story = begin(1);

	(void)state;
	announce(&story, TORCH, VT_LAYER_TORCH, 0);
	alloc(&story, VT_KIND_SHARED, 0, SEGMENT, 0, 1);
	take(&story, SEGMENT, 512, 2, 0);
	apply(&story, (struct vt_record){.kind = VT_REC_free,
			      .free = {.kind = VT_KIND_SHARED, .address = SEGMENT}});
	assert_int_equal(torch(&story)->live.n_nodes, 0);
	model_free(story.model);
}

static void test_streams(void **state)
{
	struct story story = begin_torch();
	const struct model_segment *segment;

	(void)state;
	apply(&story, (struct vt_record){.kind = VT_REC_block_stream,
			      .block_stream = {.allocator_id = TORCH,
				      .address = SEGMENT,
				      .stream = 35,
				      .flags = VT_STREAM_CAPTURED}});
	segment = model_segment_first(torch(&story));
	assert_true(segment->stream_known);
	assert_int_equal(segment->stream, 35);
	assert_true(segment->captured);
	/* A segment's stream is for life. */
	apply(&story, (struct vt_record){.kind = VT_REC_block_stream,
			      .block_stream = {.allocator_id = TORCH, .address = SEGMENT}});
	assert_int_equal(segment->stream, 35);
	model_free(story.model);
}

static void test_refusals(void **state)
{
	struct story story = begin_torch();
	const struct model_failure *failure;

	(void)state;
	apply(&story, (struct vt_record){.kind = VT_REC_block_failure,
			      .block_failure = {
				      .allocator_id = TORCH, .bytes = 40 * PAGE, .stack_id = 5}});
	failure = story.model->failures;
	assert_int_equal(failure->key.refusal, MODEL_REFUSED_BLOCK);
	assert_int_equal(failure->key.device, 0);
	assert_int_equal(failure->largest_bytes, 40 * PAGE);
	assert_int_equal(torch(&story)->n_failures, 1);
	model_free(story.model);
}

static void environment(struct story *story, const char *name, const char *value)
{
	struct vt_record record = {.kind = VT_REC_environment,
		.environment = {{name, strlen(name)}, {value, strlen(value)}}};

	model_apply(story->model, &record);
}

static struct story begin_loaded(void)
{
	static const char path[] = "/x/torch/lib/libc10_cuda.so";
	struct story story = begin(1);
	struct vt_record record = {.kind = VT_REC_module, .module = {.path = {path, strlen(path)}}};

	model_apply(story.model, &record);
	return story;
}

static void says(struct story *story, const char *words)
{
	struct torch_coverage coverage;

	torch_coverage_get(&coverage, story->model);
	assert_true(coverage.loaded);
	assert_false(coverage.blocks);
	assert_int_equal(coverage.n_limits, 1);
	assert_non_null(strstr(coverage.limits[0], words));
	model_free(story->model);
}

static void test_coverage(void **state)
{
	struct torch_coverage coverage;
	struct story story = begin(1);

	(void)state;
	torch_coverage_get(&coverage, story.model);
	assert_false(coverage.loaded);
	assert_int_equal(coverage.n_limits, 0);
	model_free(story.model);
	story = begin_loaded();
	says(&story, "plugged into it");
	story = begin_loaded();
	environment(&story, "PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync");
	says(&story, "cudaMallocAsync");
	/* Where both are set, the older one counts. */
	story = begin_loaded();
	environment(&story, "PYTORCH_CUDA_ALLOC_CONF", "");
	environment(&story, "PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync");
	says(&story, "plugged into it");
	story = begin_loaded();
	environment(&story, "PYTORCH_NO_CUDA_MEMORY_CACHING", "1");
	says(&story, "cache was off");
	story = begin_loaded();
	environment(&story, "VRAMTRACE_LAYERS", "driver");
	says(&story, "VRAMTRACE_LAYERS");
	story = begin_torch();
	torch_coverage_get(&coverage, story.model);
	assert_true(coverage.loaded && coverage.blocks);
	assert_int_equal(coverage.n_limits, 0);
	assert_int_equal(torch_version(story.model).bytes, 4);
	alloc(&story, VT_KIND_PINNED, -1, OTHER, PAGE, 1);
	torch_coverage_get(&coverage, story.model);
	assert_int_equal(coverage.n_limits, 1);
	model_free(story.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_books),
		cmocka_unit_test(test_self_check),
		cmocka_unit_test(test_check_begins_with_totals),
		cmocka_unit_test(test_pending),
		cmocka_unit_test(test_waits_end),
		cmocka_unit_test(test_chance),
		cmocka_unit_test(test_expandable),
		cmocka_unit_test(test_layout_of_neighbours),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_unsized),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_coverage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
