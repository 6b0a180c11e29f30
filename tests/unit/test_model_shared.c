/* tools/model: arrays, which have handles and no addresses; memory of others, which is never
 * counted; references to physical memory; and copies that touch any of these. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/story.h"

static void array_free(struct story *story, uint64_t handle)
{
	apply(story, (struct vt_record){.kind = VT_REC_free,
			     .free = {.kind = VT_KIND_ARRAY, .address = handle}});
}

/* An array's handle says nothing about addresses: the block at that address is another thing. */
static void test_arrays(void **state)
{
	struct story story = begin(2);
	const struct model_totals *arrays = totals(&story, 0, VT_KIND_ARRAY);
	const struct model_held *held = &model_device_find(story.model, 0)->held;

	(void)state;
	alloc(&story, VT_KIND_LINEAR, 1, 0x5000, 2 * PAGE, 1);
	alloc(&story, VT_KIND_ARRAY, 0, 0x5000, PAGE + 1, 2);
	assert_int_equal(story.model->n_missed_frees, 0);
	assert_int_equal(arrays->live_bytes, PAGE + 1);
	assert_int_equal(tracked(&story, 0), 2 * PAGE);
	assert_int_equal(tracked(&story, 1), 2 * PAGE);
	/* Small ones are packed. */
	alloc(&story, VT_KIND_ARRAY, 0, 0x6000, MIB, 2);
	alloc(&story, VT_KIND_ARRAY, 0, 0x7000, MIB - 512, 2);
	assert_int_equal(held->array_bytes, 3 * PAGE);
	alloc(&story, VT_KIND_ARRAY, 0, 0x8000, 513, 2);
	assert_int_equal(held->array_bytes, 4 * PAGE);
	array_free(&story, 0x8000);
	assert_int_equal(held->array_bytes, 3 * PAGE);
	array_free(&story, 0x5000);
	assert_int_equal(totals(&story, 1, VT_KIND_LINEAR)->n_live, 1);
	array_free(&story, 0x6000);
	array_free(&story, 0x7000);
	assert_int_equal(arrays->n_frees, 4);
	assert_int_equal(tracked(&story, 0), 0);
	give_back(&story, 0x5000, 0);
	assert_int_equal(tracked(&story, 1), 0);
	array_free(&story, 0x5000);
	assert_int_equal(story.model->n_unknown_frees, 1);
	alloc(&story, VT_KIND_ARRAY, 0, 0x5000, 4, 2);
	context(&story, VT_CONTEXT_DESTROY, 1);
	assert_int_equal(arrays->n_teardown, 1);
	assert_int_equal(tracked(&story, 0), 0);
	model_free(story.model);
}

static void test_shared(void **state)
{
	struct story story = begin(1);
	const struct model_totals *shared = totals(&story, 0, VT_KIND_SHARED);

	(void)state;
	alloc(&story, VT_KIND_SHARED, 0, 0x1000000, 0, 1);
	alloc(&story, VT_KIND_SHARED, 0, 0x2000000, 5 * PAGE, 1);
	assert_int_equal(shared->n_live, 2);
	assert_int_equal(shared->live_bytes, 5 * PAGE);
	assert_int_equal(tracked(&story, 0), 0);
	/* Mapped buffers are given back with cuMemFree. */
	give_back(&story, 0x2000000, 0);
	apply(&story, (struct vt_record){.kind = VT_REC_free,
			      .free = {.kind = VT_KIND_SHARED, .address = 0x1000000}});
	assert_int_equal(shared->n_live, 0);
	assert_int_equal(shared->n_frees, 2);
	assert_int_equal(story.model->n_unknown_frees, 0);
	model_free(story.model);
}

static void handle_create(struct story *story, uint64_t handle, uint64_t bytes, uint64_t sharing)
{
	apply(story, (struct vt_record){.kind = VT_REC_handle_create,
			     .handle_create = {.handle = handle,
				     .bytes = bytes,
				     .device = sharing ? -1 : 0,
				     .location = sharing ? 0 : 1,
				     .sharing = sharing,
				     .stack_id = 1}});
}

