/* tools/analysis/allocator*.c: PyTorch's rules one by one, worked out by hand from rule to number,
 * and what must hold after any sequence of requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/allocator_internal.h"

#define KIB	  1024u
#define MIB	  SETTINGS_MIB
#define GIB	  (1024 * MIB)
#define N_BLOCKS  300u
#define N_CHANGES 20000u

static struct allocator *new_with(const char *text, uint64_t cap_bytes)
{
	struct allocator_options options = {.version = 211,
		.device_bytes = 16 * GIB,
		.cap_bytes = cap_bytes,
		.addresses = ALLOCATOR_DOWN};
	char problem[200];

	settings_default(&options.settings);
	assert_true(settings_apply(&options.settings, text, 211, problem, sizeof(problem)));
	return allocator_new(&options);
}

static struct allocator_block *get(struct allocator *allocator, uint64_t bytes)
{
	return allocator_get(allocator, 1, 0, bytes);
}

static void put(struct allocator *allocator, struct allocator_block *block)
{
	assert_int_equal(allocator_put(allocator, block, false), 0);
}

static void rounds_requests(void **state)
{
	struct settings settings;
	char problem[200];

	(void)state;
	settings_default(&settings);
	assert_int_equal(allocator_round(&settings, 1), 512);
	assert_int_equal(allocator_round(&settings, 512), 512);
	assert_int_equal(allocator_round(&settings, 513), 1024);
	assert_true(settings_apply(
		&settings, "roundup_power2_divisions:4", 211, problem, sizeof(problem)));
	/* 4 steps from 1 MiB to 2 MiB: 256 KiB each. */
	assert_int_equal(allocator_round(&settings, MIB + 1), MIB + 256 * KIB);
	assert_int_equal(allocator_round(&settings, MIB), MIB);
	assert_int_equal(allocator_round(&settings, 2048), 2048);
	assert_int_equal(allocator_round(&settings, 2049), 2560);
	assert_true(settings_apply(&settings, "roundup_power2_divisions:[2:1,4:2,>:8]", 211,
		problem, sizeof(problem)));
	assert_int_equal(allocator_round(&settings, 2 * MIB + 1), 2 * MIB + 512);
	assert_int_equal(allocator_round(&settings, 4 * MIB + 1), 6 * MIB);
	assert_int_equal(allocator_round(&settings, 16 * MIB + 1), 18 * MIB);
	/* Before 2.9 what is said of '>' holds for the bound before it, too. */
	assert_true(settings_apply(&settings, "roundup_power2_divisions:[2:1,4:2,>:8]", 208,
		problem, sizeof(problem)));
	assert_int_equal(allocator_round(&settings, 4 * MIB + 1), 4 * MIB + 512 * KIB);
}

/* The least request that is rounded up to a size is so much smaller, and no more. */
static void knows_what_rounding_hides(void **state)
{
	struct settings settings;
	char problem[200];

	(void)state;
	settings_default(&settings);
	assert_int_equal(allocator_rounding(&settings, 3 * MIB), 0);
	assert_true(settings_apply(
		&settings, "roundup_power2_divisions:4", 211, problem, sizeof(problem)));
	assert_int_equal(allocator_rounding(&settings, 512), 0);
	for (uint64_t bytes = 2 * MIB; bytes <= 8 * MIB; bytes += bytes < 4 * MIB ? MIB / 2 : MIB) {
		uint64_t least = bytes - allocator_rounding(&settings, bytes);

		assert_int_equal(allocator_round(&settings, least), bytes);
		assert_true(allocator_round(&settings, least - 512) < bytes);
	}
}

/* Segments at random places: no two overlap, and their order is not that of the requests. */
static void places_segments_anywhere(void **state)
{
	unsigned int n_below = 0;

	(void)state;
	for (unsigned int seed = 0; seed < 20; seed++) {
		struct allocator_options options = {.addresses = ALLOCATOR_ANYWHERE, .seed = seed};
		struct allocator *allocator;
		uint64_t first, second;

		settings_default(&options.settings);
		allocator = allocator_new(&options);
		first = allocator_block_address(allocator_get(allocator, 1, 0, 40 * MIB));
		second = allocator_block_address(allocator_get(allocator, 1, 0, 40 * MIB));
		assert_true(first + 40 * MIB <= second || second + 40 * MIB <= first);
		n_below += second < first;
		allocator_free(allocator);
	}
	assert_in_range(n_below, 3, 17);
}

