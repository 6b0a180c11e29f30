/* tools/model: memory of graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/story.h"

#define GRAPH 0x100
#define EXEC  0x200

static void node_alloc(struct story *story, uint64_t graph, uint64_t address, uint64_t bytes)
{
	apply(story, (struct vt_record){.kind = VT_REC_graph_alloc,
			     .graph_alloc = {.graph = graph,
				     .device = 0,
				     .address = address,
				     .bytes = bytes,
				     .stack_id = 3}});
}

static void node_free(struct story *story, uint64_t graph, uint64_t address)
{
	apply(story, (struct vt_record){.kind = VT_REC_graph_free,
			     .graph_free = {.graph = graph, .address = address}});
}

static void graph_do(struct story *story, uint64_t action, uint64_t graph, uint64_t exec)
{
	apply(story, (struct vt_record){.kind = VT_REC_graph,
			     .graph = {.action = action, .graph = graph, .exec = exec}});
}

static void graphs_say(struct story *story, uint64_t reserved, uint64_t used)
{
	apply(story, (struct vt_record){.kind = VT_REC_graph_memory,
			     .graph_memory = {.reserved_bytes = reserved, .used_bytes = used}});
}

/* Recorded when the node is added, live from the first launch on. */
static void test_launch(void **state)
{
	struct story story = begin(1);
	const struct model_device *dev = model_device_find(story.model, 0);
	const struct model_totals *memory = totals(&story, 0, VT_KIND_GRAPH);

	(void)state;
	assert_false(dev->graph_nodes_seen);
	node_alloc(&story, GRAPH, 0x1000000, 3 * MIB);
	node_alloc(&story, GRAPH, 0x2000000, MIB);
	assert_true(dev->graph_nodes_seen);
	graph_do(&story, VT_GRAPH_INSTANTIATE, GRAPH, EXEC);
	assert_int_equal(memory->n_allocs, 0);
	graph_do(&story, VT_GRAPH_LAUNCH, 0, EXEC + 1);
	assert_int_equal(memory->n_allocs, 0);
	graph_do(&story, VT_GRAPH_LAUNCH, 0, EXEC);
	graph_do(&story, VT_GRAPH_LAUNCH, 0, EXEC);
	assert_int_equal(story.model->n_graph_launches, 3);
	assert_int_equal(memory->n_live, 2);
	assert_int_equal(memory->live_bytes, 4 * MIB);
	assert_int_equal(tracked(&story, 0), 4 * MIB);
	assert_int_equal(site(&story, 3)->live_bytes, 4 * MIB);
	assert_int_equal(site(&story, 3)->first_ns, 104);
	/* The pool of the device owns it. */
	graphs_say(&story, 16 * PAGE, 4 * MIB);
	assert_int_equal(tracked(&story, 0), 16 * PAGE);
	assert_int_equal(dev->peak_tracked_bytes, 16 * PAGE);
	/* The program may free it itself. */
	apply(&story, (struct vt_record){.kind = VT_REC_free,
			      .free = {.kind = VT_KIND_POOL, .address = 0x2000000}});
	assert_int_equal(memory->live_bytes, 3 * MIB);
	assert_int_equal(tracked(&story, 0), 16 * PAGE);
	graphs_say(&story, 16 * PAGE, 3 * MIB);
	graph_do(&story, VT_GRAPH_TRIM, 0, 0);
	assert_int_equal(tracked(&story, 0), 3 * MIB);
	assert_int_equal(story.model->n_unknown_frees, 0);
	model_free(story.model);
}

/* Another graph may free it. */
static void test_freed_by_graphs(void **state)
{
	struct story story = begin(1);
	const struct model_totals *memory = totals(&story, 0, VT_KIND_GRAPH);

	(void)state;
	node_alloc(&story, GRAPH, 0x1000000, PAGE);
	node_alloc(&story, GRAPH, 0x2000000, PAGE);
	node_free(&story, GRAPH, 0x2000000);
	graph_do(&story, VT_GRAPH_INSTANTIATE, GRAPH, EXEC);
	node_free(&story, GRAPH + 1, 0x1000000);
	graph_do(&story, VT_GRAPH_INSTANTIATE, GRAPH + 1, EXEC + 1);
	graph_do(&story, VT_GRAPH_LAUNCH, 0, EXEC);
	assert_int_equal(memory->n_live, 1);
	assert_int_equal(memory->n_frees, 1);
	graph_do(&story, VT_GRAPH_LAUNCH, 0, EXEC + 1);
	assert_int_equal(memory->n_live, 0);
	assert_int_equal(tracked(&story, 0), 0);
	graph_do(&story, VT_GRAPH_EXEC_DESTROY, 0, EXEC);
	graph_do(&story, VT_GRAPH_LAUNCH, 0, EXEC);
	assert_int_equal(memory->n_live, 0);
	model_free(story.model);
}