static void handle_release(struct story *story, uint64_t handle)
{
	apply(story, (struct vt_record){
			     .kind = VT_REC_handle_release, .handle_release = {.handle = handle}});
}

static void handle_retain(struct story *story, uint64_t handle, uint64_t address)
{
	apply(story, (struct vt_record){.kind = VT_REC_handle_retain,
			     .handle_retain = {.handle = handle, .address = address}});
}

static void map(
	struct story *story, uint64_t address, uint64_t bytes, uint64_t offset, uint64_t handle)
{
	apply(story, (struct vt_record){.kind = VT_REC_map,
			     .map = {.address = address,
				     .bytes = bytes,
				     .offset = offset,
				     .handle = handle}});
}

static void unmap(struct story *story, uint64_t address, uint64_t bytes)
{
	apply(story, (struct vt_record){
			     .kind = VT_REC_unmap, .unmap = {.address = address, .bytes = bytes}});
}

/* Memory is alive while any reference or mapping is: retained by handle, or by address when no
 * handle is left. */
static void test_retain(void **state)
{
	struct story story = begin(1);
	const struct model_totals *vmm = totals(&story, 0, VT_KIND_VMM);

	(void)state;
	handle_create(&story, 5, 2 * PAGE, VT_SHARING_OWN);
	map(&story, 0x10000000, 2 * PAGE, 0, 5);
	handle_retain(&story, 5, 0x10000000);
	handle_release(&story, 5);
	unmap(&story, 0x10000000, 2 * PAGE);
	assert_int_equal(vmm->n_live, 1);
	map(&story, 0x20000000, PAGE, 0, 5);
	map(&story, 0x30000000, PAGE, PAGE, 5);
	handle_release(&story, 5);
	assert_int_equal(vmm->live_bytes, 2 * PAGE);
	unmap(&story, 0x20000000, PAGE);
	/* All references are gone; another number stands for the same memory now. */
	handle_retain(&story, 6, 0x30000000 + 100);
	unmap(&story, 0x30000000, PAGE);
	assert_int_equal(vmm->live_bytes, 2 * PAGE);
	map(&story, 0x40000000, PAGE, 0, 6);
	handle_release(&story, 6);
	unmap(&story, 0x40000000, PAGE);
	assert_int_equal(vmm->n_live, 0);
	assert_int_equal(vmm->n_frees, 1);
	assert_int_equal(story.model->n_unknown_frees, 0);
	/* Nothing is known there: nothing is referred to. */
	handle_retain(&story, 7, 0x50000000);
	handle_release(&story, 7);
	assert_int_equal(story.model->n_unknown_frees, 1);
	apply(&story, (struct vt_record){.kind = VT_REC_handle_retain,
			      .handle_retain = {.handle = 8, .address = 1, .result = 1}});
	assert_int_equal(story.model->failures->key.refusal, MODEL_REFUSED_ADDRESS_SPACE);
	model_free(story.model);
}

/* A number that comes back while two numbers stand for the older memory. */
static void test_handle_comes_back(void **state)
{
	struct story story = begin(1);
	const struct model_totals *vmm = totals(&story, 0, VT_KIND_VMM);

	(void)state;
	handle_create(&story, 5, 2 * PAGE, VT_SHARING_OWN);
	map(&story, 0x10000000, 2 * PAGE, 0, 5);
	handle_retain(&story, 5, 0x10000000);
	handle_retain(&story, 6, 0x10000000);
	handle_create(&story, 5, 4 * PAGE, VT_SHARING_OWN);
	assert_int_equal(story.model->n_missed_frees, 1);
	assert_int_equal(vmm->live_bytes, 6 * PAGE);
	unmap(&story, 0x10000000, 2 * PAGE);
	handle_release(&story, 6);
	assert_int_equal(vmm->live_bytes, 4 * PAGE);
	model_free(story.model);
}