static void asks_for_segments(void **state)
{
	static const struct {
		uint64_t bytes, reserved_bytes;
	} cases[] = {
		{1, 2 * MIB},
		{MIB, 2 * MIB},
		{MIB + 1, 20 * MIB},
		{10 * MIB - 512, 20 * MIB},
		{10 * MIB, 10 * MIB},
		{11 * MIB, 12 * MIB},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct allocator *allocator = new_with("", 0);

		get(allocator, cases[i].bytes);
		assert_int_equal(
			allocator_stats(allocator)->reserved_bytes, cases[i].reserved_bytes);
		allocator_free(allocator);
	}
}

/* In the large pool the rest of a block is split off only when it is more than 1 MiB. */
static void splits(void **state)
{
	struct allocator *allocator = new_with("", 0);
	struct allocator_block *block = get(allocator, 20 * MIB);

	(void)state;
	put(allocator, block);
	block = get(allocator, 19 * MIB);
	assert_int_equal(allocator_block_bytes(block), 20 * MIB);
	put(allocator, block);
	block = get(allocator, 19 * MIB - 512);
	assert_int_equal(allocator_block_bytes(block), 19 * MIB - 512);
	put(allocator, block);
	block = get(allocator, 20 * MIB);
	assert_int_equal(allocator_stats(allocator)->n_device_allocs, 1);
	block = get(allocator, 2 * MIB - 512);
	assert_int_equal(allocator_block_bytes(block), 2 * MIB - 512);
	assert_int_equal(allocator_stats(allocator)->n_device_allocs, 2);
	allocator_free(allocator);
}

static void takes_the_lowest_of_the_smallest(void **state)
{
	struct allocator *allocator = new_with("", 0);
	struct allocator_block *a = get(allocator, 30 * MIB), *b = get(allocator, 30 * MIB);
	struct allocator_block *c = get(allocator, 40 * MIB);
	uint64_t lower = allocator_block_address(b);

	(void)state;
	assert_true(lower < allocator_block_address(a));
	put(allocator, a);
	put(allocator, b);
	put(allocator, c);
	assert_int_equal(allocator_block_address(get(allocator, 30 * MIB)), lower);
	/* Another stream's blocks are not for this one. */
	allocator_get(allocator, 2, 0, 30 * MIB);
	assert_int_equal(allocator_stats(allocator)->n_device_allocs, 4);
	allocator_free(allocator);
}

static void keeps_oversize_blocks_whole(void **state)
{
	struct allocator *allocator = new_with("max_split_size_mb:64", 0);
	struct allocator_block *block = get(allocator, 100 * MIB);

	(void)state;
	put(allocator, block);
	/* Not for a small request, nor for one that leaves 20 MiB or more unused. */
	put(allocator, get(allocator, 30 * MIB));
	put(allocator, get(allocator, 80 * MIB));
	assert_int_equal(allocator_stats(allocator)->n_device_allocs, 3);
	block = get(allocator, 81 * MIB);
	assert_int_equal(allocator_block_bytes(block), 100 * MIB);
	assert_int_equal(allocator_stats(allocator)->n_device_allocs, 3);
	allocator_free(allocator);
}

/* Rule 14 before rule 15: the one oversize block goes, the rest of the cache stays. */
static void releases_oversize_blocks_first(void **state)
{
	struct allocator *allocator = new_with("max_split_size_mb:64", 200 * MIB);

	(void)state;
	put(allocator, get(allocator, 30 * MIB));
	put(allocator, get(allocator, 120 * MIB));
	get(allocator, 90 * MIB);
	assert_int_equal(allocator_stats(allocator)->n_retries, 0);
	assert_int_equal(allocator_stats(allocator)->n_device_frees, 1);
	assert_int_equal(allocator_stats(allocator)->reserved_bytes, 120 * MIB);
	allocator_free(allocator);
}

