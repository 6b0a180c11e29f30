/* Copies: their true direction, and what sort of host memory they touched, from what is known of
 * their two addresses. And managed memory that is told where to be. */
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
	int device;

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
	device =
		mapping->physical ? mapping->physical->block.device->ordinal : MODEL_DEVICE_UNKNOWN;
	return (struct place){
		device, device == MODEL_DEVICE_HOST ? MODEL_HOST_PINNED : MODEL_HOST_NONE, true};
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
	const struct model_block *block = array ? ledger_array(model, address) : NULL;

	if (!array)
		return place_of(model, address);
	/* Levels of mipmapped arrays have handles of their own, which nobody was seen to make. */
	return (struct place){block ? block->device->ordinal : MODEL_DEVICE_UNKNOWN,
		MODEL_HOST_NONE, block != NULL};
}

/* The ends of a copy, as the entry point and what is known of the addresses say. */
static struct model_copy_key key_of(struct model *model, const struct vt_rec_copy *given)
{
	int device = model_device_of(model, given->device)->ordinal;
	struct place dst = end_of(model, given->dst, given->flags & VT_COPY_DST_ARRAY);
	struct place src = end_of(model, given->src, given->flags & VT_COPY_SRC_ARRAY);
	bool unified = given->direction == VT_DIR_UNIFIED || given->direction >= VT_N_DIRECTIONS;
	struct model_copy_key key = {.stack_id = given->stack_id};

	if (given->direction == VT_DIR_H2D || given->direction == VT_DIR_H2H)
		set_host(&src);
	else if (!unified || given->flags & VT_COPY_SRC_ARRAY)
		set_device(&src, device);
	if (given->direction == VT_DIR_D2H || given->direction == VT_DIR_H2H)
		set_host(&dst);
	else if (!unified || given->flags & VT_COPY_DST_ARRAY)
		set_device(&dst, device);
	key.dst_device = dst.device;
	key.src_device = src.device;
	key.direction = unified ? direction_of(&dst, &src) : (uint32_t)given->direction;
	if (key.direction == VT_DIR_D2D && given->flags & VT_COPY_PEER)
		key.direction = VT_DIR_P2P;
	key.host_kind = host_kind_of(&dst, &src);
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
	model->last_call.tid = record->tid;
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
}

void copy_apply(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_copy *given = &record->copy;
	struct model_copy_key key;
	struct model_copy *copy;

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
	key = key_of(model, given);
	copy = copy_of(model, &key);
	if (given->flags & VT_COPY_SAME_CALL)
		continue_call(model, record);
	else
		begin_call(model, copy, record);
	copy->n_copies++;
	copy->bytes = add_capped(copy->bytes, given->bytes);
	copy->host_time_ns = add_capped(copy->host_time_ns, given->duration_ns);
}

void copy_apply_set(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_set *set = &record->set;
	struct model_device *device = model_device_of(model, set->device);

	if (set->result) {
		model_note_failure(model,
			&(struct model_failure_key){.result = set->result,
				.stack_id = set->stack_id,
				.api_id = set->api_id,
				.caller_api = set->caller_api,
				.device = device->ordinal,
				.refusal = MODEL_REFUSED_SET},
			set->bytes, set->time_ns);
		return;
	}
	if (set->flags & VT_COPY_CAPTURED) {
		model->captured.n_sets++;
		model->captured.set_bytes = add_capped(model->captured.set_bytes, set->bytes);
		return;
	}
	device->n_sets++;
	device->set_bytes = add_capped(device->set_bytes, set->bytes);
}

/* The ranges of one call share its thread and its moment. */
static bool is_same_migration(const struct model *model, const struct vt_record *record)
{
	return model->last_migration.time_ns == record->migrate.time_ns &&
	       model->last_migration.api_id == record->migrate.api_id &&
	       model->last_migration.tid == record->tid;
}

void copy_apply_migrate(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_migrate *given = &record->migrate;
	struct model_migration *migration;

	if (given->result) {
		model_note_failure(model,
			&(struct model_failure_key){.result = given->result,
				.stack_id = given->stack_id,
				.api_id = given->api_id,
				.device = given->device < 0
						  ? MODEL_DEVICE_HOST
						  : model_device_of(model, given->device)->ordinal,
				.refusal = MODEL_REFUSED_MIGRATE,
				.kind = VT_KIND_MANAGED},
			given->bytes, given->time_ns);
		return;
	}
	if (!given->action || given->action >= MODEL_N_MIGRATIONS)
		return;
	migration = &model->migrations[given->action];
	migration->bytes = add_capped(migration->bytes, given->bytes);
	if (migration->n_calls && is_same_migration(model, record))
		return;
	migration->n_calls++;
	migration->host_time_ns = add_capped(migration->host_time_ns, given->duration_ns);
	model->last_migration.time_ns = given->time_ns;
	model->last_migration.api_id = given->api_id;
	model->last_migration.tid = record->tid;
}
