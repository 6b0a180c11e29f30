/*
 * Memory of graphs, see tools/model/graph.c. A graph is kept with its nodes while it is there or an
 * executable of it is; those have the nodes that were there when they were made.
 */
#include "record/keep/internal.h"

struct node {
	struct kept *kept; /* graph_alloc or graph_free */
	struct node *next;
};

struct graph {
	uint64_t handle;
	bool destroyed; /* then it is in no table */
	uint64_t n_nodes, n_execs;
	struct node *first, **end;
	struct kept *destroy;
	struct graph *next; /* of those destroyed */
	UT_hash_handle hh;
};

struct exec {
	uint64_t handle;
	struct graph *graph;
	uint64_t n_nodes;
	struct kept *kept; /* instantiate */
	UT_hash_handle hh;
};

static struct graph *graphs, *ended;
static struct exec *execs;

void graph_settle_device(struct keep_device *device)
{
	device_hold(device, VT_KIND_GRAPH,
		device->graph_sampled ? device->graph_reserved_bytes
				      : device->kinds[VT_KIND_GRAPH].live_bytes);
}

static struct graph *graph_of(uint64_t handle, bool make)
{
	struct arena *arena = &keep.arena;
	struct graph *graph;
	bool added = true;

	HASH_FIND(hh, graphs, &handle, sizeof(handle), graph);
	if (graph || !make)
		return graph;
	graph = keep_alloc(sizeof(*graph));
	if (!graph)
		return NULL;
	graph->handle = handle;
	graph->end = &graph->first;
	HASH_ADD(hh, graphs, handle, sizeof(graph->handle), graph);
	return added ? graph : NULL;
}

static void release_if_over(struct graph *graph)
{
	struct graph **link = &ended;

	if (!graph->destroyed || graph->n_execs)
		return;
	while (*link != graph)
		link = &(*link)->next;
	*link = graph->next;
	while (graph->first) {
		struct node *node = graph->first;

		graph->first = node->next;
		kept_free(node->kept);
		keep_free(node, sizeof(*node));
	}
	kept_free(graph->destroy);
	keep_free(graph, sizeof(*graph));
}

static void add_node(uint64_t handle, const struct keep_event *event)
{
	struct graph *graph = graph_of(handle, true);
	struct node *node = graph ? keep_alloc(sizeof(*node)) : NULL;

	if (!node)
		return;
	node->kept = kept_new(event);
	if (!node->kept)
		return;
	*graph->end = node;
	graph->end = &node->next;
	graph->n_nodes++;
}

static void refused(const struct keep_refusal_key *about, uint64_t bytes, uint64_t time_ns)
{
	struct keep_refusal_key key = *about;

	key.refused = VT_REFUSED_GRAPH;
	key.kind = VT_KIND_GRAPH;
	keep_refused(&key, bytes, time_ns);
}

static void apply_alloc(const struct keep_event *event)
{
	const struct vt_rec_graph_alloc *given = keep_record(event, graph_alloc);
	const struct keep_device *device = keep_device_of(given->device);

	if (given->result)
		refused(&(struct keep_refusal_key){.stack_id = given->stack_id,
				.api_id = given->api_id,
				.result = given->result,
				.device = device ? device->ordinal : VT_DEVICE_UNKNOWN},
			given->bytes, given->time_ns);
	else
		add_node(given->graph, event);
}

static void apply_free(const struct keep_event *event)
{
	const struct vt_rec_graph_free *given = keep_record(event, graph_free);

	if (given->result)
		refused(&(struct keep_refusal_key){.stack_id = given->stack_id,
				.api_id = given->api_id,
				.result = given->result,
				.device = VT_DEVICE_UNKNOWN},
			0, given->time_ns);
	else
		add_node(given->graph, event);
}

