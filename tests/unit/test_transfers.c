/* tools/analysis/transfers.h: each finding about copies from a story that shows it, and none from
 * stories that do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/transfers.h"

static void test_rates(void **state)
{
	struct story story = begin(1);
	struct found found;

	(void)state;
	find(&found, &story);
	assert_int_equal(found.transfers.rates[VT_DIR_H2D].source, TRANSFER_TYPICAL);
	forget(&found, &story);
	story = begin_here();
	find(&found, &story);
	assert_int_equal(found.transfers.rates[VT_DIR_H2D].source, TRANSFER_SYNCHRONOUS);
	NEAR(found.transfers.rates[VT_DIR_H2D].bytes_per_s, 50000000000);
	NEAR(found.transfers.rates[VT_DIR_D2H].bytes_per_s, 50000000000);
	assert_int_equal(found.n, 0);
	forget(&found, &story);
}

/* What the device itself says counts before what the host saw. */
static void test_timed(void **state)
{
	struct story story = begin_here();
	struct found found;
	const struct transfer_sum *sum;

	(void)state;
	for (uint64_t id = 1; id <= 4; id++) {
		copy(&story, (struct given){VT_DIR_H2D, VT_COPY_ASYNC, DEVICE, PINNED, 32 * MIB,
				     SUBMIT, 5, 7, id});
		if (id < 4)
			apply(&story, (struct vt_record){.kind = VT_REC_copy_time,
					      .copy_time = {.timed_id = id,
						      .gpu_time_ns = 32 * MIB / 60}});
	}
	/* Nobody knows this one. */
	apply(&story, (struct vt_record){.kind = VT_REC_copy_time,
			      .copy_time = {.timed_id = 77, .gpu_time_ns = 1}});
	find(&found, &story);
	assert_int_equal(found.transfers.rates[VT_DIR_H2D].source, TRANSFER_TIMED);
	NEAR(found.transfers.rates[VT_DIR_H2D].bytes_per_s, 60000000000);
	sum = &found.transfers.totals[VT_DIR_H2D][MODEL_HOST_PINNED];
	assert_int_equal(sum->timed.n, 3);
	assert_int_equal(sum->timed.bytes, 3 * 32 * MIB);
	NEAR(transfer_sum_rate(sum), 60000000000);
	assert_int_equal(found.n, 0);
	forget(&found, &story);
}

/* 200 tensors of 64 MiB from pageable memory, each a range of its own: case C1. */
static void test_pageable(void **state)
{
	struct story story = begin_here();
	struct found found;
	const struct transfer_finding *finding;
	uint64_t each = pageable_ns(64 * MIB) - pinned_ns(64 * MIB) - SUBMIT;

	(void)state;
	for (uint64_t i = 0; i < 200; i++)
		copy(&story,
			(struct given){VT_DIR_H2D, VT_COPY_ASYNC, DEVICE, PAGEABLE + i * 64 * MIB,
				64 * MIB, pageable_ns(64 * MIB), 5, 0, 0});
	find(&found, &story);
	finding = only(&found, TRANSFER_PAGEABLE, 5);
	assert_int_equal(finding->n, 200);
	assert_int_equal(finding->bytes, 200 * 64 * MIB);
	assert_int_equal(finding->direction, VT_DIR_H2D);
	assert_int_equal(finding->host_kind, MODEL_HOST_PAGEABLE);
	assert_true(finding->is_lost);
	assert_false(finding->is_typical);
	NEAR(finding->lost_ns, 200 * each);
	assert_int_equal(found.transfers.rows[0].key.stack_id, 5);
	assert_int_equal(found.transfers.rows[0].lost_ns, finding->lost_ns);
	assert_ptr_equal(found.transfers.rows[0].advice, transfer_finding_fix(finding));
	assert_int_equal(found.transfers.rows[0].sum.blocked.n, 200);
	forget(&found, &story);
}