static void test_imported(void **state)
{
	struct story story = begin(1);
	const struct model_totals *shared = totals(&story, 0, VT_KIND_SHARED);

	(void)state;
	handle_create(&story, 5, 0, VT_SHARING_IMPORTED);
	handle_create(&story, 6, 8 * PAGE, VT_SHARING_MULTICAST);
	assert_int_equal(shared->n_live, 2);
	assert_int_equal(shared->live_bytes, 8 * PAGE);
	map(&story, 0x10000000, 2 * PAGE, PAGE, 5);
	assert_int_equal(shared->live_bytes, 8 * PAGE + 3 * PAGE);
	map(&story, 0x20000000, PAGE, 0, 5);
	map(&story, 0x30000000, 8 * PAGE, 0, 6);
	assert_int_equal(shared->live_bytes, 8 * PAGE + 3 * PAGE);
	assert_int_equal(site(&story, 1)->live_bytes, 8 * PAGE + 3 * PAGE);
	assert_int_equal(tracked(&story, 0), 0);
	assert_int_equal(totals(&story, 0, VT_KIND_VMM)->n_allocs, 0);
	handle_release(&story, 5);
	unmap(&story, 0x10000000, 4 * PAGE);
	unmap(&story, 0x20000000, PAGE);
	assert_int_equal(shared->live_bytes, 8 * PAGE);
	model_free(story.model);
}

struct copy {
	uint64_t direction, flags, dst, src, bytes;
};

static const struct model_copy *copy(struct story *story, struct copy given)
{
	static uint64_t stack_id = 1000;

	apply(story, (struct vt_record){.kind = VT_REC_copy,
			     .copy = {.direction = given.direction,
				     .flags = given.flags,
				     .device = 0,
				     .dst = given.dst,
				     .src = given.src,
				     .bytes = given.bytes,
				     .stack_id = ++stack_id,
				     .duration_ns = 5}});
	for (const struct model_copy *c = story->model->copies; c; c = c->hh.next)
		if (c->key.stack_id == stack_id)
			return c;
	fail_msg("the copy was not booked");
	return NULL;
}

static void check_copy(struct story *story, struct copy given, uint32_t direction, int dst, int src)
{
	const struct model_copy *c = copy(story, given);

	assert_string_equal(
		model_direction_name(c->key.direction), model_direction_name(direction));
	assert_int_equal(c->key.dst_device, dst);
	assert_int_equal(c->key.src_device, src);
}

/* The array's side is known by its handle, or else on the caller's device. */
static void test_copies_of_arrays(void **state)
{
	struct story story = begin(2);
	const uint64_t here = 0x1000000, pinned = 0x3000000, pageable = 0x7000000;

	(void)state;
	alloc(&story, VT_KIND_LINEAR, 0, here, PAGE, 1);
	alloc(&story, VT_KIND_PINNED, -1, pinned, PAGE, 1);
	alloc(&story, VT_KIND_ARRAY, 1, 0x50, PAGE, 1);
	/* Host memory that happens to lie where the handle points. */
	alloc(&story, VT_KIND_REGISTERED, -1, 0x40, 64, 1);
	check_copy(&story, (struct copy){VT_DIR_H2D, VT_COPY_DST_ARRAY, 0x50, pageable, 1},
		VT_DIR_H2D, 1, MODEL_DEVICE_HOST);
	check_copy(&story, (struct copy){VT_DIR_D2H, VT_COPY_SRC_ARRAY, pinned, 0x50, 1},
		VT_DIR_D2H, MODEL_DEVICE_HOST, 1);
	check_copy(&story, (struct copy){VT_DIR_UNIFIED, VT_COPY_DST_ARRAY, 0x50, pageable, 1},
		VT_DIR_H2D, 1, MODEL_DEVICE_HOST);
	check_copy(&story, (struct copy){VT_DIR_UNIFIED, VT_COPY_DST_ARRAY, 0x50, here, 1},
		VT_DIR_P2P, 1, 0);
	check_copy(&story, (struct copy){VT_DIR_UNIFIED, VT_COPY_DST_ARRAY, 0x99, here, 1},
		VT_DIR_D2D, 0, 0);
	check_copy(&story,
		(struct copy){VT_DIR_D2D, VT_COPY_DST_ARRAY | VT_COPY_SRC_ARRAY, 0x50, 0x50, 1},
		VT_DIR_D2D, 1, 1);
	assert_int_equal(copy(&story, (struct copy){VT_DIR_H2D, VT_COPY_DST_ARRAY, 0x50, pinned, 1})
				 ->key.host_kind,
		MODEL_HOST_PINNED);
	model_free(story.model);
}

