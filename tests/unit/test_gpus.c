/* tools/analysis: totals of a GPU, and which rank stands out, against sums made the long way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "analysis/gpus.h"
#include "analysis/ranks.h"

#define N_SHARES 4u
#define MIB	 ((uint64_t)1 << 20)

/* What a list of moments says about the peak: the first one that is the highest, and as it was when
 * that came to an end. */
struct expected {
	uint64_t peak_bytes, peak_ns;
	uint64_t tracked[N_SHARES];
	int64_t untracked[N_SHARES];
};

static void expect(struct expected *expected, const struct gpu *gpu, uint64_t time_ns)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < N_SHARES; i++)
		sum += gpu->shares[i].tracked_bytes;
	if (sum <= expected->peak_bytes)
		return;
	expected->peak_bytes = sum;
	expected->peak_ns = time_ns;
	for (size_t i = 0; i < N_SHARES; i++) {
		expected->tracked[i] = gpu->shares[i].tracked_bytes;
		expected->untracked[i] = gpu->shares[i].measured_bytes;
	}
}

static void test_peak(void **state)
{
	(void)state;
	srandom(7);
	for (unsigned int round = 0; round < 200; round++) {
		struct gpu_share shares[N_SHARES] = {{0}};
		struct gpu gpu = {.shares = shares, .n_shares = N_SHARES};
		struct expected expected = {0};

		for (uint64_t time_ns = 1; time_ns < 60; time_ns++) {
			struct gpu_share *share = &shares[random() % N_SHARES];
			uint64_t before = share->tracked_bytes;
			uint64_t bytes = random() % 3 ? (uint64_t)random() % 6 * MIB : before;

			assert_int_equal(gpu_take(&gpu, share, bytes, random() % 3, time_ns),
				(int64_t)(bytes - before));
			expect(&expected, &gpu, time_ns);
		}
		gpu_note_peak(&gpu);
		assert_int_equal(gpu.tracked.peak_bytes, expected.peak_bytes);
		assert_int_equal(gpu.tracked.peak_ns, expected.peak_ns);
		for (size_t i = 0; i < N_SHARES; i++) {
			assert_int_equal(shares[i].peak_tracked_bytes, expected.tracked[i]);
			assert_int_equal(shares[i].peak_untracked_bytes, expected.untracked[i]);
		}
	}
}

/* Cut to what is in use, no more than that needs, and those that measured most. */
static void test_untracked(void **state)
{
	(void)state;
	srandom(8);
	for (unsigned int round = 0; round < 200; round++) {
		struct gpu_share shares[N_SHARES] = {{0}};
		struct gpu gpu = {.shares = shares, .n_shares = N_SHARES};
		int64_t measured = 0, shown = 0, most = 0;
		uint64_t limit = (uint64_t)random() % 40 * MIB;

		for (size_t i = 0; i < N_SHARES; i++) {
			int64_t bytes = (int64_t)((uint64_t)random() % 16 * MIB);

			gpu_take(&gpu, &shares[i], 3 * MIB, bytes, 0);
			measured += bytes;
		}
		gpu_sample(&gpu, &shares[0], limit + N_SHARES * 3 * MIB, 1u << 30);
		for (size_t i = 0; i < N_SHARES; i++) {
			shown += shares[i].peak_untracked_bytes;
			if (shares[i].peak_untracked_bytes > most)
				most = shares[i].peak_untracked_bytes;
		}
		for (size_t i = 0; i < N_SHARES; i++)
			assert_true(shares[i].peak_untracked_bytes == shares[i].measured_bytes ||
				    shares[i].peak_untracked_bytes == most);
		if (measured <= (int64_t)limit)
			assert_int_equal(shown, measured);
		else
			assert_in_range(limit - (uint64_t)shown, 0, N_SHARES);
	}
}

