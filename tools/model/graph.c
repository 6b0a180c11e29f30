/*
 * Memory of graphs. A node that allocates is given its address when it is added; its memory is live
 * from the first launch of an executable of that graph on, until a launch or the program frees it.
 * Physical memory is owned by a pool of the device, which keeps what is freed.
 *
 * A graph made executable keeps its nodes, and may be given more; an executable graph has those
 * that were there when it was made.
 */
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"
#include "model/memory.h"

void graph_settle(struct model_device *device)
{
	ledger_hold(device, &device->held.graph_bytes,
		device->graph_sampled ? device->graph_reserved_bytes
				      : device->kinds[VT_KIND_GRAPH].live_bytes);
}

static struct model_graph *find(struct model_graph *graphs, uint64_t handle)
{
	struct model_graph *graph;

	HASH_FIND(hh, graphs, &handle, sizeof(handle), graph);
	return graph;
}

static void drop(struct model_graph **graphs, struct model_graph *graph)
{
	if (!graph)
		return;
	HASH_DEL(*graphs, graph);
	free(graph->nodes.items);
	free(graph);
}

static struct model_graph *obtain(struct model_graph **graphs, uint64_t handle)
{
	struct model_graph *graph = find(*graphs, handle);

	if (graph)
		return graph;
	graph = memory_new(1, sizeof(*graph));
	graph->handle = handle;
	HASH_ADD(hh, *graphs, handle, sizeof(graph->handle), graph);
	return graph;
}

static void add_node(struct model *model, uint64_t handle, const struct model_graph_node *node)
{
	struct model_graph_nodes *nodes = &obtain(&model->graphs, handle)->nodes;

	nodes->items =
		memory_grow(nodes->items, nodes->n_items, &nodes->room, sizeof(*nodes->items));
	nodes->items[nodes->n_items++] = *node;
}

static void note_refused(struct model *model, const struct model_failure_key *about, uint64_t bytes,
	uint64_t time_ns)
{
	struct model_failure_key key = *about;

	key.refusal = MODEL_REFUSED_GRAPH;
	key.kind = VT_KIND_GRAPH;
	model_note_failure(model, &key, bytes, time_ns);
}

static void apply_alloc(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_graph_alloc *given = &record->graph_alloc;
	struct model_device *device = model_device_of(model, given->device);
	struct model_graph_node node = {
		.address = given->address,
		.bytes = given->bytes,
		.stack_id = given->stack_id,
		.device = device,
		.tid = record->tid,
	};

	if (given->result) {
		note_refused(model,
			&(struct model_failure_key){.stack_id = given->stack_id,
				.api_id = given->api_id,
				.result = given->result,
				.device = device->ordinal},
			given->bytes, given->time_ns);
		return;
	}
	device->graph_nodes_seen = true;
	add_node(model, given->graph, &node);
}

static void apply_free(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_graph_free *given = &record->graph_free;
	struct model_graph_node node = {.address = given->address, .frees = true};

	if (given->result)
		note_refused(model,
			&(struct model_failure_key){.stack_id = given->stack_id,
				.api_id = given->api_id,
				.result = given->result,
				.device = MODEL_DEVICE_UNKNOWN},
			0, given->time_ns);
	else
		add_node(model, given->graph, &node);
}

/* The executable graph keeps the nodes as they are now. One without nodes is not worth knowing. */
static void instantiate(struct model *model, const struct vt_rec_graph *given)
{
	const struct model_graph *graph = find(model->graphs, given->graph);
	struct model_graph *exec;

	drop(&model->execs, find(model->execs, given->exec));
	if (!graph || !graph->nodes.n_items)
		return;
	exec = obtain(&model->execs, given->exec);
	exec->nodes.n_items = exec->nodes.room = graph->nodes.n_items;
	exec->nodes.items = memory_new(exec->nodes.room, sizeof(*exec->nodes.items));
	memcpy(exec->nodes.items, graph->nodes.items,
		graph->nodes.n_items * sizeof(*graph->nodes.items));
}

static void run_node(struct model *model, const struct model_graph_node *node, uint64_t time_ns)
{
	struct model_block *block = ledger_block_from(model, node->address);
	const struct place_in_trace place = {node->stack_id, time_ns, node->tid};

	if (block && block->kind != VT_KIND_GRAPH)
		block = NULL;
	if (node->frees) {
		if (block)
			ledger_end_block(model, block, false);
	} else if (!block) {
		block = ledger_new_block(model, VT_KIND_GRAPH, node->address);
		block->bytes = node->bytes;
		block->device = node->device;
		ledger_add(model, block, &place);
	}
}

static void launch(struct model *model, const struct vt_rec_graph *given)
{
	const struct model_graph *exec = find(model->execs, given->exec);

	model->n_graph_launches++;
	for (size_t i = 0; exec && i < exec->nodes.n_items; i++)
		run_node(model, &exec->nodes.items[i], given->time_ns);
}

/* What no graph uses goes back. */
static void trim(struct model_device *device)
{
	if (device->graph_reserved_bytes > device->graph_used_bytes)
		device->graph_reserved_bytes = device->graph_used_bytes;
	graph_settle(device);
}

static void apply_action(struct model *model, const struct vt_rec_graph *given)
{
	struct model_device *device = model_device_of(model, given->device);

	if (given->result) {
		note_refused(model,
			&(struct model_failure_key){.stack_id = given->stack_id,
				.api_id = given->api_id,
				.result = given->result,
				.device = device->ordinal},
			0, given->time_ns);
		return;
	}
	switch (given->action) {
	case VT_GRAPH_INSTANTIATE:
		instantiate(model, given);
		break;
	case VT_GRAPH_LAUNCH:
		launch(model, given);
		break;
	case VT_GRAPH_EXEC_DESTROY:
		drop(&model->execs, find(model->execs, given->exec));
		break;
	case VT_GRAPH_DESTROY:
		drop(&model->graphs, find(model->graphs, given->graph));
		break;
	case VT_GRAPH_TRIM:
		trim(device);
		break;
	default:
		break;
	}
}

static void apply_memory(struct model *model, const struct vt_rec_graph_memory *given)
{
	struct model_device *device = model_device_of(model, given->device);

	device->graph_sampled = true;
	device->graph_reserved_bytes = given->reserved_bytes;
	device->graph_used_bytes = given->used_bytes;
	graph_settle(device);
	ledger_note_peak(device, given->time_ns);
}

void graph_apply(struct model *model, const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_graph_alloc:
		apply_alloc(model, record);
		break;
	case VT_REC_graph_free:
		apply_free(model, record);
		break;
	case VT_REC_graph:
		apply_action(model, &record->graph);
		break;
	case VT_REC_graph_memory:
		apply_memory(model, &record->graph_memory);
		break;
	default:
		break;
	}
}

void graph_release(struct model *model)
{
	while (model->graphs)
		drop(&model->graphs, model->graphs);
	while (model->execs)
		drop(&model->execs, model->execs);
}