/* Without pinned copies in the trace the rate is a typical one. */
static void test_typical(void **state)
{
	struct story story = begin(1);
	struct found found;
	const struct transfer_finding *finding;

	(void)state;
	for (uint64_t i = 0; i < 20; i++)
		copy(&story, (struct given){VT_DIR_D2H, 0, PAGEABLE + i * 64 * MIB, DEVICE,
				     64 * MIB, pageable_ns(64 * MIB), 5, 0, 0});
	find(&found, &story);
	finding = only(&found, TRANSFER_PAGEABLE, 5);
	assert_true(finding->is_typical);
	NEAR(finding->lost_ns, 20 * (pageable_ns(64 * MIB) - 64 * MIB / 25));
	forget(&found, &story);
}

/* What waits for earlier work is not the memory's fault. */
static void test_waiting_is_not_copying(void **state)
{
	struct story story = begin_here();
	struct found found;

	(void)state;
	for (uint64_t i = 0; i < 20; i++)
		copy(&story, (struct given){VT_DIR_D2H, 0, PAGEABLE + i * MIB, DEVICE, MIB,
				     pageable_ns(MIB) + (i ? 50 * MS : 0), 5, 0, 0});
	find(&found, &story);
	for (size_t i = 0; i < found.n; i++)
		assert_true(found.findings[i]->lost_ns < 10 * MS);
	forget(&found, &story);
}

static void test_blocked(void **state)
{
	struct story story = begin_here();
	struct found found;
	const struct transfer_finding *finding;

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		copy(&story, (struct given){VT_DIR_H2D, VT_COPY_ASYNC, DEVICE, PINNED, MIB,
				     i % 2 ? SUBMIT : MS, 5, 0, 0});
	find(&found, &story);
	finding = only(&found, TRANSFER_BLOCKED, 5);
	assert_int_equal(finding->n, 50);
	assert_int_equal(finding->bytes, 50 * MIB);
	assert_int_equal(finding->lost_ns, 50 * (MS - SUBMIT));
	forget(&found, &story);
}

/* Small copies one after another are found, but not in a batch call, and not when each comes by
 * itself. */
static void small_copies(struct story *story, uint64_t gap_ns, unsigned int n_batch)
{
	for (uint64_t i = 0; i < 2000; i++) {
		for (unsigned int k = 0; k < n_batch; k++)
			copy(story, (struct given){VT_DIR_H2D,
					    VT_COPY_ASYNC | (k ? VT_COPY_SAME_CALL : 0),
					    DEVICE + 4096 * i, PINNED + 512 * k, 512,
					    k ? 0 : 3 * US, 5, 0, 0});
		story->now += gap_ns;
	}
}

static void test_small(void **state)
{
	struct story story = begin_here();
	struct found found;
	const struct transfer_finding *finding;

	(void)state;
	small_copies(&story, 5 * US, 1);
	find(&found, &story);
	finding = only(&found, TRANSFER_SMALL, 5);
	assert_int_equal(finding->n, 1999);
	assert_int_equal(finding->bytes, 1999 * 512);
	NEAR(finding->lost_ns, 1999 * 3 * US);
	forget(&found, &story);
	story = begin_here();
	small_copies(&story, 5 * US, 16);
	find(&found, &story);
	assert_int_equal(found.n, 0);
	assert_int_equal(found.transfers.totals[VT_DIR_H2D][MODEL_HOST_PINNED].n_small, 2000);
	forget(&found, &story);
	story = begin_here();
	small_copies(&story, 200 * US, 1);
	find(&found, &story);
	assert_int_equal(found.n, 0);
	forget(&found, &story);
}

/* A counter is read in each round: case C5, by a synchronous copy, and by one that is waited for.
 */
static void test_read_back(void **state)
{
	struct story story = begin_here();
	struct found found;
	const struct transfer_finding *finding;

	(void)state;
	for (uint64_t id = 1; id <= 500; id++) {
		copy(&story, (struct given){VT_DIR_D2H, 0, PAGEABLE, DEVICE, 4, 300 * US, 5, 0, 0});
		copy(&story, (struct given){VT_DIR_D2H, VT_COPY_ASYNC, PINNED, DEVICE, 8, SUBMIT, 6,
				     0, id});
		apply(&story, (struct vt_record){.kind = VT_REC_copy_time,
				      .copy_time = {.timed_id = id, .wait_ns = 400 * US}});
		story.now += 400 * US;
	}
	find(&found, &story);
	assert_int_equal(found.n, 2);
	finding = found.findings[0];
	assert_int_equal(finding->kind, TRANSFER_READ_BACK);
	assert_int_equal(finding->stack_id, 6);
	assert_int_equal(finding->n, 500);
	assert_int_equal(finding->bytes, 4000);
	assert_int_equal(finding->lost_ns, 500 * (400 * US + SUBMIT));
	finding = found.findings[1];
	assert_int_equal(finding->kind, TRANSFER_READ_BACK);
	assert_int_equal(finding->stack_id, 5);
	assert_int_equal(finding->bytes, 2000);
	assert_int_equal(finding->lost_ns, 500 * 300 * US);
	forget(&found, &story);
}

