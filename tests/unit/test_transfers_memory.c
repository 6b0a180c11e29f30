/* tools/analysis/transfers.h: the findings about memory that is locked for copies, and about memory
 * that is allocated again and again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/transfers.h"

/* A buffer is locked for each transfer: case C6. */
static void test_pin_churn(void **state)
{
	struct story story = begin_here();
	struct found found;
	const struct transfer_finding *finding;

	(void)state;
	for (uint64_t i = 0; i < 40; i++) {
		lock(&story, i % 2 ? VT_KIND_PINNED : VT_KIND_REGISTERED, PAGEABLE, 8 * MIB, 20,
			2 * MS);
		copy(&story, (struct given){VT_DIR_H2D, VT_COPY_ASYNC, DEVICE, PAGEABLE, 8 * MIB,
				     SUBMIT, i % 2 ? 5 : 6, 0, 0});
		unlock(&story, i % 2 ? VT_KIND_PINNED : VT_KIND_REGISTERED, PAGEABLE, MS);
	}
	find(&found, &story);
	assert_int_equal(found.n, 2);
	finding = found.findings[0];
	assert_int_equal(finding->kind, TRANSFER_PIN_CHURN);
	assert_int_equal(finding->n, 20);
	assert_int_equal(finding->bytes, 20 * 8 * MIB);
	assert_int_equal(finding->lost_ns, 19 * 3 * MS);
	assert_int_equal(found.findings[1]->kind, TRANSFER_PIN_CHURN);
	assert_int_equal(finding->stack_id + found.findings[1]->stack_id, 5 + 6);
	forget(&found, &story);
}

/* 129.5 MiB become 256, and so on: case P1. */
static void test_rounded(void **state)
{
	static const uint64_t asked[] = {135790592, 1207959552, 2415919104};
	struct story story = begin_here();
	struct found found;
	const struct transfer_finding *finding;
	uint64_t locked = 0, used = 0, at = PAGEABLE;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		uint64_t bytes = 1ull << (64 - __builtin_clzll(asked[i] - 1));

		lock(&story, VT_KIND_PINNED, at, bytes, 20, MS);
		copy(&story, (struct given){VT_DIR_H2D, VT_COPY_ASYNC, DEVICE, at, asked[i] - MIB,
				     SUBMIT, 5, 0, 0});
		copy(&story, (struct given){VT_DIR_H2D, VT_COPY_ASYNC, DEVICE, at + asked[i] - MIB,
				     MIB, SUBMIT, 5, 0, 0});
		locked += bytes;
		used += asked[i];
		at += bytes;
	}
	find(&found, &story);
	finding = only(&found, TRANSFER_ROUNDED, 20);
	assert_int_equal(finding->n, 3);
	assert_int_equal(finding->bytes, locked);
	assert_int_equal(finding->used_bytes, used);
	assert_int_equal(finding->memory_kind, VT_KIND_PINNED);
	forget(&found, &story);
}

static const char *torch(void *user, const struct model *model, uint64_t stack_id)
{
	(void)user;
	(void)model;
	return stack_id == 20 ? "torch" : "program";
}

/* Of blocks that were never copied nobody knows what was asked for; but PyTorch rounds. */
static void test_rounded_untouched(void **state)
{
	const struct owner_source owners = {torch, NULL};
	struct story story = begin_here();
	struct transfers transfers;

	(void)state;
	lock(&story, VT_KIND_PINNED, PAGEABLE, 256 * MIB, 20, MS);
	lock(&story, VT_KIND_PINNED, PAGEABLE + 256 * MIB, 256 * MIB, 21, MS);
	transfers_make(&transfers, story.model, &owners);
	assert_int_equal(transfers.findings[transfers.n_findings - 1].kind, TRANSFER_ROUNDED);
	for (size_t i = 0; i < transfers.n_findings; i++)
		assert_int_not_equal(transfers.findings[i].stack_id, 21);
	transfers_release(&transfers);
	model_free(story.model);
}

