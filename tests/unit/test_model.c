/* tools/model: records in, memory out. Small stories with known answers, then random ones against a
 * plain recount. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/story.h"

static void test_books(void **state)
{
	struct story story = begin(1);
	const struct model_totals *linear = totals(&story, 0, VT_KIND_LINEAR);

	(void)state;
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, 3 * MIB, 1);
	alloc(&story, VT_KIND_LINEAR, 0, 0x2000000, 5 * MIB, 1);
	give_back(&story, 0x1000000, 0);
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, 1 * MIB, 2);
	assert_int_equal(linear->live_bytes, 6 * MIB);
	assert_int_equal(linear->n_live, 2);
	assert_int_equal(linear->peak_live_bytes, 8 * MIB);
	assert_int_equal(linear->n_allocs, 3);
	assert_int_equal(linear->alloc_bytes, 9 * MIB);
	assert_int_equal(linear->n_frees, 1);
	assert_int_equal(linear->free_bytes, 3 * MIB);
	assert_int_equal(site(&story, 1)->live_bytes, 5 * MIB);
	assert_int_equal(site(&story, 1)->n_live, 1);
	assert_int_equal(site(&story, 1)->first_ns, 100);
	assert_int_equal(site(&story, 1)->last_ns, 101);
	assert_int_equal(site(&story, 2)->live_bytes, 1 * MIB);
	model_free(story.model);
}

/* Frees that fail, free nothing, or free what was never seen; and an allocation that shows that a
 * free was missed. */
static void test_odd_frees(void **state)
{
	struct story story = begin(1);
	const struct model_totals *linear = totals(&story, 0, VT_KIND_LINEAR);
	const struct model_failure *failure;

	(void)state;
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, 3 * MIB, 1);
	give_back(&story, 0x1000000, 700);
	give_back(&story, 0x1000000, 700);
	assert_int_equal(linear->n_live, 1);
	failure = story.model->failures;
	assert_int_equal(HASH_COUNT(story.model->failures), 1);
	assert_int_equal(failure->key.refusal, MODEL_REFUSED_FREE);
	assert_int_equal(failure->key.result, 700);
	assert_int_equal(failure->n_calls, 2);
	assert_int_equal(failure->bytes, 6 * MIB);
	give_back(&story, 0, 0);
	assert_int_equal(story.model->n_unknown_frees, 0);
	give_back(&story, 0x77000000, 0);
	assert_int_equal(story.model->n_unknown_frees, 1);
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, 1 * MIB, 2);
	assert_int_equal(story.model->n_missed_frees, 1);
	assert_int_equal(linear->live_bytes, 1 * MIB);
	assert_int_equal(tracked(&story, 0), PAGE);
	model_free(story.model);
}

/* Up to 1 MiB share 2 MiB pages, which go when the last block in them goes; more takes whole pages.
 */
static void test_pages(void **state)
{
	struct story story = begin(2);

	(void)state;
	alloc(&story, VT_KIND_LINEAR, 0, PAGE, 512, 1);
	alloc(&story, VT_KIND_LINEAR, 0, PAGE + 512, MIB, 1);
	assert_int_equal(tracked(&story, 0), PAGE);
	alloc(&story, VT_KIND_LINEAR, 0, 2 * PAGE, 1, 1);
	assert_int_equal(tracked(&story, 0), 2 * PAGE);
	alloc(&story, VT_KIND_LINEAR, 0, 8 * PAGE, MIB + 1, 1);
	alloc(&story, VT_KIND_LINEAR, 0, 16 * PAGE, PAGE + 1, 1);
	assert_int_equal(tracked(&story, 0), 5 * PAGE);
	assert_int_equal(tracked(&story, 1), 0);
	give_back(&story, PAGE, 0);
	assert_int_equal(tracked(&story, 0), 5 * PAGE);
	give_back(&story, PAGE + 512, 0);
	assert_int_equal(tracked(&story, 0), 4 * PAGE);
	give_back(&story, 16 * PAGE, 0);
	assert_int_equal(tracked(&story, 0), 2 * PAGE);
	assert_int_equal(model_device_find(story.model, 0)->peak_tracked_bytes, 5 * PAGE);
	assert_int_equal(model_device_find(story.model, 0)->peak_time_ns, 104);
	model_free(story.model);
}

