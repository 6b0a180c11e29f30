/* Copies: their true direction, and what sort of host memory they touched, from what is known of
 * their two addresses. */
#include "model/internal.h"
#include "model/memory.h"

/* One end of a copy. */
struct place {
	int device; /* ordinal, MODEL_DEVICE_UNKNOWN: some device, MODEL_DEVICE_HOST */
	enum model_host_kind host_kind;
	bool known;		   /* the model holds memory at the address */
	struct model_block *block; /* that it is in; NULL: no block */
};

struct ends {
	struct place dst, src;
};

static struct place place_of(const struct model *model, uint64_t address)
{
	struct model_block *block = ledger_block_at(model, address);
	const struct model_mapping *mapping;
	int device;

	if (block) {
		switch (block->kind) {
		case VT_KIND_PINNED:
			return (struct place){MODEL_DEVICE_HOST, MODEL_HOST_PINNED, true, block};
		case VT_KIND_REGISTERED:
			return (struct place){
				MODEL_DEVICE_HOST, MODEL_HOST_REGISTERED, true, block};
		case VT_KIND_MANAGED:
			return (struct place){
				block->device->ordinal, MODEL_HOST_MANAGED, true, block};
		default:
			return (struct place){block->device->ordinal, MODEL_HOST_NONE, true, block};
		}
	}
	mapping = vmm_mapping_at(model, address);
	if (!mapping)
		return (struct place){MODEL_DEVICE_HOST, MODEL_HOST_PAGEABLE, false, NULL};
	device =
		mapping->physical ? mapping->physical->block.device->ordinal : MODEL_DEVICE_UNKNOWN;
	return (struct place){device,
		device == MODEL_DEVICE_HOST ? MODEL_HOST_PINNED : MODEL_HOST_NONE, true, NULL};
}

static bool on_host(const struct place *place)
{
	return place->device == MODEL_DEVICE_HOST;
}

/* The entry point says which end is where; an address that is not known there is somebody else's
 * memory. */
static void set_host(struct place *place)
{
	place->device = MODEL_DEVICE_HOST;
	if (place->host_kind == MODEL_HOST_NONE)
		place->host_kind = MODEL_HOST_PAGEABLE;
}

static void set_device(struct place *place, int device)
{
	if (place->known && !on_host(place))
		return;
	/* Host memory that the device reads or writes by its address stays what it is. */
	if (!place->known)
		place->host_kind = MODEL_HOST_NONE;
	place->device = device;
}

static uint32_t direction_of(const struct place *dst, const struct place *src)
{
	if (on_host(dst))
		return on_host(src) ? VT_DIR_H2H : VT_DIR_D2H;
	if (on_host(src))
		return VT_DIR_H2D;
	return dst->device != src->device && dst->device >= 0 && src->device >= 0 ? VT_DIR_P2P
										  : VT_DIR_D2D;
}

/* The slower end decides: pageable memory goes through a staging buffer whatever the other end is.
 */
static enum model_host_kind host_kind_of(const struct place *dst, const struct place *src)
{
	static const enum model_host_kind worst_first[] = {
		MODEL_HOST_PAGEABLE, MODEL_HOST_REGISTERED, MODEL_HOST_PINNED, MODEL_HOST_MANAGED};

	for (size_t i = 0; i < sizeof(worst_first) / sizeof(*worst_first); i++)
		if (dst->host_kind == worst_first[i] || src->host_kind == worst_first[i])
			return worst_first[i];
	return MODEL_HOST_NONE;
}

static struct model_copy *copy_of(struct model *model, const struct model_copy_key *key)
{
	struct model_copy *copy;

	HASH_FIND(hh, model->copies, key, sizeof(*key), copy);
	if (copy)
		return copy;
	copy = memory_new(1, sizeof(*copy));
	copy->key = *key;
	HASH_ADD(hh, model->copies, key, sizeof(copy->key), copy);
	return copy;
}

static struct place end_of(const struct model *model, uint64_t address, bool array)
{
	struct model_block *block = array ? ledger_array(model, address) : NULL;

	if (!array)
		return place_of(model, address);
	/* Levels of mipmapped arrays have handles of their own, which nobody was seen to make. */
	return (struct place){block ? block->device->ordinal : MODEL_DEVICE_UNKNOWN,
		MODEL_HOST_NONE, block != NULL, block};
}

static bool is_unified(const struct vt_rec_copy *given)
{
	return given->direction == VT_DIR_UNIFIED || given->direction >= VT_N_DIRECTIONS;
}

/* The ends of a copy, as the entry point and what is known of the addresses say. */
static struct ends ends_of(struct model *model, const struct vt_rec_copy *given)
{
	int device = model_device_of(model, given->device)->ordinal;
	struct place dst = end_of(model, given->dst, given->flags & VT_COPY_DST_ARRAY);
	struct place src = end_of(model, given->src, given->flags & VT_COPY_SRC_ARRAY);
	bool unified = is_unified(given);