static void test_copies_of_shared(void **state)
{
	struct story story = begin(1);

	(void)state;
	alloc(&story, VT_KIND_SHARED, 0, 0x1000000, 0, 1);
	alloc(&story, VT_KIND_SHARED, 0, 0x2000000, PAGE, 1);
	handle_create(&story, 5, 0, VT_SHARING_IMPORTED);
	map(&story, 0x10000000, PAGE, 0, 5);
	check_copy(&story, (struct copy){VT_DIR_UNIFIED, 0, 0x1000000, 0x77, 1}, VT_DIR_H2D, 0,
		MODEL_DEVICE_HOST);
	check_copy(&story, (struct copy){VT_DIR_UNIFIED, 0, 0x2000000 + 99, 0x10000000 + 5, 1},
		VT_DIR_D2D, 0, 0);
	/* Beyond the first byte of what has no known size is nobody's. */
	check_copy(&story, (struct copy){VT_DIR_UNIFIED, 0, 0x1000001, 0x77, 1}, VT_DIR_H2H,
		MODEL_DEVICE_HOST, MODEL_DEVICE_HOST);
	model_free(story.model);
}

static void batch(struct story *story, uint32_t tid, uint64_t bytes, bool more)
{
	apply(story, (struct vt_record){.kind = VT_REC_copy,
			     .tid = tid,
			     .copy = {.direction = VT_DIR_H2D,
				     .flags = VT_COPY_ASYNC | (more ? VT_COPY_SAME_CALL : 0),
				     .bytes = bytes,
				     .stack_id = 7,
				     .duration_ns = more ? 0 : 30}});
}

/* All sizes together. */
static struct model_copy all_copies(const struct story *story)
{
	struct model_copy all = {0};

	for (const struct model_copy *c = story->model->copies; c; c = c->hh.next) {
		all.n_calls += c->n_calls;
		all.n_async += c->n_async;
		all.n_copies += c->n_copies;
		all.n_small += c->n_small;
		all.bytes += c->bytes;
		all.host_time_ns += c->host_time_ns;
	}
	return all;
}

/* A batch is one call, small only when it is in all. */
static void test_batches(void **state)
{
	struct story story = begin(1);
	struct model_copy all;

	(void)state;
	batch(&story, 1, 40000, false);
	batch(&story, 1, 20000, true);
	assert_int_equal(all_copies(&story).n_small, 1);
	batch(&story, 2, 100, false);
	/* The other thread's call came between; its copies are not this one's. */
	batch(&story, 1, 20000, true);
	batch(&story, 2, 100, true);
	all = all_copies(&story);
	assert_int_equal(all.n_calls, 2);
	assert_int_equal(all.n_async, 2);
	assert_int_equal(all.n_copies, 5);
	assert_int_equal(all.bytes, 80200);
	assert_int_equal(all.host_time_ns, 60);
	assert_int_equal(all.n_small, 2);
	batch(&story, 2, 65536, true);
	assert_int_equal(all_copies(&story).n_small, 1);
	batch(&story, 2, 65536, true);
	assert_int_equal(all_copies(&story).n_small, 1);
	/* By size: of 7, 15, 16 and 17 bits. */
	assert_int_equal(HASH_COUNT(story.model->copies), 4);
	model_free(story.model);
}

static void migrate(struct story *story, uint64_t now, uint64_t action, uint64_t bytes)
{
	story->now = now;
	apply(story,
		(struct vt_record){.kind = VT_REC_migrate,
			.migrate = {
				.api_id = 3, .action = action, .bytes = bytes, .duration_ns = 9}});
}

