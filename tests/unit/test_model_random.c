/* tools/model: random stories against a plain recount, and records of any content. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/layout.h"
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

static void narrow_blocks(struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_allocator:
		record->allocator.allocator_id %= 3;
		break;
	case VT_REC_block_alloc:
		record->block_alloc.allocator_id %= 3;
		record->block_alloc.address %= 64;
		record->block_alloc.bytes %= 8;
		break;
	case VT_REC_block_free:
		record->block_free.allocator_id %= 3;
		record->block_free.address %= 64;
		break;
	case VT_REC_block_totals:
		record->block_totals.allocator_id %= 3;
		break;
	case VT_REC_block_stream:
		record->block_stream.allocator_id %= 3;
		record->block_stream.address %= 64;
		break;
	case VT_REC_stream_event:
		record->stream_event.action %= 4;
		record->stream_event.event %= 8;
		record->stream_event.address %= 64;
		record->stream_event.caller %= 2;
		record->stream_event.distance = record->stream_event.distance % 20 == 0;
		break;
	default:
		break;
	}
}

/* Few addresses and handles, so that records have to do with one another. */
static void narrow(struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_alloc:
		record->alloc.address %= 64;
		record->alloc.pool %= 4;
		record->alloc.context_id %= 4;
		record->alloc.kind %= VT_N_KINDS;
		break;
	case VT_REC_free:
		record->free.address %= 64;
		record->free.stream %= 4;
		record->free.result %= 2;
		record->free.kind %= VT_N_KINDS;
		break;
	case VT_REC_map:
		record->map.handle %= 8;
		record->map.address %= 64;
		record->map.result %= 2;
		break;
	case VT_REC_unmap:
		record->unmap.address %= 64;
		record->unmap.result %= 2;
		break;
	case VT_REC_handle_create:
		record->handle_create.handle %= 8;
		break;
	case VT_REC_handle_release:
		record->handle_release.handle %= 8;
		record->handle_release.result %= 2;
		break;
	case VT_REC_handle_retain:
		record->handle_retain.handle %= 8;
		record->handle_retain.address %= 64;
		record->handle_retain.result %= 2;
		break;
	case VT_REC_pool:
		record->pool.pool %= 4;
		record->pool.action %= 8;
		record->pool.result %= 2;
		break;
	case VT_REC_pool_memory:
		record->pool_memory.pool %= 4;
		break;
	case VT_REC_graph_alloc:
		record->graph_alloc.graph %= 3;
		record->graph_alloc.address %= 64;
		record->graph_alloc.result %= 2;
		break;
	case VT_REC_graph_free:
		record->graph_free.graph %= 3;
		record->graph_free.address %= 64;
		record->graph_free.result %= 2;
		break;
	case VT_REC_graph:
		record->graph.graph %= 3;
		record->graph.exec %= 3;
		record->graph.action %= 6;
		record->graph.result %= 2;
		break;
	case VT_REC_untracked:
		record->untracked.cause %= VT_N_CAUSES + 1;
		break;
	case VT_REC_context:
		record->context.context_id %= 4;
		record->context.action %= 7;
		record->context.result %= 2;
		break;
	default:
		narrow_blocks(record);
		break;
	}
}

/* What is tracked is what is held, and what pools hold is what their device holds for pools. */
static void check_held(const struct model *model, const struct model_device *device)
{
	const struct model_held *held = &device->held;
	uint64_t pools = 0, live = 0;

	assert_int_equal(device->tracked_bytes, held->linear_bytes + held->array_bytes +
							held->pool_bytes + held->vmm_bytes +
							held->graph_bytes);
	for (const struct model_pool *pool = model->pools; pool; pool = pool->hh.next) {
		if (pool->device != device)
			continue;
		pools += pool->held_bytes;
		live += pool->live_bytes;
	}
	assert_int_equal(held->pool_bytes, pools);
	assert_int_equal(device->kinds[VT_KIND_POOL].live_bytes, live);
	assert_int_equal(device->kinds[VT_KIND_VMM].live_bytes, held->vmm_bytes);
	if (!device->kinds[VT_KIND_LINEAR].n_live)
		assert_int_equal(held->linear_bytes, 0);
	if (!device->kinds[VT_KIND_ARRAY].n_live)
		assert_int_equal(held->array_bytes, 0);
}

/* The sums of an allocator are those of its segments and pieces. */
static void check_allocator(const struct model *model, const struct model_allocator *allocator)
{
	uint64_t live = 0, pending = 0, reserved = 0, held = 0, outside = 0;
	const struct model_piece *piece;
	struct layout layout;

	for (piece = model_piece_first(&allocator->live); piece;
		piece = model_piece_next(&allocator->live, piece)) {
		live += piece->bytes;
		outside += piece->segment ? 0 : piece->bytes;
		assert_int_equal(piece->n_waits, 0);
	}
	for (piece = model_piece_first(&allocator->pending); piece;
		piece = model_piece_next(&allocator->pending, piece)) {
		pending += piece->bytes;
		assert_true(piece->n_waits > 0);
	}
	for (const struct model_segment *segment = model_segment_first(allocator); segment;
		segment = model_segment_next(allocator, segment))
		reserved += segment->bytes;
	for (size_t i = 0; i < allocator->n_holdings; i++)
		held += allocator->holdings[i].live_bytes;
	assert_true(live == allocator->live_bytes && pending == allocator->pending_bytes);
	assert_true(reserved == allocator->reserved_bytes);
	assert_true(outside == allocator->outside_bytes && held == live - outside);
	layout_make(&layout, model, allocator);
	layout_release(&layout);
}

/* Whatever the records say, the model stands it, and its sites add up to its devices. */
static void test_any_records(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
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
			narrow(&record);
			model_apply(model, &record);
		}
		check_held(model, &model->unknown);
		for (size_t i = 0; i < model->n_devices; i++)
			check_held(model, model->devices[i]);
		for (size_t i = 0; i < model->n_devices; i++)
			for (unsigned int kind = 0; kind < VT_N_KINDS; kind++)
				by_device += model->devices[i]->kinds[kind].n_live;
		for (unsigned int kind = 0; kind < VT_N_KINDS; kind++)
			by_device +=
				model->unknown.kinds[kind].n_live + model->host.kinds[kind].n_live;
		for (const struct model_site *s = model->sites; s; s = s->hh.next)
			by_site += s->key.allocator_id ? 0 : s->n_live;
		for (const struct model_allocator *a = model->allocators; a; a = a->hh.next)
			check_allocator(model, a);
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
		struct tree_gap gap = tree_gap_find(&tree, key);

		if (in[key])
			tree_remove(&tree, &nodes[key]);
		else if (step % 2)
			tree_insert(&tree, &nodes[key], key);
		else
			tree_insert_in(&tree, &gap, &nodes[key], key);
		in[key] = !in[key];
		while (below && !in[below])
			below--;
		while (above < 1024 && !in[above])
			above++;
		gap = tree_gap_find(&tree, probe);
		assert_ptr_equal(gap.floor, tree_floor(&tree, probe));
		assert_ptr_equal(gap.ceiling, tree_ceiling(&tree, probe));
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