/* A younger one of that handle is another one. */
static void drop_exec(uint64_t handle, uint64_t time_ns)
{
	struct arena *arena = &keep.arena;
	struct exec *exec;

	HASH_FIND(hh, execs, &handle, sizeof(handle), exec);
	if (!exec || (exec->kept && exec->kept->time_ns > time_ns))
		return;
	exec->graph->n_execs--;
	release_if_over(exec->graph);
	kept_free(exec->kept);
	HASH_DEL(execs, exec);
	keep_free(exec, sizeof(*exec));
}

static void instantiate(const struct keep_event *event)
{
	const struct vt_rec_graph *given = keep_record(event, graph);
	struct graph *graph = graph_of(given->graph, false);
	struct arena *arena = &keep.arena;
	struct exec *exec;
	bool added = true;

	drop_exec(given->exec, event->time_ns);
	if (!graph || !graph->n_nodes)
		return;
	exec = keep_alloc(sizeof(*exec));
	if (!exec)
		return;
	exec->handle = given->exec;
	exec->graph = graph;
	exec->n_nodes = graph->n_nodes;
	exec->kept = kept_new(event);
	graph->n_execs++;
	HASH_ADD(hh, execs, handle, sizeof(exec->handle), exec);
	(void)added; /* without memory it is not found again */
}

/* The nodes that came after time_ns, and executables made since, are of another graph of the same
 * handle: another thread was faster to say so. Returns it, NULL: there are none. */
static struct graph *split(struct graph *graph, uint64_t time_ns)
{
	struct node **link = &graph->first;
	struct graph *younger;
	uint64_t n = 0;

	for (; *link && (*link)->kept->time_ns <= time_ns; link = &(*link)->next)
		n++;
	younger = *link ? keep_alloc(sizeof(*younger)) : NULL;
	if (!younger)
		return NULL;
	younger->handle = graph->handle;
	younger->first = *link;
	younger->end = graph->end;
	younger->n_nodes = graph->n_nodes - n;
	*link = NULL;
	graph->end = link;
	graph->n_nodes = n;
	for (struct exec *exec = execs; exec; exec = exec->hh.next) {
		if (exec->graph != graph || exec->n_nodes <= n)
			continue;
		exec->graph = younger;
		exec->n_nodes -= n;
		graph->n_execs--;
		younger->n_execs++;
	}
	return younger;
}

static void destroy(const struct keep_event *event)
{
	struct graph *graph = graph_of(keep_record(event, graph)->graph, false), *younger;
	struct arena *arena = &keep.arena;
	bool added = true;

	if (!graph || (graph->first && graph->first->kept->time_ns > event->time_ns))
		return;
	younger = split(graph, event->time_ns);
	HASH_DEL(graphs, graph);
	if (younger)
		HASH_ADD(hh, graphs, handle, sizeof(younger->handle), younger);
	(void)added; /* without memory it is not found again */
	graph->destroyed = true;
	graph->destroy = kept_new(event);
	graph->next = ended;
	ended = graph;
	release_if_over(graph);
}

/* Memory of the node is live from now on: as if it had been allocated by the launch. */
static void begin_block(const struct kept *kept, const struct keep_event *launch)
{
	const struct vt_rec_graph_alloc *node = kept_as(kept, graph_alloc);
	struct vt_rec_alloc alloc = {.time_ns = launch->time_ns,
		.api_id = node->api_id,
		.kind = VT_KIND_GRAPH,
		.device = node->device,
		.address = node->address,
		.bytes = node->bytes,
		.stack_id = node->stack_id};
	struct keep_device *device = keep_device_of(node->device);
	struct keep_block *block =
		device ? keep_block_new(VT_KIND_GRAPH, node->address, launch->time_ns) : NULL;

	if (!block)
		return;
	block->bytes = node->bytes;
	block->device = device;
	keep_block_begin(
		block, &(struct keep_event){VT_REC_alloc, kept->tid, launch->time_ns, &alloc});
}

