#include "analysis/export_snapshot.h"

#include <stdlib.h>

#include "analysis/export_snapshot_parts.h"
#include "analysis/order.h"
#include "model/events.h"
#include "model/memory.h"

/* Readers in JavaScript add addresses exactly up to here; no device has such. */
#define MAX_ADDRESS ((uint64_t)1 << 53)

struct snapshot {
	const struct snapshot_request *request;
	struct tree ranges; /* struct range, by address */
	struct tree pieces; /* struct piece, by address */
	size_t n_episodes;  /* told */
};

static struct range *range_from(struct tree_node *node)
{
	return (struct range *)(void *)node;
}

static struct piece *piece_from(struct tree_node *node)
{
	return (struct piece *)(void *)node;
}

static void tell(
	struct snapshot *snapshot, enum snapshot_action action, const struct snapshot_event *about)
{
	struct snapshot_event event = *about;

	event.action = action;
	snapshot->request->event(snapshot->request->user, &event);
}

/* Whether anything of the tree begins in the range, or reaches into it. Both structs begin alike.
 */
static bool is_taken(const struct tree *tree, uint64_t address, uint64_t bytes)
{
	const struct piece *before = piece_from(tree_floor(tree, address));
	const struct tree_node *after = tree_ceiling(tree, address);

	return (before && address - before->node.key < before->bytes) ||
	       (after && after->key - address < bytes);
}

static struct snapshot_event event_of(const struct range *range, const struct vt_record *record)
{
	return (struct snapshot_event){
		.address = range->node.key,
		.bytes = range->bytes,
		.stream = range->stream,
		.time_ns = record->time_ns,
		.direct = range->direct,
		.kind = range->kind,
	};
}

static struct piece *piece_begin(
	struct snapshot *snapshot, uint64_t address, uint64_t bytes, uint64_t stack_id)
{
	struct piece *piece = memory_new(1, sizeof(*piece));

	piece->bytes = bytes;
	piece->stack_id = stack_id;
	tree_insert(&snapshot->pieces, &piece->node, address);
	return piece;
}

static void piece_end(struct snapshot *snapshot, struct piece *piece, const struct range *range,
	const struct vt_record *record, uint64_t stack_id)
{
	struct snapshot_event event = event_of(range, record);

	event.address = piece->node.key;
	event.bytes = piece->bytes;
	event.stack_id = stack_id;
	if (!piece->pending)
		tell(snapshot, SNAPSHOT_FREE_REQUESTED, &event);
	tell(snapshot, SNAPSHOT_FREE_COMPLETED, &event);
	tree_remove(&snapshot->pieces, &piece->node);
	free(piece);
}

/* The stream and call of a record that may be the one that obtained the memory. */
static void note_call(
	struct range *range, struct snapshot_event *event, const struct vt_record *record)
{
	if (record->kind == VT_REC_map) {
		event->api_id = record->map.api_id;
	} else if (record->kind == VT_REC_alloc) {
		event->api_id =
			record->alloc.caller_api ? record->alloc.caller_api : record->alloc.api_id;
		if (range->kind == VT_KIND_POOL)
			range->stream = event->stream = (int64_t)record->alloc.stream;
	}
}

static void range_begin(
	struct snapshot *snapshot, const struct range *given, const struct vt_record *record)
{
	uint64_t address = given->node.key;
	const struct fate *fate = fate_find(snapshot->request->fates, given->number);
	struct snapshot_event event;
	struct range *range;

