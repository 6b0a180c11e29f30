/* tools/analysis/whatif*.c: recordings made by the model itself under known settings, so that the
 * right answer to each question is a replay of the true requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/whatif.h"

#define KIB	  1024u
#define MIB	  SETTINGS_MIB
#define N_BLOCKS  120u
#define MAX_STEPS 6000u

/* A program and what PyTorch would have shown of it. */
struct story {
	struct whatif_step steps[MAX_STEPS];
	uint64_t asked_bytes[MAX_STEPS];
	struct whatif_answer answers[MAX_STEPS];
	struct whatif_recording recording;
	struct allocator *allocator;
	struct allocator_block *blocks[MAX_STEPS];
	uint64_t lowest;
	uint64_t limit_bytes, given_bytes; /* of the driver, 0 none */
};

static struct story story;

static uint64_t drive(void *arg, enum allocator_request request, uint64_t bytes)
{
	struct story *told = arg;
	struct whatif_answer *answer = &told->answers[told->recording.n_answers++];

	*answer = (struct whatif_answer){request, bytes, 1};
	if (request == ALLOCATOR_RANGE)
		answer->bytes = bytes + MIB;
	if (request != ALLOCATOR_MAP)
		answer->address = told->lowest -= bytes;
	if (told->limit_bytes && request != ALLOCATOR_RANGE &&
		allocator_stats(told->allocator)->reserved_bytes + bytes > told->limit_bytes)
		answer->address = 0;
	return answer->address;
}

static struct whatif_step *add_step(enum whatif_kind kind)
{
	struct whatif_step *step = &story.steps[story.recording.n_steps++];

	*step = (struct whatif_step){.kind = kind, .stream = 1};
	return step;
}

static void begin(const char *settings, uint64_t limit_bytes)
{
	struct allocator_options options = {.version = 211,
		.device_bytes = 16 * 1024 * MIB,
		.addresses = ALLOCATOR_GIVEN,
		.driver = drive,
		.arg = &story};
	char problem[200];

	memset(&story, 0, sizeof(story));
	settings_default(&options.settings);
	assert_true(settings_apply(&options.settings, settings, 211, problem, sizeof(problem)));
	story.allocator = allocator_new(&options);
	story.lowest = 1ull << 40;
	story.limit_bytes = limit_bytes;
	story.recording = (struct whatif_recording){.steps = story.steps,
		.answers = story.answers,
		.settings = options.settings,
		.version = 211,
		.device_bytes = options.device_bytes};
}

/* Number of the block, UINT32_MAX refused. */
static uint32_t get(uint64_t bytes, uint64_t stack_id)
{
	size_t n_answers = story.recording.n_answers;
	struct allocator_block *block = allocator_get(story.allocator, 1, 0, bytes);
	struct whatif_step *step = add_step(block ? WHATIF_GET : WHATIF_REFUSED);

	step->bytes = block ? allocator_block_bytes(block)
			    : allocator_round(&story.recording.settings, bytes);
	step->stack_id = stack_id;
	step->is_fresh = block && story.recording.n_answers != n_answers;
	story.asked_bytes[step - story.steps] = bytes;
	if (!block)
		return UINT32_MAX;
	step->address = allocator_block_address(block);
	step->block = (uint32_t)story.recording.n_blocks++;
	story.blocks[step->block] = block;
	return step->block;
}

static void put(uint32_t block)
{
	add_step(WHATIF_PUT)->block = block;
	allocator_put(story.allocator, story.blocks[block], false);
}

static void empty_cache(void)
{
	add_step(WHATIF_EMPTY_CACHE);
	allocator_empty_cache(story.allocator);
}

static void end(void)
{
	allocator_free(story.allocator);
}

static uint64_t random_bytes(void)
{
	static const uint64_t limits[] = {4 * KIB, MIB, 12 * MIB, 60 * MIB};
	uint64_t limit = limits[rand() % 4];

	return (1 + (uint64_t)rand() % limit / 512) * 512;
}

/* Requests that come and go at random; each size has its own call stack. */
static void live(size_t n_steps)
{
	static uint32_t held[N_BLOCKS];
	bool full[N_BLOCKS] = {false};
	uint64_t sizes[40];

	for (size_t i = 0; i < 40; i++)
		sizes[i] = random_bytes();
	while (story.recording.n_steps < n_steps) {
		size_t i = (size_t)rand() % N_BLOCKS, k = (size_t)rand() % 40;

		if (rand() % 400 == 0) {
			empty_cache();
		} else if (full[i]) {
			put(held[i]);
			full[i] = false;
		} else {
			held[i] = get(sizes[k], 1 + k);
			full[i] = held[i] != UINT32_MAX;
		}
	}
}

static const char *const list_of_settings[] = {"", "expandable_segments:True",
	"max_split_size_mb:32", "roundup_power2_divisions:4", "large_segment_size_mb:64"};

