/*
 * Allocators that hand out parts of what they have from the driver, see tools/model/blocks.h. What
 * waits for a stream counts as free here.
 *
 * A segment is known by the first block that was handed out in it. When that block is gone, the
 * checkpoint repeats its coming and its going, and takes it off what its site did besides.
 */
#include "record/keep/internal.h"

struct holding {
	struct holding *next;
	struct keep_device *device;
	uint32_t kind;
	struct keep_amount idle; /* segments, and their bytes without live pieces */
};

struct piece {
	struct tree_node node;
	struct kept *kept; /* block_alloc */
	uint64_t bytes;
	struct keep_site *site; /* NULL: in no segment of its own */
	struct holding *holding;
	struct keep_founder *founder; /* it is that of some segment; NULL: it is not */
};

struct keep_allocator {
	uint64_t allocator_id;
	int64_t device;
	struct kept *described;
	struct tree live;
	struct holding *holdings;
	uint64_t live_bytes, reserved_bytes;
	uint64_t peak_live_bytes, peak_live_ns, peak_reserved_bytes, peak_reserved_ns;
	uint64_t n_outside, outside_bytes; /* gone, without a site */
	bool told, restated;
	uint64_t told_allocated, told_reserved;
	uint64_t restated_allocated, restated_reserved;
	struct keep_founder *founders;
	UT_hash_handle hh;
};

static struct keep_allocator *allocators;

static struct keep_allocator *allocator_of(uint64_t allocator_id)
{
	struct arena *arena = &keep.arena;
	struct keep_allocator *allocator;
	bool added = true;

	HASH_FIND(hh, allocators, &allocator_id, sizeof(allocator_id), allocator);
	if (allocator)
		return allocator;
	allocator = keep_alloc(sizeof(*allocator));
	if (!allocator)
		return NULL;
	allocator->allocator_id = allocator_id;
	allocator->device = VT_DEVICE_UNKNOWN;
	HASH_ADD(hh, allocators, allocator_id, sizeof(allocator_id), allocator);
	return added ? allocator : NULL;
}

static struct holding *holding_of(
	struct keep_allocator *allocator, struct keep_device *device, uint32_t kind)
{
	struct holding *holding = allocator->holdings;

	while (holding && (holding->device != device || holding->kind != kind))
		holding = holding->next;
	if (holding)
		return holding;
	holding = keep_alloc(sizeof(*holding));
	if (!holding)
		return NULL;
	holding->device = device;
	holding->kind = kind;
	holding->idle.epoch = device->epoch;
	holding->next = allocator->holdings;
	allocator->holdings = holding;
	return holding;
}

static void founder_release(struct keep_allocator *allocator, struct keep_founder *founder)
{
	struct keep_founder **link = &allocator->founders;

	if (founder->n_segments || founder->is_live)
		return;
	while (*link != founder)
		link = &(*link)->next;
	*link = founder->next;
	kept_free(founder->alloc);
	kept_free(founder->stream);
	keep_free(founder, sizeof(*founder));
}

/* Memory of the driver is the allocator's from now on. */
static void segment_begin(struct keep_segment *segment, struct keep_allocator *allocator,
	struct holding *holding, uint64_t bytes, struct keep_site *site)
{
	segment->allocator = allocator;
	segment->holding = holding;
	segment->site = site;
	segment->bytes = bytes;
	amount_change(&holding->idle, holding->device, bytes, 1);
	if (site)
		amount_change(&site->live, holding->device, -bytes, -UINT64_C(1));
	allocator->reserved_bytes += bytes;
}

/* The segments under a piece, of which those that are none yet become some. */
struct claim {
	struct keep_segment *first; /* in which it begins; NULL: none of this allocator's */
	struct keep_segment *fresh[64];
	size_t n_fresh;
};

static void claim_one(struct claim *claim, struct keep_allocator *allocator,
	struct keep_segment *segment, struct keep_device *device, uint32_t kind, uint64_t bytes,
	struct keep_site *site)
{
	struct holding *holding;

