/*
 * Virtual memory management: address space, physical memory behind handles, and mappings of one
 * into the other, kept apart. Physical memory ends when it has neither a reference nor a mapping.
 */
#include <stdlib.h>

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

/* Ends physical memory that nothing refers to any more. */
static void handle_settle(struct model *model, struct model_handle *handle)
{
	if (handle->n_refs || handle->n_mappings)
		return;
	ledger_remove(model, &handle->block, false);
	free(handle);
}

static void handle_drop(struct model *model, struct model_handle *handle)
{
	if (--handle->n_refs)
		return;
	/* The number may be given out again while the memory lives on in a mapping. */
	HASH_DEL(model->handles, handle);
	handle_settle(model, handle);
}

static void apply_create(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_handle_create *create = &record->handle_create;
	struct model_handle *handle = handle_find(model, create->handle);

	if (handle) {
		model->n_missed_frees++;
		handle->n_refs = 1;
		handle_drop(model, handle);
	}
	handle = memory_new(1, sizeof(*handle));
	handle->handle = create->handle;
	handle->n_refs = 1;
	handle->block.bytes = create->bytes;
	handle->block.kind = VT_KIND_VMM;
	handle->block.device = create->location > LOCATION_DEVICE
				       ? &model->host
				       : model_device_of(model, create->device);
	HASH_ADD(hh, model->handles, handle, sizeof(handle->handle), handle);
	ledger_add(model, &handle->block, create->stack_id, create->time_ns, record->tid);
}

static void apply_release(struct model *model, const struct vt_rec_handle_release *release)
{
	struct model_handle *handle = handle_find(model, release->handle);

	if (release->result)
		model_note_failure(model, MODEL_REFUSED_FREE, release->api_id, VT_KIND_VMM,
			handle ? handle->block.device->ordinal : MODEL_DEVICE_UNKNOWN,
			release->stack_id, release->result, handle ? handle->block.bytes : 0,
			release->time_ns);
	else if (handle)
		handle_drop(model, handle);
	else
		model->n_unknown_frees++;
}

static struct model_mapping *mapping_from(struct tree_node *node)
{
	return node ? container(node, struct model_mapping, node) : NULL;
}

static void mapping_remove(struct model *model, struct model_mapping *mapping)
{
	tree_remove(&model->mappings, &mapping->node);
	if (mapping->handle) {
		mapping->handle->n_mappings--;
		handle_settle(model, mapping->handle);
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

static void apply_map(struct model *model, const struct vt_rec_map *map)
{
	struct model_mapping *mapping;
	struct model_handle *handle = handle_find(model, map->handle);

	if (map->result) {
		model_note_failure(model, MODEL_REFUSED_ADDRESS_SPACE, map->api_id, VT_KIND_VMM,
			MODEL_DEVICE_UNKNOWN, map->stack_id, map->result, map->bytes, map->time_ns);
		return;
	}
	/* Held meanwhile: the mapping that is replaced may be the last thing that keeps it. */
	if (handle)
		handle->n_mappings++;
	model->n_missed_frees += unmap_range(model, map->address, map->bytes);
	mapping = memory_new(1, sizeof(*mapping));
	mapping->bytes = map->bytes;
	mapping->handle = handle;
	if (map->bytes) {
		tree_insert(&model->mappings, &mapping->node, map->address);
		return;
	}
	free(mapping);
	if (handle)
		handle->n_mappings--;
}

static void apply_unmap(struct model *model, const struct vt_rec_unmap *unmap)
{
	if (unmap->result)
		model_note_failure(model, MODEL_REFUSED_ADDRESS_SPACE, unmap->api_id, VT_KIND_VMM,
			MODEL_DEVICE_UNKNOWN, unmap->stack_id, unmap->result, unmap->bytes,
			unmap->time_ns);
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
		model_note_failure(model, MODEL_REFUSED_ADDRESS_SPACE, reserve->api_id, VT_KIND_VMM,
			MODEL_DEVICE_UNKNOWN, reserve->stack_id, reserve->result, reserve->bytes,
			reserve->time_ns);
		return;
	}
	reservation = reservation_from(tree_find(&model->reservations, reserve->address));
	if (reservation)
		reservation_remove(model, reservation);
	reservation = memory_new(1, sizeof(*reservation));
	reservation->bytes = reserve->bytes;
	model->reserved_bytes += reserve->bytes;
	tree_insert(&model->reservations, &reservation->node, reserve->address);
}

static void apply_unreserve(struct model *model, const struct vt_rec_unreserve *unreserve)
{
	struct model_reservation *reservation =
		reservation_from(tree_find(&model->reservations, unreserve->address));

	if (unreserve->result)
		model_note_failure(model, MODEL_REFUSED_ADDRESS_SPACE, unreserve->api_id,
			VT_KIND_VMM, MODEL_DEVICE_UNKNOWN, 0, unreserve->result, unreserve->bytes,
			unreserve->time_ns);
	else if (reservation)
		reservation_remove(model, reservation);
}

static void apply_access(struct model *model, const struct vt_rec_access *access)
{
	if (access->result)
		model_note_failure(model, MODEL_REFUSED_ADDRESS_SPACE, access->api_id, VT_KIND_VMM,
			access->device < 0 ? MODEL_DEVICE_HOST
					   : model_device_of(model, access->device)->ordinal,
			0, access->result, access->bytes, access->time_ns);
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

const struct model_mapping *vmm_mapping_at(const struct model *model, uint64_t address)
{
	const struct model_mapping *mapping = mapping_from(tree_floor(&model->mappings, address));

	return mapping && address - mapping->node.key < mapping->bytes ? mapping : NULL;
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
		HASH_DEL(model->handles, handle);
		free(handle);
	}
}