static void test_what_is_tracked(void **state)
{
	struct story story = begin(1);

	(void)state;
	alloc(&story, VT_KIND_POOL, 0, 0x1000000, 3 * MIB + 5, 1);
	assert_int_equal(tracked(&story, 0), 3 * MIB + 5);
	alloc(&story, VT_KIND_MANAGED, 0, 0x2000000, 7 * MIB, 1);
	alloc(&story, VT_KIND_SHARED, 0, 0x3000000, 7 * MIB, 1);
	assert_int_equal(tracked(&story, 0), 3 * MIB + 5);
	assert_int_equal(totals(&story, 0, VT_KIND_MANAGED)->live_bytes, 7 * MIB);
	alloc(&story, VT_KIND_PINNED, -1, 0x4000000, 2 * MIB, 1);
	alloc(&story, VT_KIND_REGISTERED, -1, 0x5000000, 1 * MIB, 1);
	assert_int_equal(totals(&story, MODEL_DEVICE_HOST, VT_KIND_PINNED)->live_bytes, 2 * MIB);
	assert_int_equal(
		totals(&story, MODEL_DEVICE_HOST, VT_KIND_REGISTERED)->live_bytes, 1 * MIB);
	/* cuMemFree takes pool memory too. */
	give_back(&story, 0x1000000, 0);
	assert_int_equal(totals(&story, 0, VT_KIND_POOL)->n_frees, 1);
	assert_int_equal(tracked(&story, 0), 0);
	model_free(story.model);
}

static void test_unknown_device(void **state)
{
	struct story one = begin(1), two = begin(2);

	(void)state;
	alloc(&one, VT_KIND_LINEAR, -1, 0x1000000, PAGE, 1);
	assert_int_equal(tracked(&one, 0), PAGE);
	alloc(&two, VT_KIND_LINEAR, -1, 0x1000000, PAGE, 1);
	assert_int_equal(tracked(&two, 0) + tracked(&two, 1), 0);
	assert_int_equal(tracked(&two, MODEL_DEVICE_UNKNOWN), PAGE);
	alloc(&two, VT_KIND_LINEAR, 1 << 20, 0x5000000, PAGE, 1);
	assert_int_equal(tracked(&two, MODEL_DEVICE_UNKNOWN), 2 * PAGE);
	assert_int_equal(two.model->n_devices, 2);
	model_free(one.model);
	model_free(two.model);
}

static void handle_create(struct story *story, uint64_t handle, uint64_t bytes, uint64_t location)
{
	apply(story, (struct vt_record){.kind = VT_REC_handle_create,
			     .handle_create = {.handle = handle,
				     .bytes = bytes,
				     .device = location == 1 ? 0 : -1,
				     .location = location,
				     .stack_id = 1}});
}

static void handle_release(struct story *story, uint64_t handle)
{
	apply(story, (struct vt_record){
			     .kind = VT_REC_handle_release, .handle_release = {.handle = handle}});
}

static void map(struct story *story, uint64_t address, uint64_t bytes, uint64_t handle)
{
	apply(story, (struct vt_record){.kind = VT_REC_map,
			     .map = {.address = address, .bytes = bytes, .handle = handle}});
}

static void unmap(struct story *story, uint64_t address, uint64_t bytes)
{
	apply(story, (struct vt_record){
			     .kind = VT_REC_unmap, .unmap = {.address = address, .bytes = bytes}});
}

/* Physical memory lives while it is referenced or mapped, whichever ends last. */
static void test_vmm(void **state)
{
	struct story story = begin(1);
	const struct model_totals *vmm = totals(&story, 0, VT_KIND_VMM);

	(void)state;
	apply(&story, (struct vt_record){.kind = VT_REC_reserve,
			      .reserve = {.address = 0x10000000, .bytes = 64 * MIB}});
	assert_int_equal(story.model->reserved_bytes, 64 * MIB);
	assert_int_equal(tracked(&story, 0), 0);
	handle_create(&story, 5, PAGE, 1);
	handle_create(&story, 6, 2 * PAGE, 1);
	map(&story, 0x10000000, PAGE, 5);
	map(&story, 0x10000000 + PAGE, 2 * PAGE, 6);
	handle_release(&story, 5);
	assert_int_equal(vmm->live_bytes, 3 * PAGE);
	/* The number 5 may be given out again while the first memory of that number is still
	 * mapped. */
	handle_create(&story, 5, 4 * PAGE, 1);
	assert_int_equal(vmm->live_bytes, 7 * PAGE);
	assert_int_equal(vmm->n_live, 3);
	unmap(&story, 0x10000000, 3 * PAGE);
	assert_int_equal(vmm->live_bytes, 6 * PAGE);
	handle_release(&story, 6);
	handle_release(&story, 5);
	assert_int_equal(vmm->live_bytes, 0);
	assert_int_equal(tracked(&story, 0), 0);
	assert_int_equal(vmm->n_frees, 3);
	assert_int_equal(vmm->peak_live_bytes, 7 * PAGE);
	handle_release(&story, 5);
	assert_int_equal(story.model->n_unknown_frees, 1);
	apply(&story, (struct vt_record){.kind = VT_REC_unreserve,
			      .unreserve = {.address = 0x10000000, .bytes = 64 * MIB}});
	assert_int_equal(story.model->reserved_bytes, 0);
	model_free(story.model);
}