/* 3D boxes touch as far as their pitch takes them. */
static void test_touched_by_boxes(void **state)
{
	struct story story = begin_here();

	(void)state;
	lock(&story, VT_KIND_PINNED, PAGEABLE, 64 * MIB, 20, MS);
	apply(&story, (struct vt_record){.kind = VT_REC_copy,
			      .copy = {.direction = VT_DIR_H2D,
				      .device = 0,
				      .dst = DEVICE,
				      .src = PAGEABLE + MIB,
				      .bytes = 100 * 1000,
				      .rows = 100,
				      .pitch = 10000,
				      .stack_id = 5}});
	for (const struct model_pinning *p = story.model->pinnings; p; p = p->hh.next)
		if (p->key.stack_id == 20)
			assert_int_equal(p->touched_bytes, MIB + 99 * 10000 + 1000);
	model_free(story.model);
}

/* Dropped buffers wait behind one long copy on another stream: case P2. */
static void test_not_reused(void **state)
{
	struct story story = begin_here();
	struct found found;
	const struct transfer_finding *finding;
	uint64_t oldest_ns = 0;

	(void)state;
	for (uint64_t i = 0; i < 40; i++) {
		uint64_t at = PAGEABLE + i * 8 * MIB;

		lock(&story, VT_KIND_PINNED, at, 8 * MIB, 20, MS);
		if (!i)
			oldest_ns = story.now;
		copy(&story, (struct given){VT_DIR_H2D, VT_COPY_ASYNC, DEVICE, at, 8 * MIB, SUBMIT,
				     i ? 6 : 5, i ? 0xb : 0xa, 0});
	}
	find(&found, &story);
	finding = only(&found, TRANSFER_NOT_REUSED, 20);
	assert_int_equal(finding->n, 39);
	assert_int_equal(finding->bytes, 39 * 8 * MIB);
	assert_int_equal(finding->stream, 0xa);
	assert_int_equal(finding->time_ns, oldest_ns);
	assert_int_equal(finding->other_stack_id, 5);
	assert_int_equal(finding->lost_ns, 39 * MS);
	forget(&found, &story);
}

/* A range is unmapped without being unregistered, and registered again: case P4. */
static void test_clash(void **state)
{
	struct story story = begin_here();
	struct found found;
	const struct transfer_finding *finding;
	struct vt_record refused = {.kind = VT_REC_failure,
		.failure = {.kind = VT_KIND_REGISTERED,
			.device = -1,
			.bytes = 4 * MIB,
			.result = 712,
			.stack_id = 21,
			.address = PAGEABLE + MIB}};

	(void)state;
	lock(&story, VT_KIND_REGISTERED, PAGEABLE, 4 * MIB, 20, MS);
	apply(&story, refused);
	apply(&story, refused);
	/* Begins before it. */
	refused.failure.address = PAGEABLE - MIB;
	apply(&story, refused);
	/* Somewhere else. */
	refused.failure.address = PAGEABLE + 64 * MIB;
	apply(&story, refused);
	find(&found, &story);
	finding = only(&found, TRANSFER_CLASH, 21);
	assert_int_equal(finding->other_stack_id, 20);
	assert_int_equal(finding->n, 3);
	assert_int_equal(finding->bytes, 4 * MIB);
	assert_int_equal(finding->address, PAGEABLE + MIB);
	forget(&found, &story);
}

static void test_kept(void **state)
{
	struct story story = begin_here();
	struct found found;
	const struct transfer_finding *finding;

	(void)state;
	for (uint64_t i = 0; i < 20; i++) {
		lock(&story, VT_KIND_REGISTERED, PAGEABLE + i * MIB, MIB, 20, MS);
		story.now += 100 * MS;
	}
	/* Late: 30 seconds after its only copy. */
	lock(&story, VT_KIND_REGISTERED, PAGEABLE + 64 * MIB, MIB, 21, MS);
	copy(&story, (struct given){VT_DIR_H2D, VT_COPY_ASYNC, DEVICE, PAGEABLE + 64 * MIB, MIB,
			     SUBMIT, 5, 0, 0});
	story.now += 30 * SECOND;
	unlock(&story, VT_KIND_REGISTERED, PAGEABLE + 64 * MIB, MS);
	/* In time. */
	lock(&story, VT_KIND_REGISTERED, PAGEABLE + 64 * MIB, MIB, 22, MS);
	unlock(&story, VT_KIND_REGISTERED, PAGEABLE + 64 * MIB, MS);
	find(&found, &story);
	/* The first 20 were registered in the first 2 of 32 seconds. */
	finding = only(&found, TRANSFER_KEPT, 21);
	assert_int_equal(finding->n, 1);
	NEAR(finding->time_ns, 30 * SECOND);
	lock(&story, VT_KIND_REGISTERED, PAGEABLE + 128 * MIB, MIB, 20, MS);
	transfers_release(&found.transfers);
	find(&found, &story);
	assert_int_equal(found.n, 2);
	finding = found.findings[0];
	assert_int_equal(finding->stack_id, 20);
	assert_int_equal(finding->n, 21);
	assert_int_equal(finding->bytes, 21 * MIB);
	assert_int_equal(finding->time_ns, 0);
	forget(&found, &story);
}