	if (given->direction == VT_DIR_H2D || given->direction == VT_DIR_H2H)
		set_host(&src);
	else if (!unified || given->flags & VT_COPY_SRC_ARRAY)
		set_device(&src, device);
	if (given->direction == VT_DIR_D2H || given->direction == VT_DIR_H2H)
		set_host(&dst);
	else if (!unified || given->flags & VT_COPY_DST_ARRAY)
		set_device(&dst, device);
	return (struct ends){dst, src};
}

static uint16_t size_class_of(uint64_t bytes)
{
	return bytes ? (uint16_t)(64 - __builtin_clzll(bytes)) : 0;
}

static struct model_copy_key key_of(const struct ends *ends, const struct vt_rec_copy *given)
{
	struct model_copy_key key = {
		.stack_id = given->stack_id,
		.dst_device = ends->dst.device,
		.src_device = ends->src.device,
		.direction = is_unified(given) ? direction_of(&ends->dst, &ends->src)
					       : (uint32_t)given->direction,
		.host_kind = (uint16_t)host_kind_of(&ends->dst, &ends->src),
		.size_class = size_class_of(given->bytes),
	};

	if (key.direction == VT_DIR_D2D && given->flags & VT_COPY_PEER)
		key.direction = VT_DIR_P2P;
	return key;
}

/* One call more. What it moves is known only when the copies of its batch have followed. */
static void begin_call(struct model *model, struct model_copy *copy, const struct vt_record *record)
{
	const struct vt_rec_copy *given = &record->copy;

	copy->n_calls++;
	copy->n_async += !!(given->flags & VT_COPY_ASYNC);
	copy->n_small += given->bytes <= MODEL_SMALL_COPY_BYTES;
	model->last_call.copy = copy;
	model->last_call.bytes = given->bytes;
	model->last_call.first_bytes = given->bytes;
	model->last_call.ns = given->duration_ns;
	model->last_call.tid = record->tid;
	traffic_begin_call(model, copy, record);
}

/* More of a batch: together its copies may not be small. */
static void continue_call(struct model *model, const struct vt_record *record)
{
	uint64_t before = model->last_call.bytes;

	if (!model->last_call.copy || model->last_call.tid != record->tid)
		return;
	model->last_call.bytes = add_capped(before, record->copy.bytes);
	if (before <= MODEL_SMALL_COPY_BYTES && model->last_call.bytes > MODEL_SMALL_COPY_BYTES)
		model->last_call.copy->n_small--;
	traffic_continue_call(model, &record->copy);
}

/* Memory of cuMemAlloc and arrays can be used by another device only with peer access; access to
 * other sorts is granted by other calls. */
static bool needs_peer_access(const struct place *place)
{
	return place->block && place->device >= 0 &&
	       (place->block->kind == VT_KIND_LINEAR || place->block->kind == VT_KIND_ARRAY);
}

static void note_peers(struct model *model, struct model_copy *copy, const struct ends *ends,
	const struct vt_rec_copy *given)
{
	if (copy->key.direction != VT_DIR_P2P || !needs_peer_access(&ends->dst) ||
		!needs_peer_access(&ends->src) || ends->dst.device == ends->src.device ||
		traffic_has_peer_access(model, ends->dst.device, ends->src.device))
		return;
	copy->unpeered.n++;
	copy->unpeered.bytes = add_capped(copy->unpeered.bytes, given->bytes);
}

static void note_host_memory(struct model *model, struct model_copy *copy, const struct ends *ends,
	const struct vt_rec_copy *given)
{
	host_use_note_copy(model, ends->dst.block, copy, given, given->dst);
	host_use_note_copy(model, ends->src.block, copy, given, given->src);
	if (copy->key.direction == VT_DIR_H2D)
		host_ranges_note_up(model, copy, given->src, given->bytes);
	else if (copy->key.direction == VT_DIR_D2H)
		host_ranges_note_down(model, copy, given->dst, given->bytes);
}

void copy_apply(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_copy *given = &record->copy;
	struct model_copy_key key;
	struct model_copy *copy;
	struct ends ends;

	if (given->result) {
		model_note_failure(model,
			&(struct model_failure_key){.result = given->result,
				.stack_id = given->stack_id,
				.api_id = given->api_id,
				.caller_api = given->caller_api,
				.device = model_device_of(model, given->device)->ordinal,
				.refusal = MODEL_REFUSED_COPY},
			given->bytes, given->time_ns);
		return;
	}
	if (given->flags & VT_COPY_CAPTURED) {
		model->captured.n_copies++;
		model->captured.copy_bytes = add_capped(model->captured.copy_bytes, given->bytes);
		return;
	}
	ends = ends_of(model, given);
	key = key_of(&ends, given);
	copy = copy_of(model, &key);
	if (!copy->n_copies++)
		copy->first_ns = given->time_ns;
	copy->last_ns = given->time_ns;
	if (given->flags & VT_COPY_SAME_CALL)
		continue_call(model, record);
	else
		begin_call(model, copy, record);
	copy->bytes = add_capped(copy->bytes, given->bytes);
	copy->host_time_ns = add_capped(copy->host_time_ns, given->duration_ns);
	note_peers(model, copy, &ends, given);
	note_host_memory(model, copy, &ends, given);
	traffic_note_copy(model, copy, given);
}
