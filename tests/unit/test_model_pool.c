/* tools/model: pools of stream-ordered memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/story.h"

#define POOL_A 0xa000
#define POOL_B 0xb000

static void pool_alloc(
	struct story *story, uint64_t pool, int64_t ordinal, uint64_t address, uint64_t bytes)
{
	apply(story, (struct vt_record){.kind = VT_REC_alloc,
			     .alloc = {.kind = VT_KIND_POOL,
				     .device = ordinal,
				     .address = address,
				     .bytes = bytes,
				     .pool = pool,
				     .stack_id = 1}});
}

static void free_on(struct story *story, uint64_t address, uint64_t stream)
{
	apply(story, (struct vt_record){.kind = VT_REC_free,
			     .free = {.kind = VT_KIND_POOL, .address = address, .stream = stream}});
}

static void pool_do(
	struct story *story, uint64_t action, uint64_t pool, int64_t ordinal, uint64_t value)
{
	apply(story, (struct vt_record){.kind = VT_REC_pool,
			     .pool = {.action = action,
				     .pool = pool,
				     .device = ordinal,
				     .value = value}});
}

static void pool_says(
	struct story *story, uint64_t pool, int64_t ordinal, uint64_t reserved, uint64_t used)
{
	apply(story, (struct vt_record){.kind = VT_REC_pool_memory,
			     .pool_memory = {.device = ordinal,
				     .pool = pool,
				     .reserved_bytes = reserved,
				     .used_bytes = used}});
}

static const struct model_pool *pool(const struct story *story, uint64_t handle)
{
	for (const struct model_pool *p = story->model->pools; p; p = p->hh.next)
		if (p->key.handle == handle && !p->destroyed)
			return p;
	fail_msg("no pool %#x", (unsigned int)handle);
	return NULL;
}

/* What counts is what the pool reserves, as soon as the driver says it; and never less than what is
 * live. */
static void test_reserved(void **state)
{
	struct story story = begin(1);
	const struct model_device *dev = model_device_find(story.model, 0);

	(void)state;
	pool_do(&story, VT_POOL_CREATE, POOL_A, 0, 0);
	pool_alloc(&story, POOL_A, 0, 0x1000000, 3 * MIB);
	assert_int_equal(tracked(&story, 0), 3 * MIB);
	assert_false(pool(&story, POOL_A)->sampled);
	pool_says(&story, POOL_A, 0, 16 * PAGE, 3 * MIB);
	assert_int_equal(tracked(&story, 0), 16 * PAGE);
	assert_int_equal(dev->peak_tracked_bytes, 16 * PAGE);
	assert_int_equal(dev->peak_time_ns, 102);
	assert_int_equal(totals(&story, 0, VT_KIND_POOL)->live_bytes, 3 * MIB);
	/* Inside of what is reserved nothing changes; beyond it, the pool must have grown. */
	pool_alloc(&story, POOL_A, 0, 0x2000000, 4 * PAGE);
	assert_int_equal(tracked(&story, 0), 16 * PAGE);
	pool_alloc(&story, POOL_A, 0, 0x4000000, 20 * PAGE);
	assert_int_equal(tracked(&story, 0), 24 * PAGE + 3 * MIB);
	free_on(&story, 0x4000000, 0);
	pool_says(&story, POOL_A, 0, 8 * PAGE, 4 * PAGE + 3 * MIB);
	assert_int_equal(tracked(&story, 0), 8 * PAGE);
	assert_int_equal(pool(&story, POOL_A)->peak_reserved_bytes, 24 * PAGE + 3 * MIB);
	model_free(story.model);
}

/* The default pool has no name at first; one that was not seen made is it, a second one is not. */
static void test_default_pool(void **state)
{
	struct story story = begin(2);
	const struct model_device *dev = model_device_find(story.model, 0);

	(void)state;
	pool_alloc(&story, 0, 0, 0x1000000, PAGE);
	pool_alloc(&story, 0, 1, 0x2000000, PAGE);
	assert_int_equal(HASH_COUNT(story.model->pools), 2);
	pool_says(&story, POOL_A, 0, 4 * PAGE, PAGE);
	assert_int_equal(HASH_COUNT(story.model->pools), 2);
	assert_ptr_equal(dev->default_pool, pool(&story, POOL_A));
	assert_int_equal(tracked(&story, 0), 4 * PAGE);
	assert_int_equal(tracked(&story, 1), PAGE);
	pool_alloc(&story, POOL_A, 0, 0x3000000, PAGE);
	assert_int_equal(pool(&story, POOL_A)->live_bytes, 2 * PAGE);
	pool_alloc(&story, POOL_B, 0, 0x4000000, PAGE);
	assert_int_equal(HASH_COUNT(story.model->pools), 3);
	assert_ptr_not_equal(dev->default_pool, pool(&story, POOL_B));
	assert_int_equal(pool(&story, POOL_A)->live_bytes, 2 * PAGE);
	model_free(story.model);
}