/* 20 layers of several sizes, 50 steps, from where they always were. */
static void test_repeated(void **state)
{
	struct story story = begin_here();
	struct found found;
	const struct transfer_finding *finding;
	uint64_t redundant = 0;

	(void)state;
	lock(&story, VT_KIND_PINNED, PAGEABLE, 1024 * MIB, 20, MS);
	for (uint64_t step = 0; step < 50; step++)
		for (uint64_t layer = 0; layer < 20; layer++) {
			uint64_t bytes = (layer % 5 + 1) * 4 * MIB;

			copy(&story, (struct given){VT_DIR_H2D, VT_COPY_ASYNC, DEVICE,
					     PAGEABLE + layer * 32 * MIB, bytes, SUBMIT, 5, 7, 0});
			redundant += step ? bytes : 0;
			story.now += 100 * US;
		}
	find(&found, &story);
	finding = first_of(&found, TRANSFER_REPEATED);
	assert_int_equal(finding->stack_id, 5);
	assert_int_equal(finding->n, 49 * 20);
	assert_int_equal(finding->bytes, redundant);
	assert_int_equal(finding->n_ranges, 20);
	assert_true(finding->is_lost);
	NEAR(finding->lost_ns, pinned_ns(redundant));
	forget(&found, &story);
}

/* The same buffer, synchronously: it may hold something else each time. */
static void test_possibly_repeated(void **state)
{
	struct story story = begin_here();
	struct found found;
	const struct transfer_finding *finding;

	(void)state;
	for (uint64_t step = 0; step < 50; step++)
		copy(&story, (struct given){VT_DIR_H2D, 0, DEVICE, PINNED, 16 * MIB,
				     pinned_ns(16 * MIB), 5, 0, 0});
	find(&found, &story);
	finding = only(&found, TRANSFER_REPEATED, 5);
	assert_true(finding->is_possible);
	assert_false(finding->is_lost);
	assert_int_equal(finding->bytes, 49 * 16 * MIB);
	assert_int_equal(found.transfers.rows[0].redundant_bytes, 49 * 16 * MIB);
	forget(&found, &story);
}

/* Weights go up, and down unchanged: case C3. */
static void test_round_trips(void **state)
{
	struct story story = begin_here();
	struct found found;
	const struct transfer_finding *finding;

	(void)state;
	for (uint64_t step = 0; step < 50; step++)
		for (uint64_t layer = 0; layer < 20; layer++) {
			uint64_t host = PAGEABLE + layer * 64 * MIB, bytes = 32 * MIB;

			copy(&story, (struct given){VT_DIR_H2D, VT_COPY_ASYNC, DEVICE, host, bytes,
					     pageable_ns(bytes), 5, 0, 0});
			copy(&story, (struct given){VT_DIR_D2H, VT_COPY_ASYNC, host, DEVICE, bytes,
					     pageable_ns(bytes), 6, 0, 0});
		}
	find(&found, &story);
	finding = first_of(&found, TRANSFER_ROUND_TRIP);
	assert_int_equal(finding->stack_id, 6);
	assert_int_equal(finding->other_stack_id, 5);
	assert_int_equal(finding->n, 49 * 20);
	assert_int_equal(finding->bytes, 49 * 20 * 32 * MIB);
	assert_int_equal(finding->n_ranges, 20);
	assert_true(finding->is_lost);
	NEAR(finding->lost_ns, 49 * 20 * pageable_ns(32 * MIB));
	/* And both ways are from or to pageable memory; nothing else. */
	assert_int_equal(found.n, 3);
	assert_int_equal(first_of(&found, TRANSFER_PAGEABLE)->n, 1000);
	forget(&found, &story);
}