static void releases_everything_then_refuses(void **state)
{
	struct allocator *allocator = new_with("", 100 * MIB);
	struct allocator_block *held;

	(void)state;
	put(allocator, get(allocator, 60 * MIB));
	held = get(allocator, 1);
	assert_non_null(get(allocator, 90 * MIB));
	assert_int_equal(allocator_stats(allocator)->n_retries, 1);
	assert_int_equal(allocator_stats(allocator)->reserved_bytes, 92 * MIB);
	assert_null(get(allocator, 10 * MIB));
	assert_int_equal(allocator_stats(allocator)->n_refused, 1);
	assert_int_equal(allocator_stats(allocator)->n_retries, 2);
	put(allocator, held);
	/* No full release while a capture is under way. */
	allocator_scope(allocator, true);
	assert_null(get(allocator, 10 * MIB));
	allocator_scope(allocator, false);
	assert_non_null(get(allocator, 10 * MIB));
	allocator_free(allocator);
}

/* The cap counts the segment, not the request. */
static void checks_the_cap_with_the_segment(void **state)
{
	struct allocator *allocator = new_with("", 19 * MIB);

	(void)state;
	assert_null(get(allocator, 2 * MIB));
	assert_non_null(get(allocator, 10 * MIB));
	allocator_free(allocator);
}

static void waits_for_other_streams(void **state)
{
	struct allocator *allocator = new_with("", 0);
	struct allocator_block *block = get(allocator, 30 * MIB);
	uint64_t ticket = allocator_put(allocator, block, true);

	(void)state;
	assert_int_not_equal(ticket, 0);
	block = get(allocator, 30 * MIB);
	assert_int_equal(allocator_stats(allocator)->n_device_allocs, 2);
	assert_int_equal(allocator_stats(allocator)->allocated_bytes, 60 * MIB);
	allocator_ready(allocator, ticket);
	assert_int_equal(allocator_stats(allocator)->allocated_bytes, 30 * MIB);
	allocator_ready(allocator, ticket);
	get(allocator, 30 * MIB);
	assert_int_equal(allocator_stats(allocator)->n_device_allocs, 2);
	ticket = allocator_put(allocator, block, true);
	allocator_empty_cache(allocator);
	assert_int_equal(allocator_stats(allocator)->reserved_bytes, 30 * MIB);
	allocator_ready(allocator, ticket);
	allocator_free(allocator);
}

static void collects_old_blocks(void **state)
{
	struct allocator *allocator = new_with("garbage_collection_threshold:0.5", 200 * MIB);
	struct allocator_block *old = get(allocator, 30 * MIB), *young = get(allocator, 40 * MIB);

	(void)state;
	put(allocator, old);
	for (unsigned int i = 0; i < 10; i++)
		put(allocator, get(allocator, 40 * MIB));
	put(allocator, young);
	/* 110 reserved of 200 is more than half: the next miss frees what is older than average. */
	get(allocator, 50 * MIB);
	assert_int_equal(allocator_stats(allocator)->n_device_frees, 1);
	assert_int_equal(allocator_stats(allocator)->reserved_bytes, 130 * MIB);
	allocator_free(allocator);
}

/* All that are as old as the average go, also when fewer would do. */
static void collects_without_stopping_early(void **state)
{
	struct allocator *allocator = new_with("garbage_collection_threshold:0.5", 400 * MIB);
	struct allocator_block *old[3];

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		old[i] = get(allocator, (30 + 10 * i) * MIB);
	for (unsigned int i = 0; i < 3; i++)
		put(allocator, old[i]);
	for (unsigned int i = 0; i < 10; i++)
		put(allocator, get(allocator, 60 * MIB));
	get(allocator, 60 * MIB);
	get(allocator, 62 * MIB);
	assert_int_equal(allocator_stats(allocator)->n_device_frees, 0);
	/* 242 of 400 reserved: 42 too many, which the first two would give. */
	get(allocator, 70 * MIB);
	assert_int_equal(allocator_stats(allocator)->n_device_frees, 3);
	allocator_free(allocator);
}

/* Rule 7: the end that can grow is kept for what fits nowhere else. */
static void keeps_the_growing_end(void **state)
{
	struct allocator *allocator = new_with("expandable_segments:True", 0);
	struct allocator_block *a = get(allocator, 12 * MIB), *b = get(allocator, 5 * MIB);
	uint64_t first = allocator_block_address(a);

	(void)state;
	put(allocator, a);
	/* 12 MiB are free in front of b, and 3 MiB behind it. */
	assert_int_equal(allocator_block_address(b), first + 12 * MIB);
	assert_int_equal(allocator_block_address(get(allocator, 2 * MIB)), first);
	allocator_free(allocator);
}

