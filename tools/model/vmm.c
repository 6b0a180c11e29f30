/*
 * Virtual memory management: address space, physical memory behind handles, and mappings of one
 * into the other, kept apart. Physical memory ends when it has neither a reference nor a mapping.
 * What was imported, and multicast objects, are bytes of others: known, but not counted. An import
 * does not tell its size; mappings of it do.
 */
#include <stdlib.h>

#include "model/events.h"
#include "model/internal.h"
#include "model/memory.h"

/* CU_MEM_LOCATION_TYPE_DEVICE; 0 is not known, and every other type is host memory. */
#define LOCATION_DEVICE 1u

static struct model_handle *handle_find(struct model *model, uint64_t value)
{
	struct model_handle *handle;

	HASH_FIND(hh, model->handles, &value, sizeof(value), handle);
	return handle;
}

/* A handle for physical memory, with its first reference. */
static void handle_add(struct model *model, uint64_t value, struct model_physical *physical)
{
	struct model_handle *handle = memory_new(1, sizeof(*handle));

	handle->handle = value;
	handle->n_refs = 1;
	handle->physical = physical;
	physical->n_refs++;
	HASH_ADD(hh, model->handles, handle, sizeof(handle->handle), handle);
}

/* Ends physical memory that nothing refers to any more. */
static void physical_settle(struct model *model, struct model_physical *physical)
{
	if (physical->n_refs || physical->n_mappings)
		return;
	ledger_remove(model, &physical->block, false);
	free(physical);
}

static void handle_drop(struct model *model, struct model_handle *handle)
{
	struct model_physical *physical = handle->physical;

	physical->n_refs--;
	if (!--handle->n_refs) {
		/* The number may be given out again while the memory lives on in a mapping. */
		HASH_DEL(model->handles, handle);
		free(handle);
	}
	physical_settle(model, physical);
}

/* A handle's number is given out again: all its references must have gone. */
static void handle_forget(struct model *model, struct model_handle *handle)
{
	model->n_missed_frees++;
	handle->physical->n_refs -= handle->n_refs - 1;
	handle->n_refs = 1;
	handle_drop(model, handle);
}

static void apply_create(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_handle_create *create = &record->handle_create;
	const struct place_in_trace place = {create->stack_id, create->time_ns, record->tid};
	struct model_handle *handle = handle_find(model, create->handle);
	struct model_physical *physical = memory_new(1, sizeof(*physical));
	struct model_block *block = &physical->block;

	if (handle)
		handle_forget(model, handle);
	block->bytes = create->bytes;
	block->kind = create->sharing == VT_SHARING_OWN ? VT_KIND_VMM : VT_KIND_SHARED;
	block->device = create->location > LOCATION_DEVICE ? &model->host
							   : model_device_of(model, create->device);
	handle_add(model, create->handle, physical);
	ledger_add(model, block, &place);
}

static void note_refused(struct model *model, const struct model_failure_key *about, uint64_t bytes,
	uint64_t time_ns)
{
	struct model_failure_key key = *about;

	key.kind = VT_KIND_VMM;
	model_note_failure(model, &key, bytes, time_ns);
}

static void apply_release(struct model *model, const struct vt_rec_handle_release *release)
{
	struct model_handle *handle = handle_find(model, release->handle);
	const struct model_block *block = handle ? &handle->physical->block : NULL;

	if (release->result)
		note_refused(model,
			&(struct model_failure_key){.stack_id = release->stack_id,
				.api_id = release->api_id,
				.result = release->result,
				.device = block ? block->device->ordinal : MODEL_DEVICE_UNKNOWN,
				.refusal = MODEL_REFUSED_FREE},
			block ? block->bytes : 0, release->time_ns);
	else if (handle)
		handle_drop(model, handle);
	else
		model_note_unknown_free(model, release->time_ns);
}