/* What another one took within the last millisecond may not have been there yet. */
static void test_skew(void **state)
{
	struct gpu_share shares[2] = {{0}};
	struct gpu gpu = {.shares = shares, .n_shares = 2};

	(void)state;
	gpu_take(&gpu, &shares[0], 0, 64 * MIB, 1);
	gpu_take(&gpu, &shares[1], 100 * MIB, 0, 5000000);
	gpu_sample(&gpu, &shares[0], 64 * MIB, 5500000);
	assert_int_equal(shares[0].peak_untracked_bytes, 64 * MIB);
	gpu_sample(&gpu, &shares[0], 120 * MIB, 7000000);
	assert_int_equal(shares[0].peak_untracked_bytes, 20 * MIB);
	gpu_sample(&gpu, &shares[1], 130 * MIB, 7000001);
	assert_int_equal(shares[0].peak_untracked_bytes, 30 * MIB);
}

/* Which ranks stand out in .live_bytes, as bits. */
static unsigned int outliers(const uint64_t *megabytes, size_t n)
{
	struct rank *ranks = calloc(n, sizeof(*ranks));
	struct job *job = calloc(1, sizeof(*job));
	struct job_list list = {.items = job, .n_items = 1};
	unsigned int found = 0;

	*job = (struct job){.ranks = ranks, .n_ranks = n, .world_size = -1};
	for (size_t i = 0; i < n; i++)
		ranks[i] = (struct rank){.rank = (int64_t)i, .live_bytes = megabytes[i] * MIB};
	job_list_judge(&list);
	for (size_t i = 0; i < job->n_outliers; i++) {
		assert_int_equal(job->outliers[i].metric, RANK_LIVE);
		found |= 1u << job->outliers[i].rank;
	}
	assert_int_equal(job_next_missing(job, 0), -1);
	job_list_release(&list);
	return found;
}

#define OUTLIERS(...)                                                                              \
	outliers((const uint64_t[]){__VA_ARGS__},                                                  \
		sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void test_outliers(void **state)
{
	(void)state;
	assert_int_equal(OUTLIERS(900), 0);
	assert_int_equal(OUTLIERS(1000, 1050), 0);
	assert_int_equal(OUTLIERS(1000, 1051), 2);
	assert_int_equal(OUTLIERS(1051, 1000), 1);
	assert_int_equal(OUTLIERS(10, 42), 0);
	assert_int_equal(OUTLIERS(10, 43), 2);
	assert_int_equal(OUTLIERS(1000, 1000, 1050), 0);
	assert_int_equal(OUTLIERS(1000, 1000, 1051), 4);
	assert_int_equal(OUTLIERS(1000, 500, 1000), 2);
	/* The deviation decides where ranks differ anyway: 3.5 * 1.4826 * 100. */
	assert_int_equal(OUTLIERS(900, 1000, 1100, 1518, 1000), 0);
	assert_int_equal(OUTLIERS(900, 1000, 1100, 1520, 1000), 8);
	assert_int_equal(OUTLIERS(1000, 1000, 3000, 3000), 0);
}

static void test_refused(void **state)
{
	struct rank ranks[6] = {{.n_ooms = 1}, {.n_ooms = 0}, {.n_ooms = 2}};
	struct job job = {.ranks = ranks, .n_ranks = 6, .world_size = 8};
	struct job_list list = {.items = &job, .n_items = 1};

	(void)state;
	for (size_t i = 0; i < 6; i++)
		ranks[i].rank = (int64_t)i + (i > 3);
	assert_int_equal(job_next_missing(&job, 0), 4);
	assert_int_equal(job_next_missing(&job, 5), 7);
	assert_int_equal(job_next_missing(&job, 8), -1);
	job_list_judge(&list);
	assert_int_equal(job.n_outliers, 2);
	assert_int_equal(job.outliers[0].metric, RANK_OOMS);
	free(job.outliers);
	job.outliers = NULL;
	job.n_outliers = job.outliers_room = 0;
	/* All of them, or more than a third: none is alone. */
	ranks[5].n_ooms = 1;
	job_list_judge(&list);
	assert_int_equal(job.n_outliers, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_peak),
		cmocka_unit_test(test_untracked),
		cmocka_unit_test(test_skew),
		cmocka_unit_test(test_outliers),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