static void put_frame(
	struct story *story, uint64_t kind, uint64_t bytes, uint64_t alloc_ns, uint64_t free_ns)
{
	story->now += alloc_ns;
	apply(story, (struct vt_record){.kind = VT_REC_alloc,
			     .alloc = {.kind = kind,
				     .address = 0x60000000000,
				     .bytes = bytes,
				     .stack_id = 20,
				     .duration_ns = alloc_ns}});
	story->now += 500 * US;
	apply(story, (struct vt_record){.kind = VT_REC_free,
			     .free = {.kind = kind,
				     .address = 0x60000000000,
				     .stack_id = 21,
				     .duration_ns = free_ns}});
	story->now += free_ns + 300 * US;
}

/* Memory is allocated and freed for each frame: case C8. */
static void test_alloc_churn(void **state)
{
	struct story story = begin_here();
	struct found found;
	const struct transfer_finding *finding;

	(void)state;
	for (uint64_t i = 0; i < 200; i++)
		put_frame(&story, VT_KIND_LINEAR, 4 * MIB, 60 * US, 30 * US);
	find(&found, &story);
	finding = only(&found, TRANSFER_ALLOC_CHURN, 20);
	assert_int_equal(finding->n, 199);
	assert_int_equal(finding->bytes, 199 * 4 * MIB);
	assert_int_equal(finding->lost_ns, 199 * 90 * US);
	assert_int_equal(finding->memory_kind, VT_KIND_LINEAR);
	forget(&found, &story);
	/* From a pool with its threshold unset, then with it set: mapped anew each time, or kept.
	 */
	for (int kept = 0; kept < 2; kept++) {
		story = begin_here();
		if (kept)
			apply(&story, (struct vt_record){.kind = VT_REC_pool,
					      .pool = {.action = VT_POOL_THRESHOLD,
						      .device = 0,
						      .value = UINT64_MAX}});
		for (uint64_t i = 0; i < 200; i++)
			put_frame(&story, VT_KIND_POOL, 4 * MIB, kept ? 2 * US : 400 * US, US);
		find(&found, &story);
		if (kept) {
			assert_int_equal(found.n, 0);
		} else {
			finding = only(&found, TRANSFER_ALLOC_CHURN, 20);
			assert_int_equal(finding->memory_kind, VT_KIND_POOL);
			assert_int_equal(finding->threshold_bytes, 0);
			assert_int_equal(finding->lost_ns, 199 * 401 * US);
		}
		forget(&found, &story);
	}
}

/* Other sizes, or later, are no churn. */
static void test_no_alloc_churn(void **state)
{
	struct story story = begin_here();
	struct found found;

	(void)state;
	for (uint64_t i = 0; i < 200; i++)
		put_frame(&story, VT_KIND_LINEAR, (4 + i) * MIB, 60 * US, 30 * US);
	for (uint64_t i = 0; i < 200; i++) {
		put_frame(&story, VT_KIND_LINEAR, 4 * MIB, 60 * US, 30 * US);
		story.now += 2 * MS;
	}
	find(&found, &story);
	assert_int_equal(found.n, 0);
	forget(&found, &story);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pin_churn),
		cmocka_unit_test(test_rounded),
		cmocka_unit_test(test_rounded_untouched),
		cmocka_unit_test(test_touched_by_boxes),
		cmocka_unit_test(test_not_reused),
		cmocka_unit_test(test_clash),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_alloc_churn),
		cmocka_unit_test(test_no_alloc_churn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