	if (!given->bytes || address >= MAX_ADDRESS || given->bytes >= MAX_ADDRESS - address ||
		is_taken(&snapshot->ranges, address, given->bytes))
		return;
	range = memory_new(1, sizeof(*range));
	*range = *given;
	range->direct = !fate;
	range->mapped = given->mapped && fate;
	range->stream = fate ? fate->stream : 0;
	range->captured = fate && fate->captured;
	event = event_of(range, record);
	event.stack_id = range->stack_id;
	note_call(range, &event, record);
	tree_insert(&snapshot->ranges, &range->node, address);
	tell(snapshot, range->mapped ? SNAPSHOT_SEGMENT_MAP : SNAPSHOT_SEGMENT_ALLOC, &event);
	if (!range->direct)
		return;
	piece_begin(snapshot, address, range->bytes, range->stack_id);
	tell(snapshot, SNAPSHOT_ALLOC, &event);
}

/* Who freed it, where that was recorded. */
static uint64_t freed_by(const struct vt_record *record)
{
	if (record->kind == VT_REC_free)
		return record->free.stack_id;
	return record->kind == VT_REC_unmap ? record->unmap.stack_id : 0;
}

static void range_end(struct snapshot *snapshot, uint64_t address, uint64_t number,
	const struct vt_record *record)
{
	struct range *range = range_from(tree_find(&snapshot->ranges, address));
	struct snapshot_event event;
	struct piece *piece;

	if (!range || range->number != number)
		return;
	while ((piece = piece_from(tree_ceiling(&snapshot->pieces, address))) &&
		piece->node.key - address < range->bytes)
		piece_end(snapshot, piece, range, record, freed_by(record));
	event = event_of(range, record);
	event.stack_id = freed_by(record);
	tell(snapshot, range->mapped ? SNAPSHOT_SEGMENT_UNMAP : SNAPSHOT_SEGMENT_FREE, &event);
	tree_remove(&snapshot->ranges, &range->node);
	free(range);
}

/* The range in which the piece begins, if ranges without a gap hold all of it. */
static struct range *range_around(struct snapshot *snapshot, uint64_t address, uint64_t bytes)
{
	struct range *first = range_from(tree_floor(&snapshot->ranges, address)), *range = first;

	if (!range || address - range->node.key >= range->bytes)
		return NULL;
	while (range->node.key + range->bytes - address < bytes) {
		struct range *next = range_from(tree_next(&snapshot->ranges, &range->node));

		if (!next || !range->mapped || !next->mapped ||
			next->node.key != range->node.key + range->bytes)
			return NULL;
		range = next;
	}
	return first;
}

static void note_piece(
	struct snapshot *snapshot, const struct model_event *change, const struct vt_record *record)
{
	uint64_t address = change->piece->node.key, bytes = change->piece->bytes;
	struct range *range = range_around(snapshot, address, bytes);
	struct piece *piece = piece_from(tree_find(&snapshot->pieces, address));
	struct snapshot_event event;

	if (!range || range->direct)
		return;
	event = event_of(range, record);
	event.address = address;
	event.bytes = bytes;
	if (change->kind == MODEL_PIECE_BEGIN) {
		if (!bytes || is_taken(&snapshot->pieces, address, bytes))
			return;
		event.stack_id = record->block_alloc.stack_id;
		piece_begin(snapshot, address, bytes, event.stack_id);
		tell(snapshot, SNAPSHOT_ALLOC, &event);
	} else if (piece && piece->bytes == bytes && change->kind == MODEL_PIECE_END) {
		piece_end(snapshot, piece, range, record, 0);
	} else if (piece && piece->bytes == bytes && !piece->pending) {
		piece->pending = true;
		tell(snapshot, SNAPSHOT_FREE_REQUESTED, &event);
	}
}

static bool is_own(const struct snapshot *snapshot, const struct model_block *block)
{
	return block->device->ordinal == snapshot->request->device;
}

static void note_block(
	struct snapshot *snapshot, const struct model_event *change, const struct vt_record *record)
{
	const struct model_block *block = change->block;

