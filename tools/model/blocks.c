/* The reports of allocators: pieces that come and go, and the sums that came with them. */
#include <stdlib.h>

#include "model/blocks_internal.h"
#include "model/events.h"
#include "model/memory.h"

static struct model_piece *piece_from(struct tree_node *node)
{
	return node ? container(node, struct model_piece, node) : NULL;
}

static struct model_piece **near_piece(struct model_allocator *allocator, uint64_t address)
{
	return &HASH_NEAR(allocator->near_pieces, hash_of(&address, sizeof(address)));
}

/* The live piece that begins at address, or NULL. */
static struct model_piece *piece_at(struct model_allocator *allocator, uint64_t address)
{
	struct model_piece *piece = *near_piece(allocator, address);

	return piece && piece->node.key == address
		       ? piece
		       : piece_from(tree_find(&allocator->live, address));
}

struct model_allocator *model_allocator_of(struct model *model, uint64_t allocator_id)
{
	struct model_allocator *allocator = model->last_allocator;

	/* Nobody's number but in a damaged trace; sites without an allocator are the driver's. */
	if (!allocator_id)
		allocator_id = UINT64_MAX;
	if (allocator && allocator->allocator_id == allocator_id)
		return allocator;
	HASH_FIND(hh, model->allocators, &allocator_id, sizeof(allocator_id), allocator);
	model->last_allocator = allocator;
	if (allocator)
		return allocator;
	model->last_allocator = allocator = memory_new(1, sizeof(*allocator));
	allocator->allocator_id = allocator_id;
	allocator->device = MODEL_DEVICE_UNKNOWN;
	HASH_ADD(hh, model->allocators, allocator_id, sizeof(allocator_id), allocator);
	return allocator;
}

static void note_peak(struct model_peak *peak, uint64_t bytes, uint64_t time_ns)
{
	if (bytes > peak->bytes)
		*peak = (struct model_peak){bytes, time_ns};
}

static void note_peaks(struct model_allocator *allocator, uint64_t time_ns)
{
	note_peak(&allocator->peak_live, allocator->live_bytes, time_ns);
	note_peak(
		&allocator->peak_active, allocator->live_bytes + allocator->pending_bytes, time_ns);
	note_peak(&allocator->peak_reserved, allocator->reserved_bytes, time_ns);
	note_peak(&allocator->peak_split, allocator->split_bytes, time_ns);
}

static void tell(const struct model *model, enum model_event_kind kind,
	const struct model_allocator *allocator, const struct model_piece *piece)
{
	model_tell(model, &(struct model_event){kind, .allocator = allocator, .piece = piece});
}

/* Pieces come and go more often than anything else: those that went are used again. */
static struct model_piece *piece_new(struct model *model)
{
	struct model_piece *piece = model->spare_pieces;

	if (!piece)
		return memory_new(1, sizeof(*piece));
	model->spare_pieces = piece->next_spare;
	piece->segment = NULL;
	piece->site = NULL;
	piece->n_waits = 0;
	piece->next_spare = NULL;
	return piece;
}

static void piece_release(struct model *model, struct model_piece *piece)
{
	if (piece->segment)
		segment_use(piece->segment, piece->bytes, false);
	piece->next_spare = model->spare_pieces;
	model->spare_pieces = piece;
}

void piece_settle(struct model *model, struct model_allocator *allocator, struct model_piece *piece)
{
	model_tell(model, &(struct model_event){MODEL_PIECE_END, .was_pending = true,
				  .allocator = allocator, .piece = piece});
	waits_drop(model, piece);
	allocator->pending_bytes -= piece->bytes;
	tree_remove(&allocator->pending, &piece->node);
	piece_release(model, piece);
	note_peak(&allocator->peak_split, allocator->split_bytes, model->last_ns);
}