static void set_peer_access(struct story *story, int64_t device, int64_t peer, uint64_t on)
{
	apply(story, (struct vt_record){.kind = VT_REC_peer_access,
			     .peer_access = {.device = device, .peer = peer, .on = on}});
}

/* Between two devices, with and without access to each other: case C7. */
static void test_staged(void **state)
{
	const uint64_t here = DEVICE, there = 0x50000000000, bytes = 64 * MIB;
	struct story story = begin(2);
	struct found found;
	const struct transfer_finding *finding;

	(void)state;
	alloc(&story, VT_KIND_LINEAR, 0, here, 64 * MIB, 1);
	alloc(&story, VT_KIND_LINEAR, 1, there, 64 * MIB, 1);
	alloc(&story, VT_KIND_POOL, 1, there + 64 * MIB, 64 * MIB, 1);
	for (uint64_t i = 0; i < 20; i++)
		copy(&story,
			(struct given){VT_DIR_P2P, 0, there, here, bytes, bytes / 20, 5, 0, 0});
	/* Whether the memory of pools can be reached is another matter. */
	for (uint64_t i = 0; i < 20; i++)
		copy(&story, (struct given){VT_DIR_P2P, VT_COPY_ASYNC, there + 64 * MIB, here,
				     bytes, SUBMIT, 6, 0, 0});
	set_peer_access(&story, 1, 0, 1);
	for (uint64_t i = 0; i < 20; i++)
		copy(&story,
			(struct given){VT_DIR_P2P, 0, there, here, bytes, bytes / 100, 7, 0, 0});
	set_peer_access(&story, 1, 0, 0);
	copy(&story,
		(struct given){VT_DIR_P2P, VT_COPY_ASYNC, here, there, bytes, SUBMIT, 8, 0, 0});
	find(&found, &story);
	NEAR(found.transfers.rates[VT_DIR_P2P].bytes_per_s, 100000000000);
	assert_int_equal(found.n, 2);
	finding = found.findings[0];
	assert_int_equal(finding->kind, TRANSFER_STAGED);
	assert_int_equal(finding->stack_id, 5);
	assert_int_equal(finding->n, 20);
	assert_int_equal(finding->bytes, 20 * bytes);
	assert_int_equal(finding->dst_device, 1);
	assert_int_equal(finding->src_device, 0);
	NEAR(finding->lost_ns, 20 * (bytes / 20 - bytes / 100));
	assert_false(finding->is_typical);
	assert_int_equal(found.findings[1]->stack_id, 8);
	assert_true(found.findings[1]->is_typical);
	forget(&found, &story);
}

static void test_serial(void **state)
{
	struct story story = begin_here();
	struct found found;
	const struct transfer_finding *finding;

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		copy(&story, (struct given){VT_DIR_H2D, VT_COPY_ASYNC | VT_COPY_BLOCKING, DEVICE,
				     PINNED, MIB, SUBMIT, 5, 7, 0});
		copy(&story, (struct given){VT_DIR_D2H, VT_COPY_ASYNC | VT_COPY_LEGACY,
				     PINNED + MIB, DEVICE, MIB, SUBMIT, 6, 0, 0});
		/* A stream that waits for nobody. */
		copy(&story, (struct given){VT_DIR_H2D, VT_COPY_ASYNC, DEVICE, PINNED, MIB, SUBMIT,
				     8, 9, 0});
		story.now += 200 * US;
	}
	find(&found, &story);
	finding = only(&found, TRANSFER_SERIAL, 6);
	assert_int_equal(finding->n, 100);
	assert_int_equal(finding->bytes, 100 * MIB);
	assert_false(finding->is_lost);
	forget(&found, &story);
}

/* A training loop that stages its input in a ring of pinned buffers, uploads it on a stream of its
 * own, and looks at a loss now and then: nothing to find, whatever the length of a step. */