	if (!segment->allocator && claim->n_fresh < sizeof(claim->fresh) / sizeof(*claim->fresh)) {
		holding = holding_of(allocator, device, kind);
		if (!holding)
			return;
		segment_begin(segment, allocator, holding, bytes, site);
		claim->fresh[claim->n_fresh++] = segment;
	}
	if (!claim->first && segment->allocator == allocator)
		claim->first = segment;
}

static void claim_mappings(
	struct claim *claim, struct keep_allocator *allocator, uint64_t address, uint64_t bytes)
{
	struct keep_mapping *mapping = keep_mapping_of(address);

	while (mapping && (!claim->first || mapping->node.key - address < bytes)) {
		struct keep_physical *physical = mapping->physical;
		struct tree_node *next = tree_next(&keep.mappings, &mapping->node);

		if (physical)
			claim_one(claim, allocator, &mapping->segment,
				keep_physical_device(physical), keep_physical_kind(physical),
				mapping->bytes, keep_physical_site(physical));
		if (!claim->first)
			return;
		mapping = next ? keep_container(next, struct keep_mapping, node) : NULL;
	}
}

static void claim_segments(
	struct claim *claim, struct keep_allocator *allocator, uint64_t address, uint64_t bytes)
{
	struct keep_block *block = keep_block_at(address);

	if (block)
		claim_one(claim, allocator, &block->segment, block->device, block->kind,
			block->bytes, block->site);
	else
		claim_mappings(claim, allocator, address, bytes);
}

static void found(struct claim *claim, struct keep_allocator *allocator, struct piece *piece,
	const struct keep_event *event)
{
	struct keep_founder *founder = claim->n_fresh ? keep_alloc(sizeof(*founder)) : NULL;

	if (!founder)
		return;
	founder->alloc = kept_new(event);
	founder->site = piece->site;
	founder->is_live = true;
	founder->n_segments = claim->n_fresh;
	founder->next = allocator->founders;
	allocator->founders = founder;
	piece->founder = founder;
	for (size_t i = 0; i < claim->n_fresh; i++)
		claim->fresh[i]->founder = founder;
}

static void hold(struct holding *holding, uint64_t bytes)
{
	amount_change(&holding->idle, holding->device, -bytes, 0);
	if (keep_is_tracked(holding->kind))
		holding->device->block_bytes += bytes;
}

static void piece_end(struct keep_allocator *allocator, struct piece *piece, uint64_t time_ns)
{
	tree_remove(&allocator->live, &piece->node);
	allocator->live_bytes -= piece->bytes;
	if (piece->holding) {
		hold(piece->holding, -piece->bytes);
		device_changed(piece->holding->device, time_ns);
	}
	if (piece->site) {
		site_end(piece->site, piece->bytes, false);
	} else {
		allocator->n_outside++;
		allocator->outside_bytes += piece->bytes;
	}
	if (piece->founder) {
		piece->founder->is_live = false;
		piece->founder->ended_ns = time_ns;
		founder_release(allocator, piece->founder);
	}
	kept_free(piece->kept);
	keep_free(piece, sizeof(*piece));
}

static struct piece *piece_from(struct tree_node *node)
{
	return node ? keep_container(node, struct piece, node) : NULL;
}

static struct piece *piece_in(const struct tree *pieces, uint64_t address, uint64_t bytes)
{
	struct piece *piece = piece_from(tree_floor(pieces, address));

	if (piece && address - piece->node.key < (piece->bytes ? piece->bytes : 1))
		return piece;
	piece = piece_from(tree_ceiling(pieces, address));
	return piece && piece->node.key - address < bytes ? piece : NULL;
}