/* A piece of a holding comes or goes; only what is tracked counts on the device. */
static void hold(struct model_holding *holding, uint64_t bytes)
{
	holding->live_bytes += bytes;
	if (model_kind_tracked(holding->kind))
		holding->device->block_bytes += bytes;
}

/* Takes a live piece off the books. Whether it still holds its memory is the caller's business. */
static void piece_unbook(
	struct model *model, struct model_allocator *allocator, struct model_piece *piece)
{
	struct model_piece **near = near_piece(allocator, piece->node.key);

	if (*near == piece)
		*near = NULL;
	tree_remove(&allocator->live, &piece->node);
	allocator->live_bytes -= piece->bytes;
	if (piece->segment) {
		hold(&allocator->holdings[piece->segment->holding], -piece->bytes);
		site_remove(model, piece->site, MODEL_FREED, piece->bytes, piece->time_ns,
			piece->node.key);
	} else {
		allocator->outside_bytes -= piece->bytes;
	}
}

static void piece_book(struct model *model, struct model_allocator *allocator,
	struct model_piece *piece, const struct tree_gap *gap, const struct vt_record *record)
{
	const struct vt_rec_block_alloc *given = &record->block_alloc;
	const struct place_in_trace place = {given->stack_id, given->time_ns, record->tid};
	struct model_holding *holding;

	tree_insert_in(&allocator->live, gap, &piece->node, given->address);
	*near_piece(allocator, given->address) = piece;
	piece->bytes = given->bytes;
	piece->time_ns = given->time_ns;
	piece->tid = record->tid;
	piece->segment = segment_of(model, allocator, given->address, given->bytes, given->time_ns);
	allocator->live_bytes += piece->bytes;
	allocator->n_allocs++;
	allocator->alloc_bytes += piece->bytes;
	if (!piece->segment) {
		allocator->outside_bytes += piece->bytes;
		return;
	}
	segment_use(piece->segment, piece->bytes, true);
	holding = &allocator->holdings[piece->segment->holding];
	hold(holding, piece->bytes);
	ledger_note_peak(holding->device, given->time_ns);
	piece->site = model_block_site_of(
		model, given->stack_id, holding->device, holding->kind, allocator->allocator_id);
	site_add(model, piece->site, piece->bytes, &place);
}

/* The first piece around the gap at address that begins in the range, or reaches into it; or NULL.
 */
static struct model_piece *piece_in(const struct tree_gap *gap, uint64_t address, uint64_t bytes)
{
	struct model_piece *piece = piece_from(gap->floor);

	if (piece && address - piece->node.key < (piece->bytes ? piece->bytes : 1))
		return piece;
	piece = piece_from(gap->ceiling);
	return piece && piece->node.key - address < bytes ? piece : NULL;
}

/* What the model still holds where a piece is handed out has gone unseen. Returns the gap in the
 * live ones. */
static struct tree_gap make_room(
	struct model *model, struct model_allocator *allocator, uint64_t address, uint64_t bytes)
{
	struct tree_gap gap = tree_gap_find(&allocator->live, address), pending;
	struct model_piece *piece;

	while ((piece = piece_in(&gap, address, bytes))) {
		tell(model, MODEL_PIECE_END, allocator, piece);
		piece_unbook(model, allocator, piece);
		piece_release(model, piece);
		allocator->n_missed_frees++;
		gap = tree_gap_find(&allocator->live, address);
	}
	pending = tree_gap_find(&allocator->pending, address);
	while ((piece = piece_in(&pending, address, bytes))) {
		piece_settle(model, allocator, piece);
		pending = tree_gap_find(&allocator->pending, address);
	}
	return gap;
}

void pieces_end_in(
	struct model *model, struct model_allocator *allocator, uint64_t address, uint64_t bytes)
{
	struct model_piece *piece;