/* A failed call on address space; those have no stack but where one is given. */
static void note_refused_space(struct model *model, uint64_t api_id, uint64_t stack_id,
	uint64_t result, int device, uint64_t bytes, uint64_t time_ns)
{
	note_refused(model,
		&(struct model_failure_key){.stack_id = stack_id,
			.api_id = api_id,
			.result = result,
			.device = device,
			.refusal = MODEL_REFUSED_ADDRESS_SPACE},
		bytes, time_ns);
}

/* Retaining gives out the handle the memory was mapped with, also when all references to it were
 * given back. */
static void apply_retain(struct model *model, const struct vt_rec_handle_retain *retain)
{
	struct model_handle *handle = handle_find(model, retain->handle);
	const struct model_mapping *mapping = vmm_mapping_at(model, retain->address);

	if (retain->result) {
		note_refused_space(model, retain->api_id, 0, retain->result, MODEL_DEVICE_UNKNOWN,
			0, retain->time_ns);
	} else if (handle) {
		handle->n_refs++;
		handle->physical->n_refs++;
	} else if (mapping && mapping->physical) {
		handle_add(model, retain->handle, mapping->physical);
	}
}

static struct model_mapping *mapping_from(struct tree_node *node)
{
	return node ? container(node, struct model_mapping, node) : NULL;
}

static void mapping_remove(struct model *model, struct model_mapping *mapping)
{
	if (mapping->segment)
		segment_end(model, mapping->segment);
	model_tell(model, &(struct model_event){MODEL_MAPPING_END, .mapping = mapping});
	tree_remove(&model->mappings, &mapping->node);
	if (mapping->physical) {
		mapping->physical->n_mappings--;
		physical_settle(model, mapping->physical);
	}
	free(mapping);
}

/* Removes every mapping that begins in the range. Returns how many. */
static size_t unmap_range(struct model *model, uint64_t address, uint64_t bytes)
{
	struct model_mapping *mapping = mapping_from(tree_ceiling(&model->mappings, address));
	size_t n = 0;

	while (mapping && mapping->node.key - address < bytes) {
		struct tree_node *next = tree_next(&model->mappings, &mapping->node);

		mapping_remove(model, mapping);
		mapping = mapping_from(next);
		n++;
	}
	return n;
}

/* What is mapped of memory of others is there. */
static void learn_size(
	struct model *model, struct model_physical *physical, const struct vt_rec_map *map)
{
	uint64_t end = add_capped(map->offset, map->bytes);

	if (physical->block.kind == VT_KIND_SHARED && end > physical->block.bytes)
		ledger_grow(model, &physical->block, end - physical->block.bytes);
}

static void apply_map(struct model *model, const struct vt_rec_map *map)
{
	struct model_handle *handle = handle_find(model, map->handle);
	struct model_physical *physical = handle ? handle->physical : NULL;
	struct model_mapping *mapping;

	if (map->result) {
		note_refused_space(model, map->api_id, map->stack_id, map->result,
			MODEL_DEVICE_UNKNOWN, map->bytes, map->time_ns);
		return;
	}
	/* Held meanwhile: the mapping that is replaced may be the last thing that keeps it. */
	if (physical)
		physical->n_mappings++;
	model->n_missed_frees += unmap_range(model, map->address, map->bytes);
	if (!map->bytes) {
		if (physical)
			physical->n_mappings--;
		return;
	}
	mapping = memory_new(1, sizeof(*mapping));
	mapping->bytes = map->bytes;
	mapping->number = model->n_ranges++;
	mapping->physical = physical;
	tree_insert(&model->mappings, &mapping->node, map->address);
	if (physical)
		learn_size(model, physical, map);
	model_tell(model, &(struct model_event){MODEL_MAPPING_BEGIN, .mapping = mapping});
}

static void apply_unmap(struct model *model, const struct vt_rec_unmap *unmap)
{
	if (unmap->result)
		note_refused_space(model, unmap->api_id, unmap->stack_id, unmap->result,
			MODEL_DEVICE_UNKNOWN, unmap->bytes, unmap->time_ns);
	else
		unmap_range(model, unmap->address, unmap->bytes);
}