static void test_clean_pipeline(void **state)
{
	for (uint64_t step_ns = MS; step_ns <= 100 * MS; step_ns *= 10) {
		struct story story = begin_here();
		struct found found;

		(void)state;
		for (uint64_t i = 0; i < 12; i++)
			lock(&story, VT_KIND_PINNED, PAGEABLE + i * 64 * MIB, 64 * MIB, 20,
				10 * MS);
		for (uint64_t step = 0; step < 2000; step++) {
			uint64_t at = PAGEABLE + step % 12 * 64 * MIB;

			copy(&story, (struct given){VT_DIR_H2D, VT_COPY_ASYNC, DEVICE, at, 60 * MIB,
					     SUBMIT, 5, 7, 0});
			copy(&story, (struct given){VT_DIR_H2D, VT_COPY_ASYNC, DEVICE + 64 * MIB,
					     at + 60 * MIB, 2048, SUBMIT, 5, 7, 0});
			copy(&story, (struct given){VT_DIR_D2D, VT_COPY_ASYNC | VT_COPY_LEGACY,
					     DEVICE, DEVICE + 128 * MIB, MIB, SUBMIT, 6, 0, 0});
			story.now += step_ns;
			if (step % 200)
				continue;
			copy(&story, (struct given){VT_DIR_D2H, VT_COPY_ASYNC | VT_COPY_LEGACY,
					     PINNED, DEVICE, 4, SUBMIT, 8, 0, step + 1});
			apply(&story,
				(struct vt_record){.kind = VT_REC_copy_time,
					.copy_time = {.timed_id = step + 1, .wait_ns = step_ns}});
		}
		find(&found, &story);
		for (size_t i = 0; i < found.n; i++)
			print_message("    %s of %d\n",
				transfer_finding_name(found.findings[i]->kind),
				(int)found.findings[i]->stack_id);
		assert_int_equal(found.n, 0);
		forget(&found, &story);
	}
}

/* Traffic keeps its sums while its stretches double. */
static void test_traffic(void **state)
{
	struct story story = begin(1);
	const struct model_traffic *traffic = &story.model->traffic;
	uint64_t bytes = 0, host_ns = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		copy(&story, (struct given){i % 2 ? VT_DIR_H2D : VT_DIR_D2H, 0,
				     i % 2 ? DEVICE : PAGEABLE, i % 2 ? PAGEABLE : DEVICE, 1000, US,
				     5, 0, 0});
		story.now += 3 * MS;
	}
	for (size_t i = 0; i < MODEL_N_STRETCHES; i++) {
		bytes += traffic->stretches[i].bytes[VT_DIR_H2D];
		host_ns += traffic->stretches[i].host_time_ns;
	}
	assert_int_equal(bytes, 500 * 1000);
	assert_int_equal(host_ns, 1000 * US);
	assert_int_equal(traffic->stretch_ns, 32 * MS);
	model_free(story.model);
}

/* The tables stay small whatever a program does. */
static void test_bounds(void **state)
{
	struct story story = begin_here();

	(void)state;
	for (uint64_t i = 0; i < 100000; i++)
		copy(&story, (struct given){VT_DIR_D2H, VT_COPY_ASYNC, PAGEABLE + i * MIB, DEVICE,
				     MIB, SUBMIT, 5, 0, i + 1});
	assert_true(story.model->host_ranges.tree.n_nodes <= 65536);
	assert_true(HASH_COUNT(story.model->timed) <= 32768);
	/* The newest is known, the oldest is not. */
	apply(&story, (struct vt_record){.kind = VT_REC_copy_time,
			      .copy_time = {.timed_id = 100000, .gpu_time_ns = 5}});
	apply(&story, (struct vt_record){.kind = VT_REC_copy_time,
			      .copy_time = {.timed_id = 1, .gpu_time_ns = 5}});
	for (const struct model_copy *c = story.model->copies; c; c = c->hh.next)
		if (c->key.stack_id == 5)
			assert_int_equal(c->timed.n, 1);
	model_free(story.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_timed),
		cmocka_unit_test(test_pageable),
		cmocka_unit_test(test_typical),
		cmocka_unit_test(test_waiting_is_not_copying),
		cmocka_unit_test(test_blocked),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_read_back),
		cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_possibly_repeated),
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_staged),
		cmocka_unit_test(test_serial),
		cmocka_unit_test(test_clean_pipeline),
		cmocka_unit_test(test_traffic),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
