/* tools/model: random stories against a plain recount, and records of any content. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/story.h"

/* One block of the recount. */
struct block {
	uint64_t address;
	uint64_t bytes;
	int device;
};

#define SLOTS 300u

static void recount(const struct story *story, const struct block *blocks)
{
	static bool pages[2][SLOTS * 4];
	uint64_t live[2] = {0}, held[2] = {0}, n_live[2] = {0};

	memset(pages, 0, sizeof(pages));
	for (unsigned int i = 0; i < SLOTS; i++) {
		const struct block *block = &blocks[i];

		if (!block->address)
			continue;
		live[block->device] += block->bytes;
		n_live[block->device]++;
		if (block->bytes > MIB)
			held[block->device] += (block->bytes + PAGE - 1) / PAGE * PAGE;
		else
			pages[block->device][block->address / PAGE] = true;
	}
	for (int d = 0; d < 2; d++) {
		for (unsigned int p = 0; p < SLOTS * 4; p++)
			held[d] += pages[d][p] * PAGE;
		assert_int_equal(totals(story, d, VT_KIND_LINEAR)->live_bytes, live[d]);
		assert_int_equal(totals(story, d, VT_KIND_LINEAR)->n_live, n_live[d]);
		assert_int_equal(tracked(story, d), held[d]);
	}
}

/* Half-page slots hold small blocks, whole ones large blocks; after each step everything is counted
 * anew. */
static void test_random_blocks(void **state)
{
	struct story story = begin(2);
	struct source random = {.state = 42};
	static struct block blocks[SLOTS];
	uint64_t peak[2] = {0};

	(void)state;
	for (unsigned int step = 0; step < 20000; step++) {
		unsigned int i = (unsigned int)(source_next(&random) % SLOTS);
		struct block *block = &blocks[i];

		if (block->address) {
			give_back(&story, block->address, 0);
			block->address = 0;
		} else {
			/* Two neighbours of one device share a page when they are small. */
			bool large = i % 4 >= 2;

			block->device = (int)(i / 4 % 2);
			block->address =
				large ? (i + 1) * 2 * PAGE : (i / 2 + 1) * 4 * PAGE + i % 2 * MIB;
			block->bytes = large ? MIB + 1 + source_next(&random) % (2 * PAGE - MIB)
					     : 1 + source_next(&random) % MIB;
			alloc(&story, VT_KIND_LINEAR, block->device, block->address, block->bytes,
				i);
		}
		for (int d = 0; d < 2; d++)
			if (tracked(&story, d) > peak[d])
				peak[d] = tracked(&story, d);
		if (step % 16 == 0)
			recount(&story, blocks);
	}
	for (int d = 0; d < 2; d++)
		assert_int_equal(model_device_find(story.model, d)->peak_tracked_bytes, peak[d]);
	assert_int_equal(story.model->n_missed_frees, 0);
	assert_int_equal(story.model->n_unknown_frees, 0);
	model_free(story.model);
}

/* Whatever the records say, the model stands it, and its sites add up to its devices. */
static void test_any_records(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		static struct source sources[2000];
		struct model *model = model_new();
		uint64_t by_device = 0, by_site = 0;
		struct vt_record record;

		for (unsigned int i = 0; i < 2000; i++) {
			/* Texts of the records have to live as long as the model. */
			sources[i] = (struct source){.state = seed << 32 | i, .time_ns = i};
			if (!record_fill(&record,
				    (unsigned int)(source_next(&sources[i]) % VT_N_RECORDS),
				    &sources[i]))
				continue;
			/* Few addresses and handles, so that records have to do with one another.
			 */
			if (record.kind == VT_REC_alloc)
				record.alloc.address %= 64;
			if (record.kind == VT_REC_free)
				record.free.address %= 64;
			if (record.kind == VT_REC_map)
				record.map.handle %= 8;
			if (record.kind == VT_REC_handle_create)
				record.handle_create.handle %= 8;
			model_apply(model, &record);
		}
		for (size_t i = 0; i < model->n_devices; i++)
			for (unsigned int kind = 0; kind < VT_N_KINDS; kind++)
				by_device += model->devices[i]->kinds[kind].n_live;
		for (unsigned int kind = 0; kind < VT_N_KINDS; kind++)
			by_device +=
				model->unknown.kinds[kind].n_live + model->host.kinds[kind].n_live;
		for (const struct model_site *s = model->sites; s; s = s->hh.next)
			by_site += s->n_live;
		assert_int_equal(by_device, by_site);
		assert_true(by_site > 0);
		model_free(model);
	}
}

static void test_tree(void **state)
{
	static struct tree_node nodes[1024];
	static bool in[1024];
	struct source random = {.state = 7};
	struct tree tree = {0};

	(void)state;
	for (unsigned int step = 0; step < 20000; step++) {
		uint64_t key = source_next(&random) % 1024, probe = source_next(&random) % 1100;
		uint64_t below = probe < 1024 ? probe : 1023, above = probe;

		if (in[key])
			tree_remove(&tree, &nodes[key]);
		else
			tree_insert(&tree, &nodes[key], key);
		in[key] = !in[key];
		while (below && !in[below])
			below--;
		while (above < 1024 && !in[above])
			above++;
		assert_ptr_equal(tree_floor(&tree, probe), in[below] ? &nodes[below] : NULL);
		assert_ptr_equal(tree_ceiling(&tree, probe), above < 1024 ? &nodes[above] : NULL);
		assert_ptr_equal(tree_find(&tree, key), in[key] ? &nodes[key] : NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_blocks),
		cmocka_unit_test(test_any_records),
		cmocka_unit_test(test_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