void block_segment_end(struct keep_segment *segment, uint64_t address, uint64_t time_ns)
{
	struct keep_allocator *allocator = segment->allocator;
	uint64_t bytes = segment->bytes ? segment->bytes : 1;
	struct holding *holding = segment->holding;
	struct piece *piece;

	if (!allocator)
		return;
	while ((piece = piece_from(tree_ceiling(&allocator->live, address))) &&
		piece->node.key - address < bytes)
		piece_end(allocator, piece, time_ns);
	amount_change(&holding->idle, holding->device, -segment->bytes, -UINT64_C(1));
	if (segment->site)
		amount_change(&segment->site->live, holding->device, segment->bytes, 1);
	allocator->reserved_bytes -= segment->bytes;
	if (segment->founder) {
		segment->founder->n_segments--;
		founder_release(allocator, segment->founder);
	}
	*segment = (struct keep_segment){0};
}

static void take_told(struct keep_allocator *allocator, uint64_t bytes, int64_t allocated_jump,
	int64_t reserved_jump)
{
	if (allocator->restated) {
		allocator->told_allocated = allocator->restated_allocated;
		allocator->told_reserved = allocator->restated_reserved;
		allocator->restated = false;
		allocator->told = true;
	} else {
		allocator->told_allocated += bytes + (uint64_t)allocated_jump;
		allocator->told_reserved += (uint64_t)reserved_jump;
	}
}

static void note_peaks(struct keep_allocator *allocator, uint64_t time_ns)
{
	if (allocator->live_bytes > allocator->peak_live_bytes) {
		allocator->peak_live_bytes = allocator->live_bytes;
		allocator->peak_live_ns = time_ns;
	}
	if (allocator->reserved_bytes > allocator->peak_reserved_bytes) {
		allocator->peak_reserved_bytes = allocator->reserved_bytes;
		allocator->peak_reserved_ns = time_ns;
	}
}

static void apply_alloc(const struct keep_event *event)
{
	const struct vt_rec_block_alloc *given = keep_record(event, block_alloc);
	struct keep_allocator *allocator = allocator_of(given->allocator_id);
	struct claim claim = {0};
	struct piece *piece;

	if (!allocator)
		return;
	take_told(allocator, given->bytes, given->allocated_jump, given->reserved_jump);
	while ((piece = piece_in(&allocator->live, given->address, given->bytes)))
		piece_end(allocator, piece, event->time_ns);
	piece = keep_alloc(sizeof(*piece));
	if (!piece)
		return;
	piece->kept = kept_new(event);
	piece->bytes = given->bytes;
	tree_insert(&allocator->live, &piece->node, given->address);
	allocator->live_bytes += given->bytes;
	claim_segments(&claim, allocator, given->address, given->bytes);
	if (claim.first) {
		piece->holding = claim.first->holding;
		piece->site = keep_site_of(given->stack_id, piece->holding->device,
			piece->holding->kind, allocator->allocator_id);
		if (piece->site)
			site_begin(piece->site, piece->bytes, event->time_ns);
		found(&claim, allocator, piece, event);
		hold(piece->holding, piece->bytes);
		device_changed(piece->holding->device, event->time_ns);
	}
	note_peaks(allocator, event->time_ns);
}

static void apply_free(const struct keep_event *event)
{
	const struct vt_rec_block_free *given = keep_record(event, block_free);
	struct keep_allocator *allocator = allocator_of(given->allocator_id);
	struct piece *piece;

	if (!allocator)
		return;
	take_told(allocator, -given->bytes, given->allocated_jump, given->reserved_jump);
	piece = piece_from(tree_find(&allocator->live, given->address));
	if (piece)
		piece_end(allocator, piece, event->time_ns);
}

static void apply_totals(const struct vt_rec_block_totals *given)
{
	struct keep_allocator *allocator = allocator_of(given->allocator_id);

	if (!allocator)
		return;
	allocator->restated = true;
	allocator->restated_allocated = given->allocated_bytes;
	allocator->restated_reserved = given->reserved_bytes;
}

struct keep_refusal_key block_refusal_key(const struct vt_rec_block_failure *given)
{
	const struct keep_allocator *allocator = allocator_of(given->allocator_id);

	return (struct keep_refusal_key){.stack_id = given->stack_id,
		.api_id = given->allocator_id,
		.result = VT_RESULT_OUT_OF_MEMORY,
		.device = allocator ? allocator->device : VT_DEVICE_UNKNOWN,
		.refused = VT_REFUSED_BLOCK};
}