static void expands(void **state)
{
	struct allocator *allocator = new_with("expandable_segments:True", 0);
	struct allocator_block *a = get(allocator, 30 * MIB), *b = get(allocator, 5 * MIB);

	(void)state;
	/* Two pages of 20 MiB, and the second request lies in the rest of the second. */
	assert_int_equal(allocator_stats(allocator)->reserved_bytes, 40 * MIB);
	assert_int_equal(allocator_block_address(b), allocator_block_address(a) + 30 * MIB);
	put(allocator, b);
	/* 10 MiB are free at the end: one page more makes 30. */
	b = get(allocator, 25 * MIB);
	assert_int_equal(allocator_stats(allocator)->reserved_bytes, 60 * MIB);
	assert_int_equal(allocator_stats(allocator)->n_device_allocs, 2);
	put(allocator, a);
	/* Only the whole page inside the free 30 MiB goes. */
	allocator_empty_cache(allocator);
	assert_int_equal(allocator_stats(allocator)->reserved_bytes, 40 * MIB);
	put(allocator, b);
	allocator_empty_cache(allocator);
	assert_int_equal(allocator_stats(allocator)->reserved_bytes, 0);
	allocator_free(allocator);
}

static void keeps_graph_pools_apart(void **state)
{
	struct allocator *allocator = new_with("", 0);
	struct allocator_block *block;

	(void)state;
	put(allocator, get(allocator, 30 * MIB));
	block = allocator_get(allocator, 1, 7, 30 * MIB);
	assert_int_equal(allocator_stats(allocator)->n_device_allocs, 2);
	put(allocator, block);
	allocator_empty_cache(allocator);
	assert_int_equal(allocator_stats(allocator)->reserved_bytes, 30 * MIB);
	allocator_pool_unused(allocator, 7);
	allocator_empty_cache(allocator);
	assert_int_equal(allocator_stats(allocator)->reserved_bytes, 0);
	allocator_free(allocator);
}

/* Blocks tile each segment, free neighbours are merged, and the sums are the statistics. */
static void check(const struct allocator *allocator)
{
	uint64_t reserved_bytes = 0, used_bytes = 0;
	const struct tree_node *node;

	for (node = tree_ceiling(&allocator->segments, 0); node;
		node = tree_next(&allocator->segments, node)) {
		const struct segment *segment = (const struct segment *)node;
		uint64_t at = node->key, mapped_bytes = 0;

		for (const struct allocator_block *block = segment->first; block;
			block = block->next) {
			const struct allocator_block *next = block->next;

			assert_int_equal(block->address, at);
			assert_ptr_equal(block->segment, segment);
			at += block->bytes;
			mapped_bytes += block->mapped ? block->bytes : 0;
			used_bytes += block->used || block->pending ? block->bytes : 0;
			if (next && !block->used && !block->pending && !next->used &&
				!next->pending)
				assert_int_not_equal(block->mapped, next->mapped);
			if (next)
				assert_ptr_equal(next->previous, block);
		}
		assert_int_equal(at, node->key + segment->bytes);
		assert_int_equal(mapped_bytes, segment->mapped_bytes);
		reserved_bytes += mapped_bytes;
	}
	assert_int_equal(reserved_bytes, allocator->stats.reserved_bytes);
	assert_int_equal(used_bytes, allocator->stats.allocated_bytes);
}

static uint64_t random_bytes(void)
{
	static const uint64_t limits[] = {4 * KIB, MIB, 12 * MIB, 100 * MIB};
	uint64_t limit = limits[rand() % 4];

	return 1 + (uint64_t)rand() % limit;
}

static void change(struct allocator *allocator, struct allocator_block **blocks)
{
	unsigned int i = (unsigned int)rand() % N_BLOCKS;
	static uint64_t tickets[16];
	unsigned int k = (unsigned int)rand() % 16;

	if (rand() % 500 == 0) {
		allocator_empty_cache(allocator);
	} else if (!blocks[i]) {
		blocks[i] = allocator_get(allocator, (uint64_t)rand() % 3,
			rand() % 8 ? 0 : 1 + (uint64_t)rand() % 2, random_bytes());
	} else if (rand() % 10 == 0) {
		allocator_ready(allocator, tickets[k]);
		tickets[k] = allocator_put(allocator, blocks[i], true);
		blocks[i] = NULL;
	} else {
		put(allocator, blocks[i]);
		blocks[i] = NULL;
	}
}