static void test_vmm_on_host(void **state)
{
	struct story story = begin(1);

	(void)state;
	handle_create(&story, 5, PAGE, 2);
	assert_int_equal(tracked(&story, 0), 0);
	assert_int_equal(totals(&story, MODEL_DEVICE_HOST, VT_KIND_VMM)->live_bytes, PAGE);
	model_free(story.model);
}

static void test_context_end(void **state)
{
	struct story story = begin(2);

	(void)state;
	context(&story, VT_CONTEXT_CREATE, 1);
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, PAGE, 1);
	alloc(&story, VT_KIND_LINEAR, 1, 0x2000000, PAGE, 2);
	context(&story, VT_CONTEXT_DESTROY, 1);
	assert_int_equal(tracked(&story, 0), 0);
	assert_int_equal(tracked(&story, 1), PAGE);
	assert_int_equal(totals(&story, 0, VT_KIND_LINEAR)->n_teardown, 1);
	assert_int_equal(totals(&story, 0, VT_KIND_LINEAR)->n_frees, 0);
	assert_int_equal(site(&story, 1)->teardown_bytes, PAGE);
	assert_int_equal(site(&story, 1)->n_live, 0);
	model_free(story.model);
}

/* The runtime lets go of the primary context when the process exits: what is live then stays live,
 * unless it goes on. */
static void test_primary_context(void **state)
{
	struct story story = begin(1);

	(void)state;
	context(&story, VT_CONTEXT_RETAIN, 1);
	context(&story, VT_CONTEXT_RETAIN, 1);
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, PAGE, 1);
	alloc(&story, VT_KIND_LINEAR, 0, 0x2000000, PAGE, 1);
	context(&story, VT_CONTEXT_RELEASE, 1);
	context(&story, VT_CONTEXT_RELEASE, 1);
	assert_int_equal(tracked(&story, 0), 2 * PAGE);
	give_back(&story, 0x2000000, 0);
	assert_int_equal(tracked(&story, 0), PAGE);
	context(&story, VT_CONTEXT_RETAIN, 1);
	assert_int_equal(tracked(&story, 0), 0);
	assert_int_equal(totals(&story, 0, VT_KIND_LINEAR)->n_teardown, 1);
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, PAGE, 1);
	assert_int_equal(story.model->n_missed_frees, 0);
	context(&story, VT_CONTEXT_RESET, 1);
	assert_int_equal(totals(&story, 0, VT_KIND_LINEAR)->n_teardown, 2);
	model_free(story.model);
}

static void check_copy(struct story *story, uint64_t stated, uint64_t dst, uint64_t src,
	uint32_t direction, uint32_t host_kind)
{
	static uint64_t stack_id = 1000;

	apply(story, (struct vt_record){.kind = VT_REC_copy,
			     .copy = {.direction = stated,
				     .device = 0,
				     .dst = dst,
				     .src = src,
				     .bytes = 70000,
				     .flags = VT_COPY_ASYNC,
				     .stack_id = ++stack_id,
				     .duration_ns = 5}});
	for (const struct model_copy *copy = story->model->copies; copy; copy = copy->hh.next) {
		if (copy->key.stack_id != stack_id)
			continue;
		assert_string_equal(
			model_direction_name(copy->key.direction), model_direction_name(direction));
		assert_int_equal(copy->key.host_kind, host_kind);
		assert_int_equal(copy->n_calls, 1);
		assert_int_equal(copy->n_async, 1);
		assert_int_equal(copy->n_small, 0);
		assert_int_equal(copy->bytes, 70000);
		assert_int_equal(copy->host_time_ns, 5);
		return;
	}
	fail_msg("the copy was not booked");
}