static void apply_failure(const struct keep_event *event)
{
	const struct vt_rec_block_failure *given = keep_record(event, block_failure);
	struct keep_refusal_key key = block_refusal_key(given);

	keep_refused(&key, given->bytes, given->time_ns);
	ledger_keep(event);
}

/* It comes right behind the block that found the segment. */
static void apply_stream(const struct keep_event *event)
{
	const struct vt_rec_block_stream *given = keep_record(event, block_stream);
	struct keep_allocator *allocator = allocator_of(given->allocator_id);
	struct piece *piece =
		allocator ? piece_from(tree_find(&allocator->live, given->address)) : NULL;

	if (piece && piece->founder && !piece->founder->stream)
		piece->founder->stream = kept_new(event);
}

static void apply_allocator(const struct keep_event *event)
{
	const struct vt_rec_allocator *given = keep_record(event, allocator);
	struct keep_allocator *allocator = allocator_of(given->allocator_id);
	const struct keep_device *device = given->device < 0 ? NULL : keep_device_of(given->device);

	if (!allocator)
		return;
	if (device)
		allocator->device = device->ordinal;
	kept_replace(&allocator->described, event);
}

void block_keep(const struct keep_event *event)
{
	switch (event->kind) {
	case VT_REC_allocator:
		apply_allocator(event);
		break;
	case VT_REC_block_alloc:
		apply_alloc(event);
		break;
	case VT_REC_block_free:
		apply_free(event);
		break;
	case VT_REC_block_totals:
		apply_totals(keep_record(event, block_totals));
		break;
	case VT_REC_block_failure:
		apply_failure(event);
		break;
	case VT_REC_block_stream:
		apply_stream(event);
		break;
	default:
		break;
	}
}

static void put_figure(const struct keep_allocator *allocator, enum vt_figure what, uint64_t value,
	uint64_t when_ns)
{
	checkpoint_figure(&(struct vt_rec_figure){.what = what,
		.device = allocator->device,
		.id = allocator->allocator_id,
		.value = (int64_t)value,
		.when_ns = when_ns});
}

static void put_allocator(const struct keep_allocator *allocator)
{
	put_figure(allocator, VT_FIGURE_BLOCKS_PEAK, allocator->peak_live_bytes,
		allocator->peak_live_ns);
	put_figure(allocator, VT_FIGURE_RESERVED_PEAK, allocator->peak_reserved_bytes,
		allocator->peak_reserved_ns);
	if (allocator->told) {
		put_figure(allocator, VT_FIGURE_TOLD_ALLOCATED,
			allocator->told_allocated - allocator->live_bytes, 0);
		put_figure(allocator, VT_FIGURE_TOLD_RESERVED, allocator->told_reserved, 0);
	}
	if (allocator->n_outside)
		checkpoint_past(&(struct vt_rec_past){.what = VT_PAST_ALLOC,
			.device = VT_DEVICE_UNKNOWN,
			.id = allocator->allocator_id,
			.count = allocator->n_outside,
			.bytes = allocator->outside_bytes});
	for (const struct holding *holding = allocator->holdings; holding; holding = holding->next)
		checkpoint_past(&(struct vt_rec_past){.what = VT_PAST_IDLE,
			.device = holding->device->ordinal,
			.kind = holding->kind,
			.id = allocator->allocator_id,
			.peak_count = amount_peak_count(&holding->idle, holding->device),
			.peak_bytes = amount_peak_bytes(&holding->idle, holding->device)});
}

static void find_segment(const struct keep_segment *segment, uint64_t address)
{
	struct keep_founder *founder = segment->founder;

	if (!founder)
		return;
	if (!founder->to)
		founder->from = address;
	founder->to = address + segment->bytes;
}