static void stays_consistent(void **state)
{
	static const char *const settings[] = {"", "expandable_segments:True",
		"max_split_size_mb:32", "max_split_size_mb:32,expandable_segments:True",
		"garbage_collection_threshold:0.6,roundup_power2_divisions:4",
		"large_segment_size_mb:64"};

	(void)state;
	srand(5);
	for (size_t s = 0; s < sizeof(settings) / sizeof(*settings); s++) {
		struct allocator *allocator = new_with(settings[s], 3 * GIB);
		struct allocator_block *blocks[N_BLOCKS] = {0};

		allocator->options.addresses = s % 3;
		for (unsigned int i = 0; i < N_CHANGES; i++) {
			change(allocator, blocks);
			if (i % 64 == 0)
				check(allocator);
		}
		assert_true(allocator_stats(allocator)->n_refused > 0);
		for (unsigned int i = 0; i < N_BLOCKS; i++)
			if (blocks[i])
				put(allocator, blocks[i]);
		allocator_pool_unused(allocator, 1);
		allocator_pool_unused(allocator, 2);
		allocator_empty_cache(allocator);
		check(allocator);
		assert_int_equal(allocator_stats(allocator)->reserved_bytes, 0);
		allocator_free(allocator);
	}
}

static void refuses_settings(void **state)
{
	static const struct {
		const char *text;
		torch_release version;
		const char *problem;
	} cases[] = {
		{"max_split_size_mb:19", 211, "max_split_size_mb"},
		{"max_split_size_mb:20", 202, "over 20"},
		{"expandable_segments:true", 211, "True or False"},
		{"expandable_segments:True", 113, "came with PyTorch 2.1"},
		{"no_such_key:1", 211, "'no_such_key' is no setting"},
		{"garbage_collection_threshold:1", 211, "between 0 and 1"},
		{"roundup_power2_divisions:3", 211, "power of two"},
		{"roundup_power2_divisions:[3:1]", 211, "power of two"},
		{"roundup_power2_divisions:[4:1", 211, "power of two"},
		{"backend:other", 211, "native or cudaMallocAsync"},
		{"large_segment_size_mb:10", 211, "over 10"},
		{"max_split_size_mb:99999999999999999999", 211, "max_split_size_mb"},
	};
	struct settings settings, before;
	char problem[200];

	(void)state;
	settings_default(&settings);
	before = settings;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_false(settings_apply(
			&settings, cases[i].text, cases[i].version, problem, sizeof(problem)));
		assert_non_null(strstr(problem, cases[i].problem));
		assert_memory_equal(&settings, &before, sizeof(settings));
	}
	assert_true(settings_apply(
		&settings, "garbage_collection_threshold=0.5", 211, problem, sizeof(problem)));
	assert_non_null(strstr(problem, "does nothing"));
	assert_int_equal(settings_version("2.11.0+cu130"), 211);
	assert_int_equal(settings_version("1.13.1"), 113);
	assert_int_equal(settings_version("nightly"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds_requests),
		cmocka_unit_test(knows_what_rounding_hides),
		cmocka_unit_test(places_segments_anywhere),
		cmocka_unit_test(asks_for_segments),
		cmocka_unit_test(splits),
		cmocka_unit_test(takes_the_lowest_of_the_smallest),
		cmocka_unit_test(keeps_oversize_blocks_whole),
		cmocka_unit_test(releases_oversize_blocks_first),
		cmocka_unit_test(releases_everything_then_refuses),
		cmocka_unit_test(checks_the_cap_with_the_segment),
		cmocka_unit_test(waits_for_other_streams),
		cmocka_unit_test(collects_old_blocks),
		cmocka_unit_test(collects_without_stopping_early),
		cmocka_unit_test(keeps_the_growing_end),
		cmocka_unit_test(expands),
		cmocka_unit_test(keeps_graph_pools_apart),
		cmocka_unit_test(stays_consistent),
		cmocka_unit_test(refuses_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