#define N_SETTINGS (sizeof(list_of_settings) / sizeof(*list_of_settings))

static void replays_itself(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < 10; seed++) {
		struct whatif_check check;

		srand(seed);
		begin(list_of_settings[seed % N_SETTINGS], seed < 5 ? 0 : 400 * MIB);
		live(2000);
		whatif_check(&story.recording, &check);
		assert_true(check.is_equal);
		assert_int_equal(check.n_addresses, check.n_gets);
		assert_memory_equal(&check.result.stats, allocator_stats(story.allocator),
			sizeof(check.result.stats));
		assert_true(seed < 5 || check.result.stats.n_refused > 0);
		end();
	}
}

/* Requests just below the size from which on blocks are kept whole get blocks of that size, which
 * look like those of larger requests; and none of those blocks is used for them again. */
static void replays_sizes_at_the_border(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < 10; seed++) {
		static const uint64_t sizes[] = {32 * MIB - 512, 32 * MIB, 31 * MIB, 31 * MIB - 512,
			40 * MIB, 33 * MIB + 512};
		uint32_t held[6];
		struct whatif_check check;

		srand(seed);
		begin("max_split_size_mb:32", seed % 2 ? 300 * MIB : 0);
		memset(held, 0xff, sizeof(held));
		for (unsigned int i = 0; i < 200; i++) {
			size_t k = (size_t)rand() % 6;

			if (held[k] != UINT32_MAX)
				put(held[k]);
			held[k] = rand() % 4 ? get(sizes[rand() % 6], 1) : UINT32_MAX;
		}
		whatif_check(&story.recording, &check);
		assert_true(check.is_equal);
		for (size_t i = 0; i < story.recording.n_steps; i++) {
			const struct whatif_step *step = &story.steps[i];

			if (step->kind != WHATIF_GET)
				continue;
			assert_true(story.asked_bytes[i] <= step->bytes);
			assert_true(story.asked_bytes[i] + step->spare_bytes >= step->bytes);
		}
		end();
	}
}

/* A wrong address or answer anywhere is seen. */
static void sees_differences(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < 60; seed++) {
		struct whatif_check check;
		size_t i;

		srand(seed);
		begin(list_of_settings[seed % 2], 0);
		live(500);
		do
			i = (size_t)rand() % story.recording.n_steps;
		while (story.steps[i].kind != WHATIF_GET);
		if (seed % 3 == 0)
			story.steps[i].address += 512;
		else if (seed % 3 == 1)
			story.answers[0].request ^= ALLOCATOR_SEGMENT ^ ALLOCATOR_RANGE;
		else
			story.recording.n_answers--;
		whatif_check(&story.recording, &check);
		assert_false(check.is_equal);
		end();
	}
}

/* A recording whose program had other settings than it seems is not reproduced, from the first
 * block on that they make a difference to. */
static void sees_other_settings(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_SETTINGS; i++)
		for (size_t k = 0; k < N_SETTINGS; k++) {
			struct whatif_check check;
			char problem[200];

			srand(1);
			begin(list_of_settings[i], 0);
			live(700);
			settings_default(&story.recording.settings);
			assert_true(settings_apply(&story.recording.settings, list_of_settings[k],
				211, problem, sizeof(problem)));
			whatif_check(&story.recording, &check);
			/* Rounding leaves no trace: recorded sizes are rounded ones. */
			if (i == k || (i % 3 == 0 && k % 3 == 0))
				assert_true(check.is_equal);
			else
				assert_false(check.is_equal);
			end();
		}
}

/* What the true requests need under other settings. */
static uint64_t true_peak(const char *text)
{
	struct allocator_options options = {.version = 211,
		.device_bytes = story.recording.device_bytes,
		.addresses = ALLOCATOR_DOWN};
	struct allocator_block *blocks[MAX_STEPS] = {NULL};
	char problem[200];
	struct allocator *allocator;
	uint64_t peak;

	settings_default(&options.settings);
	assert_true(settings_apply(&options.settings, text, 211, problem, sizeof(problem)));
	allocator = allocator_new(&options);
	for (size_t i = 0; i < story.recording.n_steps; i++) {
		const struct whatif_step *step = &story.steps[i];

		if (step->kind == WHATIF_GET)
			blocks[step->block] = allocator_get(allocator, 1, 0, story.asked_bytes[i]);
		else if (step->kind == WHATIF_PUT)
			allocator_put(allocator, blocks[step->block], false);
		else
			allocator_empty_cache(allocator);
	}
	peak = allocator_stats(allocator)->peak_reserved_bytes;
	allocator_free(allocator);
	return peak;
}

static struct whatif_prediction predict(const char *text, uint64_t capacity_bytes)
{
	struct whatif_prediction prediction;
	struct whatif_check check;
	struct settings settings;
	char problem[200];