static struct model_reservation *reservation_from(struct tree_node *node)
{
	return node ? container(node, struct model_reservation, node) : NULL;
}

static void reservation_remove(struct model *model, struct model_reservation *reservation)
{
	model->reserved_bytes -= reservation->bytes;
	tree_remove(&model->reservations, &reservation->node);
	free(reservation);
}

static void apply_reserve(struct model *model, const struct vt_rec_reserve *reserve)
{
	struct model_reservation *reservation;

	if (reserve->result) {
		note_refused_space(model, reserve->api_id, reserve->stack_id, reserve->result,
			MODEL_DEVICE_UNKNOWN, reserve->bytes, reserve->time_ns);
		return;
	}
	reservation = reservation_from(tree_find(&model->reservations, reserve->address));
	if (reservation)
		reservation_remove(model, reservation);
	reservation = memory_new(1, sizeof(*reservation));
	reservation->bytes = reserve->bytes;
	reservation->stack_id = reserve->stack_id;
	model->reserved_bytes += reserve->bytes;
	tree_insert(&model->reservations, &reservation->node, reserve->address);
}

static void apply_unreserve(struct model *model, const struct vt_rec_unreserve *unreserve)
{
	struct model_reservation *reservation =
		reservation_from(tree_find(&model->reservations, unreserve->address));

	if (unreserve->result)
		note_refused_space(model, unreserve->api_id, 0, unreserve->result,
			MODEL_DEVICE_UNKNOWN, unreserve->bytes, unreserve->time_ns);
	else if (reservation)
		reservation_remove(model, reservation);
}

static void apply_access(struct model *model, const struct vt_rec_access *access)
{
	if (access->result)
		note_refused_space(model, access->api_id, 0, access->result,
			access->device < 0 ? MODEL_DEVICE_HOST
					   : model_device_of(model, access->device)->ordinal,
			access->bytes, access->time_ns);
}

void vmm_apply(struct model *model, const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_reserve:
		apply_reserve(model, &record->reserve);
		break;
	case VT_REC_unreserve:
		apply_unreserve(model, &record->unreserve);
		break;
	case VT_REC_handle_create:
		apply_create(model, record);
		break;
	case VT_REC_handle_release:
		apply_release(model, &record->handle_release);
		break;
	case VT_REC_handle_retain:
		apply_retain(model, &record->handle_retain);
		break;
	case VT_REC_map:
		apply_map(model, &record->map);
		break;
	case VT_REC_unmap:
		apply_unmap(model, &record->unmap);
		break;
	case VT_REC_access:
		apply_access(model, &record->access);
		break;
	default:
		break;
	}
}

struct model_mapping *vmm_mapping_of(const struct model *model, uint64_t address)
{
	struct model_mapping *mapping = mapping_from(tree_floor(&model->mappings, address));

	return mapping && address - mapping->node.key < mapping->bytes ? mapping : NULL;
}

const struct model_mapping *vmm_mapping_at(const struct model *model, uint64_t address)
{
	return vmm_mapping_of(model, address);
}

struct model_mapping *vmm_mapping_next(
	const struct model *model, const struct model_mapping *mapping)
{
	return mapping_from(tree_next(&model->mappings, &mapping->node));
}

bool model_in_one_reservation(const struct model *model, uint64_t a, uint64_t b)
{
	return tree_floor(&model->reservations, a) == tree_floor(&model->reservations, b);
}

void vmm_release(struct model *model)
{
	struct model_handle *handle, *next;

	while (model->mappings.root)
		mapping_remove(model, mapping_from(model->mappings.root));
	while (model->reservations.root)
		reservation_remove(model, reservation_from(model->reservations.root));
	HASH_ITER(hh, model->handles, handle, next)
	{
		handle->physical->n_refs -= handle->n_refs - 1;
		handle->n_refs = 1;
		handle_drop(model, handle);
	}
}