	while ((piece = piece_from(tree_ceiling(&allocator->live, address))) &&
		piece->node.key - address < bytes) {
		tell(model, MODEL_PIECE_END, allocator, piece);
		piece_unbook(model, allocator, piece);
		piece_release(model, piece);
		allocator->n_lost_pieces++;
	}
	while ((piece = piece_from(tree_ceiling(&allocator->pending, address))) &&
		piece->node.key - address < bytes)
		piece_settle(model, allocator, piece);
}

/* What a report told beside its block: jumps that nearly always are none, or whole sums. */
struct told {
	uint64_t bytes; /* the block's; what went wraps around */
	int64_t allocated_jump;
	int64_t reserved_jump;
};

static void check(const struct model *model, struct model_allocator *allocator,
	const struct told *told, uint64_t time_ns)
{
	struct model_check *check = &allocator->check;
	bool allocated_differs, reserved_differs;

	if (check->restated) {
		check->allocated_bytes = check->restated_allocated_bytes;
		check->reserved_bytes = check->restated_reserved_bytes;
		check->restated = false;
		check->known = true;
	} else {
		check->allocated_bytes += told->bytes + (uint64_t)told->allocated_jump;
		check->reserved_bytes += (uint64_t)told->reserved_jump;
	}
	/* What a checkpoint repeats adds up only when all of it is there. */
	if (!check->known || model_is_past(model, time_ns))
		return;
	allocated_differs = check->allocated_bytes != allocator->live_bytes;
	reserved_differs = check->reserved_bytes != allocator->reserved_bytes;
	if ((allocated_differs || reserved_differs) && !check->n_allocated_differ &&
		!check->n_reserved_differ)
		check->first_ns = time_ns;
	check->n_reports++;
	check->n_allocated_differ += allocated_differs;
	check->n_reserved_differ += reserved_differs;
}

static void note_time(struct model_allocator *allocator, uint64_t time_ns)
{
	if (!allocator->n_allocs && !allocator->n_unknown_frees && !allocator->first_ns)
		allocator->first_ns = time_ns;
	allocator->last_ns = time_ns;
}

static void apply_alloc(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_block_alloc *given = &record->block_alloc;
	struct model_allocator *allocator = model_allocator_of(model, given->allocator_id);
	const struct told told = {given->bytes, given->allocated_jump, given->reserved_jump};
	struct tree_gap gap = make_room(model, allocator, given->address, given->bytes);
	struct model_piece *piece = piece_new(model);

	note_time(allocator, given->time_ns);
	piece_book(model, allocator, piece, &gap, record);
	allocator->newest = piece;
	tell(model, MODEL_PIECE_BEGIN, allocator, piece);
	note_peaks(allocator, given->time_ns);
	check(model, allocator, &told, given->time_ns);
}

static void apply_free(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_block_free *given = &record->block_free;
	struct model_allocator *allocator = model_allocator_of(model, given->allocator_id);
	struct model_piece *piece = piece_at(allocator, given->address);
	const struct told told = {-given->bytes, given->allocated_jump, given->reserved_jump};

	note_time(allocator, given->time_ns);
	if (piece) {
		piece_unbook(model, allocator, piece);
		allocator->n_frees++;
	} else {
		allocator->n_unknown_frees++;
	}
	if (waits_attach(model, allocator, piece, record->tid)) {
		allocator->pending_bytes += piece->bytes;
		tree_insert(&allocator->pending, &piece->node, given->address);
		tell(model, MODEL_PIECE_PENDING, allocator, piece);
	} else if (piece) {
		tell(model, MODEL_PIECE_END, allocator, piece);
		piece_release(model, piece);
	}
	note_peaks(allocator, given->time_ns);
	check(model, allocator, &told, given->time_ns);
}

static void apply_totals(struct model *model, const struct vt_rec_block_totals *given)
{
	struct model_check *check = &model_allocator_of(model, given->allocator_id)->check;

	check->restated = true;
	check->restated_allocated_bytes = given->allocated_bytes;
	check->restated_reserved_bytes = given->reserved_bytes;
}