/* The ranges of one call come as one record each, of the same moment. */
static void test_migrations(void **state)
{
	struct story story = begin(1);
	const struct model_migration *migrations = story.model->migrations;

	(void)state;
	alloc(&story, VT_KIND_MANAGED, 0, 0x1000000, 8 * PAGE, 1);
	migrate(&story, 200, VT_MIGRATE_PREFETCH, PAGE);
	migrate(&story, 200, VT_MIGRATE_PREFETCH, 2 * PAGE);
	migrate(&story, 300, VT_MIGRATE_PREFETCH, 4 * PAGE);
	migrate(&story, 400, VT_MIGRATE_ADVISE, PAGE);
	migrate(&story, 500, 99, PAGE);
	assert_int_equal(migrations[VT_MIGRATE_PREFETCH].n_calls, 2);
	assert_int_equal(migrations[VT_MIGRATE_PREFETCH].bytes, 7 * PAGE);
	assert_int_equal(migrations[VT_MIGRATE_PREFETCH].host_time_ns, 18);
	assert_int_equal(migrations[VT_MIGRATE_ADVISE].n_calls, 1);
	assert_int_equal(tracked(&story, 0), 0);
	assert_int_equal(totals(&story, 0, VT_KIND_MANAGED)->live_bytes, 8 * PAGE);
	apply(&story, (struct vt_record){.kind = VT_REC_migrate,
			      .migrate = {.action = VT_MIGRATE_PREFETCH, .result = 1}});
	assert_int_equal(migrations[VT_MIGRATE_PREFETCH].n_calls, 2);
	assert_int_equal(story.model->failures->key.refusal, MODEL_REFUSED_MIGRATE);
	model_free(story.model);
}

/* The runtime's name stands for the call where it is known. */
static void test_call_names(void **state)
{
	struct vt_record records[] = {
		{.kind = VT_REC_api, .api = {0, {"cudaMalloc", 10}}},
		{.kind = VT_REC_api, .api = {7, {"cudaMemcpy", 10}}},
	};
	struct vt_record driver = {.kind = VT_REC_api, .api = {1, {"cuMemAlloc_v2", 13}}};
	struct story story = begin(1);

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		model_apply(story.model, &records[i]);
	assert_false(story.model->hooks_active);
	model_apply(story.model, &driver);
	assert_true(story.model->hooks_active);
	assert_string_equal(model_call_name(story.model, 1, 7), "cudaMemcpy");
	assert_string_equal(model_call_name(story.model, 1, 0), "cuMemAlloc_v2");
	assert_string_equal(model_call_name(story.model, 1, 99), "cuMemAlloc_v2");
	assert_null(model_call_name(story.model, 50, 0));
	apply(&story, (struct vt_record){.kind = VT_REC_failure,
			      .failure = {.api_id = 1, .caller_api = 7, .result = 2}});
	apply(&story,
		(struct vt_record){.kind = VT_REC_failure, .failure = {.api_id = 1, .result = 2}});
	assert_int_equal(HASH_COUNT(story.model->failures), 2);
	assert_int_equal(story.model->failures->key.caller_api, 7);
	model_free(story.model);
}

static void module(struct story *story, const char *path)
{
	struct vt_record record = {.kind = VT_REC_module, .module = {.path = {path, strlen(path)}}};

	model_apply(story->model, &record);
}

static void test_runtimes(void **state)
{
	struct story story = begin(1);

	(void)state;
	assert_false(story.model->modules_seen);
	module(&story, "/usr/bin/train");
	module(&story, "");
	assert_true(story.model->modules_seen);
	assert_int_equal(story.model->runtimes.n_items, 0);
	module(&story, "/a/libcudart.so.13");
	module(&story, "/a/libcudart.so.13");
	module(&story, "libcudart.so.12.4");
	module(&story, "/a/libcudart.so.13/libx.so");
	assert_int_equal(story.model->runtimes.n_items, 2);
	model_free(story.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_retain),
		cmocka_unit_test(test_handle_comes_back),
		cmocka_unit_test(test_imported),
		cmocka_unit_test(test_copies_of_arrays),
		cmocka_unit_test(test_copies_of_shared),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_migrations),
		cmocka_unit_test(test_call_names),
		cmocka_unit_test(test_runtimes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