	if (!is_own(snapshot, block) ||
		(block->kind != VT_KIND_LINEAR && block->kind != VT_KIND_POOL &&
			block->kind != VT_KIND_GRAPH))
		return;
	if (change->kind == MODEL_BLOCK_BEGIN)
		range_begin(snapshot,
			&(struct range){.node.key = block->node.key,
				.bytes = block->bytes,
				.number = block->number,
				.kind = block->kind,
				.stack_id = block->site->key.stack_id},
			record);
	else
		range_end(snapshot, block->node.key, block->number, record);
}

static void note_mapping(struct snapshot *snapshot, const struct model *model,
	const struct model_event *change, const struct vt_record *record)
{
	const struct model_mapping *mapping = change->mapping;
	const struct model_block *block = mapping->physical ? &mapping->physical->block : NULL;
	const struct tree_node *reservation = tree_floor(&model->reservations, mapping->node.key);

	if (!block || block->kind != VT_KIND_VMM || !is_own(snapshot, block))
		return;
	if (change->kind == MODEL_MAPPING_BEGIN)
		range_begin(snapshot,
			&(struct range){.node.key = mapping->node.key,
				.bytes = mapping->bytes,
				.number = mapping->number,
				.kind = VT_KIND_VMM,
				.mapped = true,
				.reservation = reservation ? reservation->key : 0,
				.stack_id = block->site->key.stack_id},
			record);
	else
		range_end(snapshot, mapping->node.key, mapping->number, record);
}

static void listen(void *user, const struct model *model, const struct vt_record *record,
	const struct model_event *change)
{
	struct snapshot *snapshot = user;

	if (record->time_ns > snapshot->request->until_ns)
		return;
	switch (change->kind) {
	case MODEL_BLOCK_BEGIN:
	case MODEL_BLOCK_END:
		note_block(snapshot, change, record);
		break;
	case MODEL_MAPPING_BEGIN:
	case MODEL_MAPPING_END:
		note_mapping(snapshot, model, change, record);
		break;
	case MODEL_PIECE_BEGIN:
	case MODEL_PIECE_PENDING:
	case MODEL_PIECE_END:
		note_piece(snapshot, change, record);
		break;
	default:
		break;
	}
}

static void tell_oom(struct snapshot *snapshot, const struct episode *episode)
{
	if (episode->device != snapshot->request->device || episode->want != EPISODE_MEMORY ||
		episode->recovered)
		return;
	tell(snapshot, SNAPSHOT_OOM,
		&(struct snapshot_event){
			.bytes = episode->reported ? episode->report_bytes : episode->bytes,
			.time_ns = episode->moment.time_ns,
			.stack_id =
				episode->reported ? episode->report_stack_id : episode->stack_id,
			.free_bytes = episode->sampled ? episode->free_bytes : 0,
		});
}

/* Episodes are in the order of time. */
static void observe(void *user, const struct model *model, const struct vt_record *record)
{
	struct snapshot *snapshot = user;
	const struct episodes *episodes = snapshot->request->episodes;
	uint64_t now = record->time_ns < snapshot->request->until_ns ? record->time_ns
								     : snapshot->request->until_ns;

	(void)model;
	if (record->kind < VT_REC_alloc)
		return;
	while (snapshot->n_episodes < episodes->n_items &&
		episodes->items[snapshot->n_episodes].moment.time_ns <= now)
		tell_oom(snapshot, &episodes->items[snapshot->n_episodes++]);
}

static void release(struct tree *tree)
{
	while (tree->root) {
		struct tree_node *node = tree->root;

		tree_remove(tree, node);
		free(node);
	}
}

int snapshot_make(struct snapshot_layout *layout, struct replay *replay,
	const struct snapshot_request *request)
{
	struct snapshot snapshot = {.request = request};
	int error = replay_follow(replay,
		&(struct replay_hooks){.observer = observe, .listener = listen, .user = &snapshot});

	*layout = (struct snapshot_layout){0};
	if (!error)
		snapshot_lay_out(layout, &snapshot.ranges, &snapshot.pieces);
	release(&snapshot.ranges);
	release(&snapshot.pieces);
	return error;
}