	settings_default(&settings);
	assert_true(settings_apply(&settings, text, 211, problem, sizeof(problem)));
	whatif_check(&story.recording, &check);
	assert_true(check.is_equal);
	whatif_predict(&story.recording, &settings, capacity_bytes, &prediction);
	return prediction;
}

/* An expandable recording knows each size, so that only addresses are left to guess. */
static void predicts_from_exact_sizes(void **state)
{
	unsigned int n_exact = 0;

	(void)state;
	for (unsigned int seed = 0; seed < 20; seed++) {
		const char *text = list_of_settings[seed % N_SETTINGS];
		struct whatif_prediction prediction;
		uint64_t peak;

		srand(seed);
		begin("expandable_segments:True", 0);
		live(1500);
		prediction = predict(text, 0);
		peak = true_peak(text);
		assert_int_equal(prediction.peak_reserved.value, peak);
		assert_int_equal(story.recording.n_unsure, 0);
		assert_int_equal(prediction.why & ~WHATIF_WHY_ADDRESSES, 0);
		n_exact += prediction.class == WHATIF_EXACT;
		assert_true(prediction.class == WHATIF_EXACT || prediction.class == WHATIF_RANGE);
		end();
	}
	assert_true(n_exact >= 4);
}

/* Under the default sizes are known to 1 MiB; other calls from the same place tell the rest. */
static void repairs_sizes(void **state)
{
	size_t n_wrong = 0, n_still_wrong = 0;

	(void)state;
	for (unsigned int seed = 0; seed < 10; seed++) {
		struct whatif_check check;

		srand(seed);
		begin("", 0);
		live(2000);
		whatif_check(&story.recording, &check);
		assert_true(story.recording.n_unsure > 0);
		for (size_t i = 0; i < story.recording.n_steps; i++) {
			const struct whatif_step *step = &story.steps[i];

			if (step->kind != WHATIF_GET)
				continue;
			n_wrong += step->bytes != story.asked_bytes[i];
			n_still_wrong += step->likely_bytes != story.asked_bytes[i];
		}
		end();
	}
	assert_true(n_wrong > 100);
	assert_true(n_still_wrong * 4 < n_wrong);
}

/* At the capacity said to be needed nothing is refused; a step below, something is. */
static void finds_what_is_needed(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < 10; seed++) {
		const char *text = list_of_settings[seed % N_SETTINGS];
		struct whatif_prediction prediction;
		uint64_t needed;

		srand(seed);
		begin("expandable_segments:True", 0);
		live(1500);
		prediction = predict(text, 0);
		assert_true(prediction.has_needed);
		needed = prediction.needed.value;
		assert_true(needed < prediction.peak_reserved.value + 20 * MIB);
		assert_true(prediction.needed_step < story.recording.n_steps);
		assert_true(predict(text, needed).fits);
		prediction = predict(text, needed - 2 * MIB);
		assert_false(prediction.fits);
		assert_true(prediction.refused_step < story.recording.n_steps);
		end();
	}
}

static void says_what_it_cannot_know(void **state)
{
	struct whatif_prediction prediction;
	uint32_t block;

	(void)state;
	begin("", 100 * MIB);
	block = get(60 * MIB, 1);
	assert_int_equal(get(60 * MIB, 1), UINT32_MAX);
	put(block);
	prediction = predict("expandable_segments:True", 0);
	assert_int_equal(prediction.class, WHATIF_LOWER_BOUND);
	assert_int_equal(prediction.why & WHATIF_WHY_PASSED, WHATIF_WHY_PASSED);
	end();

	begin("", 0);
	block = get(60 * MIB, 1);
	add_step(WHATIF_PUT_PENDING)->block = block;
	prediction = predict("", 0);
	assert_int_equal(prediction.class, WHATIF_RANGE);
	assert_int_equal(prediction.why & WHATIF_WHY_PENDING, WHATIF_WHY_PENDING);
	prediction = predict("backend:cudaMallocAsync", 0);
	assert_int_equal(prediction.class, WHATIF_LOWER_BOUND);
	assert_int_equal(prediction.peak_reserved.value, 64 * MIB);
	story.recording.version = 202;
	prediction = predict("", 0);
	assert_int_equal(prediction.why & WHATIF_WHY_VERSION, WHATIF_WHY_VERSION);
	story.recording.settings.backend = SETTINGS_ASYNC;
	prediction = predict("", 0);
	assert_int_equal(prediction.class, WHATIF_NO_ANSWER);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replays_itself),
		cmocka_unit_test(replays_sizes_at_the_border),
		cmocka_unit_test(sees_differences),
		cmocka_unit_test(sees_other_settings),
		cmocka_unit_test(predicts_from_exact_sizes),
		cmocka_unit_test(repairs_sizes),
		cmocka_unit_test(finds_what_is_needed),
		cmocka_unit_test(says_what_it_cannot_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
