/* Copies: their true direction, and what sort of host memory they touched, from what is known of
 * their two addresses. */
#include "model/internal.h"
#include "model/memory.h"

/* One end of a copy. */
struct place {
	int device; /* ordinal, MODEL_DEVICE_UNKNOWN: some device, MODEL_DEVICE_HOST */
	enum model_host_kind host_kind;
	bool known; /* the model holds memory at the address */
};

static struct place place_of(const struct model *model, uint64_t address)
{
	const struct model_block *block = ledger_block_at(model, address);
	const struct model_mapping *mapping;

	if (block) {
		switch (block->kind) {
		case VT_KIND_PINNED:
			return (struct place){MODEL_DEVICE_HOST, MODEL_HOST_PINNED, true};
		case VT_KIND_REGISTERED:
			return (struct place){MODEL_DEVICE_HOST, MODEL_HOST_REGISTERED, true};
		case VT_KIND_MANAGED:
			return (struct place){block->device->ordinal, MODEL_HOST_MANAGED, true};
		default:
			return (struct place){block->device->ordinal, MODEL_HOST_NONE, true};
		}
	}
	mapping = vmm_mapping_at(model, address);
	if (!mapping)
		return (struct place){MODEL_DEVICE_HOST, MODEL_HOST_PAGEABLE, false};
	if (mapping->handle && mapping->handle->block.device->ordinal == MODEL_DEVICE_HOST)
		return (struct place){MODEL_DEVICE_HOST, MODEL_HOST_PINNED, true};
	return (struct place){
		mapping->handle ? mapping->handle->block.device->ordinal : MODEL_DEVICE_UNKNOWN,
		MODEL_HOST_NONE, true};
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

void copy_apply(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_copy *given = &record->copy;
	int device = model_device_of(model, given->device)->ordinal;
	struct place dst = place_of(model, given->dst), src = place_of(model, given->src);
	struct model_copy_key key = {.stack_id = given->stack_id};
	struct model_copy *copy;

	if (given->result) {
		model_note_failure(model, MODEL_REFUSED_COPY, given->api_id, VT_KIND_NONE, device,
			given->stack_id, given->result, given->bytes, given->time_ns);
		return;
	}
	if (given->direction == VT_DIR_H2D || given->direction == VT_DIR_H2H)
		set_host(&src);
	else if (given->direction != VT_DIR_UNIFIED)
		set_device(&src, device);
	if (given->direction == VT_DIR_D2H || given->direction == VT_DIR_H2H)
		set_host(&dst);
	else if (given->direction != VT_DIR_UNIFIED)
		set_device(&dst, device);
	key.dst_device = dst.device;
	key.src_device = src.device;
	key.direction = given->direction == VT_DIR_UNIFIED || given->direction >= VT_N_DIRECTIONS
				? direction_of(&dst, &src)
				: (uint32_t)given->direction;
	key.host_kind = host_kind_of(&dst, &src);
	copy = copy_of(model, &key);
	copy->n_calls++;
	copy->n_async += !!(given->flags & VT_COPY_ASYNC);
	copy->n_small += given->bytes <= MODEL_SMALL_COPY_BYTES;
	copy->bytes = add_capped(copy->bytes, given->bytes);
	copy->host_time_ns = add_capped(copy->host_time_ns, given->duration_ns);
}

void copy_apply_set(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_set *set = &record->set;
	struct model_device *device = model_device_of(model, set->device);

	if (set->result) {
		model_note_failure(model, MODEL_REFUSED_SET, set->api_id, VT_KIND_NONE,
			device->ordinal, set->stack_id, set->result, set->bytes, set->time_ns);
		return;
	}
	device->n_sets++;
	device->set_bytes = add_capped(device->set_bytes, set->bytes);
}