/* Where the segments are that are left of each founder's. */
static void find_segments(void)
{
	for (struct keep_allocator *allocator = allocators; allocator;
		allocator = allocator->hh.next)
		for (struct keep_founder *founder = allocator->founders; founder;
			founder = founder->next)
			founder->from = founder->to = 0;
	for (struct tree_node *node = tree_ceiling(&keep.live, 0); node;
		node = tree_next(&keep.live, node))
		find_segment(&keep_container(node, struct keep_block, node)->segment, node->key);
	for (struct tree_node *node = tree_ceiling(&keep.mappings, 0); node;
		node = tree_next(&keep.mappings, node))
		find_segment(&keep_container(node, struct keep_mapping, node)->segment, node->key);
}

/* What is repeated of a founder that is gone: no more than lies in segments that are left. A
 * reader finds no segment for a block that begins in none. */
static struct vt_rec_block_alloc part_left(const struct keep_founder *founder)
{
	struct vt_rec_block_alloc alloc = *kept_as(founder->alloc, block_alloc);
	uint64_t end = alloc.address + alloc.bytes;

	if (alloc.address < founder->from)
		alloc.address = founder->from;
	alloc.bytes = (end < founder->to ? end : founder->to) - alloc.address;
	alloc.allocated_jump = alloc.reserved_jump = 0;
	return alloc;
}

/* Before the sites are written: what is repeated is not to be counted twice. */
void block_checkpoint_first(void)
{
	for (struct keep_site *site = keep.sites; site; site = site->hh.next)
		site->n_repeated = site->repeated_bytes = 0;
	for (struct keep_allocator *allocator = allocators; allocator;
		allocator = allocator->hh.next) {
		put_allocator(allocator);
		for (struct keep_founder *founder = allocator->founders; founder;
			founder = founder->next) {
			if (founder->is_live || !founder->site || !founder->alloc)
				continue;
			founder->site->n_repeated++;
			founder->site->repeated_bytes += part_left(founder).bytes;
		}
	}
}

static void put_block(const struct kept *kept)
{
	struct vt_rec_block_alloc record;

	if (!kept)
		return;
	record = *kept_as(kept, block_alloc);
	record.allocated_jump = record.reserved_jump = 0;
	checkpoint_put_new(
		&(struct keep_event){VT_REC_block_alloc, kept->tid, kept->time_ns, &record});
}

/* One that is gone: its coming and its going. */
static void put_founder(const struct keep_founder *founder)
{
	struct vt_rec_block_alloc alloc;
	struct vt_rec_block_stream stream;
	struct vt_rec_block_free gone;
	uint32_t tid;

	if (founder->is_live || !founder->alloc)
		return;
	tid = founder->alloc->tid;
	alloc = part_left(founder);
	checkpoint_put_new(
		&(struct keep_event){VT_REC_block_alloc, tid, founder->alloc->time_ns, &alloc});
	if (founder->stream) {
		stream = *kept_as(founder->stream, block_stream);
		stream.address = alloc.address;
		checkpoint_put_new(&(struct keep_event){VT_REC_block_stream, founder->stream->tid,
			founder->stream->time_ns, &stream});
	}
	gone = (struct vt_rec_block_free){.time_ns = founder->ended_ns,
		.allocator_id = alloc.allocator_id,
		.address = alloc.address,
		.bytes = alloc.bytes};
	checkpoint_put_new(&(struct keep_event){VT_REC_block_free, tid, gone.time_ns, &gone});
}

void block_checkpoint(void)
{
	find_segments();
	for (struct keep_allocator *allocator = allocators; allocator;
		allocator = allocator->hh.next) {
		checkpoint_put(allocator->described);
		for (const struct keep_founder *founder = allocator->founders; founder;
			founder = founder->next)
			put_founder(founder);
		for (struct tree_node *node = tree_ceiling(&allocator->live, 0); node;
			node = tree_next(&allocator->live, node)) {
			const struct piece *piece = piece_from(node);

			put_block(piece->kept);
			if (piece->founder)
				checkpoint_put(piece->founder->stream);
		}
	}
}

void block_forget(void)
{
	allocators = NULL;
}