static void apply_failure(struct model *model, const struct vt_rec_block_failure *given)
{
	struct model_allocator *allocator = model_allocator_of(model, given->allocator_id);
	struct model_failure_key key = {
		.stack_id = given->stack_id,
		.api_id = given->allocator_id,
		.result = VT_RESULT_OUT_OF_MEMORY,
		.device = allocator->device,
		.refusal = MODEL_REFUSED_BLOCK,
	};

	allocator->n_failures++;
	model_note_failure(model, &key, given->bytes, given->time_ns);
}

/* The segments under the block are of this stream; what is known of one stays. */
static void apply_stream(struct model *model, const struct vt_rec_block_stream *given)
{
	struct model_allocator *allocator = model_allocator_of(model, given->allocator_id);
	struct model_piece *piece = piece_at(allocator, given->address);
	struct model_segment *segment = piece ? piece->segment : NULL;

	for (; segment &&
		(segment == piece->segment || segment->node.key - given->address < piece->bytes);
		segment = segment_from(tree_next(&allocator->segments, &segment->node))) {
		if (segment->stream_known)
			continue;
		segment->stream_known = true;
		segment->stream = given->stream;
		segment->captured = given->flags & VT_STREAM_CAPTURED;
	}
}

static void apply_allocator(struct model *model, const struct vt_rec_allocator *given)
{
	struct model_allocator *allocator = model_allocator_of(model, given->allocator_id);

	allocator->layer = (uint32_t)given->layer;
	allocator->device = given->device < 0 ? MODEL_DEVICE_UNKNOWN
					      : model_device_of(model, given->device)->ordinal;
	allocator->name = given->name;
	allocator->version = given->version;
	allocator->path = given->path;
}

void blocks_apply(struct model *model, const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_allocator:
		apply_allocator(model, &record->allocator);
		break;
	case VT_REC_block_alloc:
		apply_alloc(model, record);
		break;
	case VT_REC_block_free:
		apply_free(model, record);
		break;
	case VT_REC_block_totals:
		apply_totals(model, &record->block_totals);
		break;
	case VT_REC_block_failure:
		apply_failure(model, &record->block_failure);
		break;
	case VT_REC_block_stream:
		apply_stream(model, &record->block_stream);
		break;
	case VT_REC_stream_event:
		waits_apply(model, record);
		break;
	default:
		break;
	}
}

void blocks_release(struct model *model)
{
	struct model_allocator *allocator, *next;

	waits_release(model);
	HASH_ITER(hh, model->allocators, allocator, next)
	{
		while (allocator->segments.root)
			segment_end(model, segment_from(allocator->segments.root));
		while (allocator->live.root) {
			struct model_piece *piece = piece_from(allocator->live.root);

			tree_remove(&allocator->live, &piece->node);
			free(piece);
		}
		while (allocator->pending.root) {
			struct model_piece *piece = piece_from(allocator->pending.root);

			tree_remove(&allocator->pending, &piece->node);
			free(piece);
		}
		HASH_DEL(model->allocators, allocator);
		free(allocator->holdings);
		free(allocator);
	}
	while (model->spare_pieces)
		free(piece_new(model));
}

const struct model_allocator *model_allocator_find(const struct model *model, uint64_t allocator_id)
{
	struct model_allocator *allocator = model->last_allocator;

	if (!allocator || allocator->allocator_id != allocator_id)
		HASH_FIND(hh, model->allocators, &allocator_id, sizeof(allocator_id), allocator);
	return allocator;
}

const struct model_piece *model_piece_first(const struct tree *pieces)
{
	return model_piece_from(pieces, 0);
}

const struct model_piece *model_piece_from(const struct tree *pieces, uint64_t address)
{
	return piece_from(tree_ceiling(pieces, address));
}

const struct model_piece *model_piece_next(
	const struct tree *pieces, const struct model_piece *piece)
{
	return piece_from(tree_next(pieces, &piece->node));
}