static void test_copies(void **state)
{
	struct story story = begin(2);
	const uint64_t here = 0x1000000, there = 0x2000000, pinned = 0x3000000,
		       registered = 0x4000000, managed = 0x5000000, mapped = 0x6000000,
		       pageable = 0x7000000;

	(void)state;
	alloc(&story, VT_KIND_LINEAR, 0, here, PAGE, 1);
	alloc(&story, VT_KIND_POOL, 1, there, PAGE, 1);
	alloc(&story, VT_KIND_PINNED, -1, pinned, PAGE, 1);
	alloc(&story, VT_KIND_REGISTERED, -1, registered, PAGE, 1);
	alloc(&story, VT_KIND_MANAGED, 0, managed, PAGE, 1);
	handle_create(&story, 5, PAGE, 1);
	map(&story, mapped, PAGE, 5);
	check_copy(&story, VT_DIR_UNIFIED, here + 8, pageable, VT_DIR_H2D, MODEL_HOST_PAGEABLE);
	check_copy(&story, VT_DIR_UNIFIED, here, pinned + PAGE - 1, VT_DIR_H2D, MODEL_HOST_PINNED);
	check_copy(&story, VT_DIR_UNIFIED, here, pinned + PAGE, VT_DIR_H2D, MODEL_HOST_PAGEABLE);
	check_copy(&story, VT_DIR_UNIFIED, registered, there, VT_DIR_D2H, MODEL_HOST_REGISTERED);
	check_copy(&story, VT_DIR_UNIFIED, there, here, VT_DIR_P2P, MODEL_HOST_NONE);
	check_copy(&story, VT_DIR_UNIFIED, mapped + 4, here, VT_DIR_D2D, MODEL_HOST_NONE);
	check_copy(&story, VT_DIR_UNIFIED, here, managed, VT_DIR_D2D, MODEL_HOST_MANAGED);
	check_copy(&story, VT_DIR_UNIFIED, managed, pageable, VT_DIR_H2D, MODEL_HOST_PAGEABLE);
	check_copy(&story, VT_DIR_UNIFIED, pinned, pageable, VT_DIR_H2H, MODEL_HOST_PAGEABLE);
	check_copy(&story, VT_DIR_H2D, here, pinned, VT_DIR_H2D, MODEL_HOST_PINNED);
	check_copy(&story, VT_DIR_H2D, 0x99000000, pageable, VT_DIR_H2D, MODEL_HOST_PAGEABLE);
	check_copy(&story, VT_DIR_D2H, pageable, 0x99000000, VT_DIR_D2H, MODEL_HOST_PAGEABLE);
	check_copy(&story, VT_DIR_D2D, 0x98000000, 0x99000000, VT_DIR_D2D, MODEL_HOST_NONE);
	check_copy(&story, VT_DIR_P2P, here, there, VT_DIR_P2P, MODEL_HOST_NONE);
	model_free(story.model);
}

static void test_samples(void **state)
{
	struct story story = begin(1);
	const struct model_device *dev = model_device_find(story.model, 0);
	struct vt_record sample = {.kind = VT_REC_memory,
		.memory = {.device = 0, .free_bytes = 40 * MIB, .total_bytes = 64 * MIB}};

	(void)state;
	alloc(&story, VT_KIND_LINEAR, 0, 0x1000000, 4 * PAGE, 1);
	apply(&story, sample);
	assert_true(dev->peak_sample.seen);
	assert_int_equal(dev->peak_sample.used_bytes, 24 * MIB);
	/* A new peak was not sampled yet; and what is sampled later is not of the peak. */
	alloc(&story, VT_KIND_LINEAR, 0, 0x9000000, 4 * PAGE, 1);
	assert_false(dev->peak_sample.seen);
	give_back(&story, 0x9000000, 0);
	sample.memory.free_bytes = 41 * MIB;
	apply(&story, sample);
	assert_false(dev->peak_sample.seen);
	assert_int_equal(dev->last_sample.used_bytes, 23 * MIB);
	assert_int_equal(dev->most_used.used_bytes, 24 * MIB);
	model_free(story.model);
}

static void test_threads_of_a_site(void **state)
{
	struct story story = begin(1);
	static const uint32_t tids[] = {5, 3, 5, 9, 3, 4};

	(void)state;
	for (unsigned int i = 0; i < sizeof(tids) / sizeof(*tids); i++)
		apply(&story,
			(struct vt_record){.kind = VT_REC_alloc,
				.tid = tids[i],
				.alloc = {
					.kind = VT_KIND_LINEAR, .address = i + 1, .stack_id = 7}});
	assert_int_equal(site(&story, 7)->n_tids, 4);
	model_free(story.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_books),
		cmocka_unit_test(test_odd_frees),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_what_is_tracked),
		cmocka_unit_test(test_unknown_device),
		cmocka_unit_test(test_vmm),
		cmocka_unit_test(test_vmm_on_host),
		cmocka_unit_test(test_context_end),
		cmocka_unit_test(test_primary_context),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_threads_of_a_site),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