/* A handle comes back: an executable graph keeps its nodes, and the new graph has only its own. */
static void test_handle_comes_back(void **state)
{
	struct story story = begin(1);
	const struct model_totals *memory = totals(&story, 0, VT_KIND_GRAPH);

	(void)state;
	node_alloc(&story, GRAPH, 0x1000000, PAGE);
	graph_do(&story, VT_GRAPH_INSTANTIATE, GRAPH, EXEC);
	graph_do(&story, VT_GRAPH_DESTROY, GRAPH, 0);
	node_alloc(&story, GRAPH, 0x2000000, 2 * PAGE);
	graph_do(&story, VT_GRAPH_INSTANTIATE, GRAPH, EXEC + 1);
	graph_do(&story, VT_GRAPH_LAUNCH, 0, EXEC + 1);
	assert_int_equal(memory->live_bytes, 2 * PAGE);
	graph_do(&story, VT_GRAPH_LAUNCH, 0, EXEC);
	assert_int_equal(memory->live_bytes, 3 * PAGE);
	/* An executable graph of the same handle, without memory. */
	graph_do(&story, VT_GRAPH_INSTANTIATE, GRAPH + 9, EXEC);
	give_back(&story, 0x1000000, 0);
	graph_do(&story, VT_GRAPH_LAUNCH, 0, EXEC);
	assert_int_equal(memory->live_bytes, 2 * PAGE);
	model_free(story.model);
}

/* A launch that goes into a capture runs nothing, and what is added to a graph later is not in the
 * executable made of it before. */
static void test_captured(void **state)
{
	struct story story = begin(1);
	const struct model_totals *memory = totals(&story, 0, VT_KIND_GRAPH);

	(void)state;
	node_alloc(&story, GRAPH, 0x1000000, PAGE);
	graph_do(&story, VT_GRAPH_INSTANTIATE, GRAPH, EXEC);
	node_alloc(&story, GRAPH, 0x2000000, 2 * PAGE);
	graph_do(&story, VT_GRAPH_CAPTURED, 0, EXEC);
	assert_int_equal(memory->live_bytes, 0);
	assert_int_equal(story.model->n_graph_launches, 0);
	graph_do(&story, VT_GRAPH_LAUNCH, 0, EXEC);
	assert_int_equal(memory->live_bytes, PAGE);
	graph_do(&story, VT_GRAPH_INSTANTIATE, GRAPH, EXEC + 1);
	give_back(&story, 0x1000000, 0);
	graph_do(&story, VT_GRAPH_LAUNCH, 0, EXEC + 1);
	assert_int_equal(memory->live_bytes, 3 * PAGE);
	model_free(story.model);
}

static void test_refused(void **state)
{
	struct story story = begin(1);
	static const uint32_t kinds[] = {VT_REC_graph_alloc, VT_REC_graph_free, VT_REC_graph};

	(void)state;
	apply(&story, (struct vt_record){.kind = VT_REC_graph_alloc,
			      .graph_alloc = {.bytes = PAGE, .result = 2, .api_id = 1}});
	apply(&story, (struct vt_record){
			      .kind = VT_REC_graph_free, .graph_free = {.result = 2, .api_id = 2}});
	apply(&story, (struct vt_record){.kind = VT_REC_graph,
			      .graph = {.action = VT_GRAPH_LAUNCH, .result = 2, .api_id = 3}});
	assert_int_equal(HASH_COUNT(story.model->failures), sizeof(kinds) / sizeof(*kinds));
	for (const struct model_failure *f = story.model->failures; f; f = f->hh.next)
		assert_int_equal(f->key.refusal, MODEL_REFUSED_GRAPH);
	assert_int_equal(story.model->failures->bytes, PAGE);
	assert_int_equal(story.model->n_graph_launches, 0);
	assert_false(model_device_find(story.model, 0)->graph_nodes_seen);
	model_free(story.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launch),
		cmocka_unit_test(test_freed_by_graphs),
		cmocka_unit_test(test_handle_comes_back),
		cmocka_unit_test(test_captured),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