static void test_current_pool(void **state)
{
	struct story story = begin(1);

	(void)state;
	pool_alloc(&story, 0, 0, 0x1000000, PAGE);
	pool_do(&story, VT_POOL_CREATE, POOL_B, 0, 0);
	pool_do(&story, VT_POOL_SET_CURRENT, POOL_B, 0, 0);
	pool_alloc(&story, 0, 0, 0x2000000, 2 * PAGE);
	assert_int_equal(pool(&story, POOL_B)->live_bytes, 2 * PAGE);
	pool_do(&story, VT_POOL_THRESHOLD, POOL_B, 0, 7 * PAGE);
	assert_true(pool(&story, POOL_B)->threshold_known);
	assert_int_equal(pool(&story, POOL_B)->threshold_bytes, 7 * PAGE);
	/* With the pool goes its place as the current one. */
	pool_do(&story, VT_POOL_DESTROY, POOL_B, 0, 0);
	pool_alloc(&story, 0, 0, 0x3000000, 4 * PAGE);
	assert_int_equal(
		model_device_find(story.model, 0)->default_pool->live_bytes, PAGE + 4 * PAGE);
	model_free(story.model);
}

/* A free on a stream is no free for all: until the driver says that no more is in use than what is
 * live. What is in use beyond that bounds each stream and all of them. */
static void test_pending(void **state)
{
	struct story story = begin(1);
	const struct model_pool *a;

	(void)state;
	pool_do(&story, VT_POOL_CREATE, POOL_A, 0, 0);
	for (uint64_t i = 1; i <= 6; i++)
		pool_alloc(&story, POOL_A, 0, i << 24, i * PAGE);
	pool_says(&story, POOL_A, 0, 32 * PAGE, 21 * PAGE);
	a = pool(&story, POOL_A);
	assert_int_equal(a->pending_bytes, 0);
	free_on(&story, UINT64_C(1) << 24, 7);
	free_on(&story, UINT64_C(2) << 24, 7);
	free_on(&story, UINT64_C(3) << 24, 8);
	assert_int_equal(a->live_bytes, 15 * PAGE);
	assert_int_equal(a->pending_bytes, 6 * PAGE);
	assert_int_equal(a->n_pending, 2);
	assert_int_equal(a->pending[0].stream, 7);
	assert_int_equal(a->pending[0].bytes, 3 * PAGE);
	assert_int_equal(a->pending[1].stream, 8);
	assert_int_equal(a->pending[1].bytes, 3 * PAGE);
	pool_says(&story, POOL_A, 0, 32 * PAGE, 17 * PAGE);
	assert_int_equal(a->pending_bytes, 2 * PAGE);
	assert_int_equal(a->pending[0].bytes, 2 * PAGE);
	assert_int_equal(a->pending[1].bytes, 2 * PAGE);
	/* cuMemFree waits. */
	give_back(&story, UINT64_C(4) << 24, 0);
	assert_int_equal(a->pending_bytes, 2 * PAGE);
	/* A free that is refused leaves the block live. */
	apply(&story, (struct vt_record){.kind = VT_REC_free,
			      .free = {.kind = VT_KIND_POOL,
				      .address = UINT64_C(5) << 24,
				      .stream = 7,
				      .result = 1}});
	assert_int_equal(a->pending_bytes, 2 * PAGE);
	assert_int_equal(a->live_bytes, 11 * PAGE);
	pool_says(&story, POOL_A, 0, 32 * PAGE, 11 * PAGE);
	assert_int_equal(a->pending_bytes, 0);
	assert_int_equal(a->n_pending, 0);
	model_free(story.model);
}