static void run_node(const struct kept *kept, const struct keep_event *launch)
{
	bool frees = kept->kind == VT_REC_graph_free;
	uint64_t address =
		frees ? kept_as(kept, graph_free)->address : kept_as(kept, graph_alloc)->address;
	struct keep_block *block = keep_block_from(address);

	if (block && block->kind != VT_KIND_GRAPH)
		block = NULL;
	if (frees && block)
		keep_block_end(block, false, launch->time_ns);
	else if (!frees && !block)
		begin_block(kept, launch);
	else if (!frees)
		block->launched_ns = launch->time_ns;
}

static void launch(const struct keep_event *event)
{
	uint64_t handle = keep_record(event, graph)->exec, n;
	const struct node *node;
	struct exec *exec;

	keep.n_graph_launches++;
	HASH_FIND(hh, execs, &handle, sizeof(handle), exec);
	if (!exec)
		return;
	node = exec->graph->first;
	for (n = exec->n_nodes; n && node; n--, node = node->next)
		run_node(node->kept, event);
}

static void trim(struct keep_device *device, uint64_t time_ns)
{
	if (device->graph_reserved_bytes > device->graph_used_bytes)
		device->graph_reserved_bytes = device->graph_used_bytes;
	if (device->graph_memory)
		kept_as(device->graph_memory, graph_memory)->reserved_bytes =
			device->graph_reserved_bytes;
	graph_settle_device(device);
	device_changed(device, time_ns);
}

static void apply_action(const struct keep_event *event)
{
	const struct vt_rec_graph *given = keep_record(event, graph);
	struct keep_device *device = keep_device_of(given->device);

	if (given->result) {
		refused(&(struct keep_refusal_key){.stack_id = given->stack_id,
				.api_id = given->api_id,
				.result = given->result,
				.device = device ? device->ordinal : VT_DEVICE_UNKNOWN},
			0, given->time_ns);
		return;
	}
	switch (given->action) {
	case VT_GRAPH_INSTANTIATE:
		instantiate(event);
		break;
	case VT_GRAPH_LAUNCH:
		launch(event);
		break;
	case VT_GRAPH_EXEC_DESTROY:
		drop_exec(given->exec, event->time_ns);
		break;
	case VT_GRAPH_DESTROY:
		destroy(event);
		break;
	case VT_GRAPH_TRIM:
		if (device)
			trim(device, event->time_ns);
		break;
	default:
		break;
	}
}

static void apply_memory(const struct keep_event *event)
{
	const struct vt_rec_graph_memory *given = keep_record(event, graph_memory);
	struct keep_device *device = keep_device_of(given->device);

	if (!device)
		return;
	device->graph_sampled = true;
	device->graph_reserved_bytes = given->reserved_bytes;
	device->graph_used_bytes = given->used_bytes;
	kept_replace(&device->graph_memory, event);
	graph_settle_device(device);
	device_changed(device, event->time_ns);
}

void graph_keep(const struct keep_event *event)
{
	switch (event->kind) {
	case VT_REC_graph_alloc:
		apply_alloc(event);
		break;
	case VT_REC_graph_free:
		apply_free(event);
		break;
	case VT_REC_graph:
		apply_action(event);
		break;
	default:
		apply_memory(event);
		break;
	}
}

static void put_nodes(const struct graph *graph)
{
	for (const struct node *node = graph->first; node; node = node->next)
		checkpoint_put(node->kept);
	checkpoint_put(graph->destroy);
}

void graph_checkpoint(void)
{
	for (struct graph *graph = ended; graph; graph = graph->next)
		put_nodes(graph);
	for (struct graph *graph = graphs; graph; graph = graph->hh.next)
		put_nodes(graph);
	for (struct exec *exec = execs; exec; exec = exec->hh.next)
		checkpoint_put(exec->kept);
}

void graph_forget(void)
{
	graphs = ended = NULL;
	execs = NULL;
}