/* Trimming leaves what is asked to be kept, and what is live or may be waiting for a stream. */
static void test_trim(void **state)
{
	struct story story = begin(1);

	(void)state;
	pool_do(&story, VT_POOL_CREATE, POOL_A, 0, 0);
	pool_alloc(&story, POOL_A, 0, 0x1000000, 2 * PAGE + 1);
	pool_alloc(&story, POOL_A, 0, 0x4000000, 3 * PAGE);
	pool_says(&story, POOL_A, 0, 32 * PAGE, 5 * PAGE + 512);
	pool_do(&story, VT_POOL_TRIM, POOL_A, 0, 16 * PAGE);
	assert_int_equal(tracked(&story, 0), 16 * PAGE);
	free_on(&story, 0x4000000, 1);
	pool_do(&story, VT_POOL_TRIM, POOL_A, 0, 0);
	assert_int_equal(tracked(&story, 0), 6 * PAGE);
	pool_says(&story, POOL_A, 0, 6 * PAGE, 2 * PAGE + 1);
	pool_do(&story, VT_POOL_TRIM, POOL_A, 0, 0);
	assert_int_equal(tracked(&story, 0), 3 * PAGE);
	model_free(story.model);
}

/* A destroyed pool's memory goes when its last allocation does, also when another pool has its
 * handle by then. */
static void test_destroy(void **state)
{
	struct story story = begin(1);

	(void)state;
	pool_do(&story, VT_POOL_CREATE, POOL_A, 0, 0);
	pool_alloc(&story, POOL_A, 0, 0x1000000, PAGE);
	pool_says(&story, POOL_A, 0, 16 * PAGE, PAGE);
	pool_do(&story, VT_POOL_DESTROY, POOL_A, 0, 0);
	assert_int_equal(tracked(&story, 0), PAGE);
	pool_do(&story, VT_POOL_CREATE, POOL_A, 0, 0);
	assert_int_equal(HASH_COUNT(story.model->pools), 2);
	pool_alloc(&story, POOL_A, 0, 0x2000000, PAGE);
	assert_int_equal(pool(&story, POOL_A)->live_bytes, PAGE);
	free_on(&story, 0x1000000, 0);
	assert_int_equal(HASH_COUNT(story.model->pools), 1);
	assert_int_equal(tracked(&story, 0), PAGE);
	pool_do(&story, VT_POOL_DESTROY, POOL_A, 0, 0);
	free_on(&story, 0x2000000, 0);
	assert_int_equal(HASH_COUNT(story.model->pools), 0);
	assert_int_equal(tracked(&story, 0), 0);
	assert_int_equal(story.model->n_unknown_frees, 0);
	model_free(story.model);
}

/* Pools of the host are of no device, also where there is only one; imported ones hold nothing. */
static void test_pools_of_no_device(void **state)
{
	struct story story = begin(1);

	(void)state;
	pool_do(&story, VT_POOL_CREATE, POOL_A, -1, 0);
	pool_alloc(&story, POOL_A, -1, 0x1000000, PAGE);
	assert_int_equal(tracked(&story, 0), 0);
	assert_int_equal(totals(&story, MODEL_DEVICE_UNKNOWN, VT_KIND_POOL)->live_bytes, PAGE);
	pool_do(&story, VT_POOL_IMPORT, POOL_B, -1, 0);
	pool_says(&story, POOL_B, 0, 16 * PAGE, PAGE);
	assert_true(pool(&story, POOL_B)->imported);
	assert_int_equal(tracked(&story, 0), 0);
	model_free(story.model);
}

static void test_refused(void **state)
{
	struct story story = begin(1);

	(void)state;
	apply(&story, (struct vt_record){.kind = VT_REC_pool,
			      .pool = {.action = VT_POOL_DESTROY, .pool = POOL_A, .result = 400}});
	assert_int_equal(HASH_COUNT(story.model->pools), 0);
	assert_int_equal(story.model->failures->key.refusal, MODEL_REFUSED_POOL);
	assert_int_equal(story.model->failures->key.result, 400);
	model_free(story.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_default_pool),
		cmocka_unit_test(test_current_pool),
		cmocka_unit_test(test_pending),
		cmocka_unit_test(test_trim),
		cmocka_unit_test(test_destroy),
		cmocka_unit_test(test_pools_of_no_device),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
