/* Virtual memory management, see tools/model/vmm.c. */
#include "record/keep/internal.h"

/* CU_MEM_LOCATION_TYPE_DEVICE; 0 is not known, and every other type is host memory. */
#define LOCATION_DEVICE 1u

struct keep_handle {
	uint64_t handle;
	uint64_t n_refs;
	struct keep_physical *physical;
	struct keep_handle *next; /* of the same physical memory */
	UT_hash_handle hh;
};

struct keep_physical {
	struct kept *create;
	uint64_t bytes;
	uint32_t kind;
	struct keep_device *device;
	struct keep_site *site;
	struct keep_handle *handles;
	struct keep_mapping *mappings;
	uint64_t released_ns; /* when its last handle went */
	struct keep_physical *next, **link;
};

struct keep_reservation {
	struct tree_node node;
	struct kept *kept;
};

static struct keep_handle *handles;
static struct keep_physical *all; /* newest first */

struct keep_site *keep_physical_site(const struct keep_physical *physical)
{
	return physical->site;
}

struct keep_device *keep_physical_device(const struct keep_physical *physical)
{
	return physical->device;
}

uint32_t keep_physical_kind(const struct keep_physical *physical)
{
	return physical->kind;
}

static struct keep_handle *handle_find(uint64_t value)
{
	struct keep_handle *handle;

	HASH_FIND(hh, handles, &value, sizeof(value), handle);
	return handle;
}

static void handle_add(uint64_t value, struct keep_physical *physical)
{
	struct keep_handle *handle = keep_alloc(sizeof(*handle));
	struct arena *arena = &keep.arena;
	bool added = true;

	if (!handle)
		return;
	handle->handle = value;
	handle->n_refs = 1;
	handle->physical = physical;
	handle->next = physical->handles;
	physical->handles = handle;
	HASH_ADD(hh, handles, handle, sizeof(handle->handle), handle);
	(void)added; /* without memory it is not found again */
}

static void hold(const struct keep_physical *physical, uint64_t bytes)
{
	if (physical->kind == VT_KIND_VMM)
		device_hold(
			physical->device, VT_KIND_VMM, physical->device->held[VT_KIND_VMM] + bytes);
}

static void physical_settle(struct keep_physical *physical, uint64_t time_ns)
{
	if (physical->handles || physical->mappings)
		return;
	device_remove(physical->device, physical->kind, physical->bytes);
	if (physical->site)
		site_end(physical->site, physical->bytes, false);
	hold(physical, -physical->bytes);
	device_changed(physical->device, time_ns);
	*physical->link = physical->next;
	if (physical->next)
		physical->next->link = physical->link;
	kept_free(physical->create);
	keep_free(physical, sizeof(*physical));
}

/* n references go. */
static void handle_drop(struct keep_handle *handle, uint64_t n, uint64_t time_ns)
{
	struct keep_physical *physical = handle->physical;
	struct arena *arena = &keep.arena;
	struct keep_handle **link = &physical->handles;

	handle->n_refs -= n;
	if (handle->n_refs)
		return;
	while (*link != handle)
		link = &(*link)->next;
	*link = handle->next;
	HASH_DEL(handles, handle);
	keep_free(handle, sizeof(*handle));
	physical->released_ns = time_ns;
	physical_settle(physical, time_ns);
}

static void apply_create(const struct keep_event *event)
{
	const struct vt_rec_handle_create *given = keep_record(event, handle_create);
	struct keep_handle *handle = handle_find(given->handle);
	struct keep_physical *physical;

	if (handle) {
		/* It must have gone before. */
		keep_missed(given->handle, event->time_ns);
		handle_drop(handle, handle->n_refs, event->time_ns - 1);
	}
	physical = keep_alloc(sizeof(*physical));
	if (!physical)
		return;
	physical->bytes = given->bytes;
	physical->kind = given->sharing == VT_SHARING_OWN ? VT_KIND_VMM : VT_KIND_SHARED;
	physical->device =
		keep_device_of(given->location > LOCATION_DEVICE ? VT_DEVICE_HOST : given->device);
	if (!physical->device)
		return;
	physical->create = kept_new(event);
	physical->next = all;
	physical->link = &all;
	if (all)
		all->link = &physical->next;
	all = physical;
	handle_add(given->handle, physical);
	physical->site = keep_site_of(given->stack_id, physical->device, physical->kind, 0);
	if (physical->site)
		site_begin(physical->site, physical->bytes, event->time_ns);
	device_add(physical->device, physical->kind, physical->bytes, event->time_ns);
	hold(physical, physical->bytes);
	device_changed(physical->device, event->time_ns);
}

static void refused(const struct keep_refusal_key *about, uint64_t bytes, uint64_t time_ns)
{
	struct keep_refusal_key key = *about;

	key.kind = VT_KIND_VMM;
	keep_refused(&key, bytes, time_ns);
}

static void apply_release(const struct keep_event *event)
{
	const struct vt_rec_handle_release *given = keep_record(event, handle_release);
	struct keep_handle *handle = handle_find(given->handle);
	const struct keep_physical *physical = handle ? handle->physical : NULL;

	if (given->result)
		refused(&(struct keep_refusal_key){.stack_id = given->stack_id,
				.api_id = given->api_id,
				.result = given->result,
				.device = physical ? physical->device->ordinal : VT_DEVICE_UNKNOWN,
				.refused = VT_REFUSED_FREE},
			physical ? physical->bytes : 0, given->time_ns);
	else if (keep_was_missed(given->handle, event->time_ns))
		return;
	else if (handle)
		handle_drop(handle, 1, event->time_ns);
	else
		keep.n_unknown_frees++;
}

static struct keep_mapping *mapping_from(struct tree_node *node)
{
	return node ? keep_container(node, struct keep_mapping, node) : NULL;
}

struct keep_mapping *keep_mapping_of(uint64_t address)
{
	struct keep_mapping *mapping = mapping_from(tree_floor(&keep.mappings, address));

	return mapping && address - mapping->node.key < mapping->bytes ? mapping : NULL;
}

static void refused_space(uint64_t api_id, uint64_t stack_id, uint64_t result, int64_t device,
	uint64_t bytes, uint64_t time_ns)
{
	refused(&(struct keep_refusal_key){.stack_id = stack_id,
			.api_id = api_id,
			.result = result,
			.device = device,
			.refused = VT_REFUSED_ADDRESS_SPACE},
		bytes, time_ns);
}

static void apply_retain(const struct keep_event *event)
{
	const struct vt_rec_handle_retain *given = keep_record(event, handle_retain);
	struct keep_handle *handle = handle_find(given->handle);
	const struct keep_mapping *mapping = keep_mapping_of(given->address);

	if (given->result)
		refused_space(
			given->api_id, 0, given->result, VT_DEVICE_UNKNOWN, 0, given->time_ns);
	else if (handle)
		handle->n_refs++;
	else if (mapping && mapping->physical)
		handle_add(given->handle, mapping->physical);
}

static void mapping_remove(struct keep_mapping *mapping, uint64_t time_ns)
{
	struct keep_physical *physical = mapping->physical;

	tree_remove(&keep.mappings, &mapping->node);
	block_segment_end(&mapping->segment, mapping->node.key, time_ns);
	if (physical) {
		struct keep_mapping **link = &physical->mappings;

		while (*link != mapping)
			link = &(*link)->next;
		*link = mapping->next;
		physical_settle(physical, time_ns);
	}
	kept_free(mapping->kept);
	keep_free(mapping, sizeof(*mapping));
}

static size_t unmap_range(uint64_t address, uint64_t bytes, uint64_t time_ns)
{
	struct keep_mapping *mapping = mapping_from(tree_ceiling(&keep.mappings, address));
	size_t n = 0;

	while (mapping && mapping->node.key - address < bytes) {
		struct tree_node *next = tree_next(&keep.mappings, &mapping->node);

		/* A younger one is another thread's, which was faster to say so. */
		if (!mapping->kept || mapping->kept->time_ns <= time_ns) {
			mapping_remove(mapping, time_ns);
			n++;
		}
		mapping = mapping_from(next);
	}
	return n;
}

/* What is mapped of memory of others is there. */
static void learn_size(struct keep_physical *physical, const struct keep_event *event)
{
	const struct vt_rec_map *map = keep_record(event, map);
	uint64_t end = map->offset + map->bytes, more;

	if (physical->kind != VT_KIND_SHARED || end < map->offset || end <= physical->bytes)
		return;
	more = end - physical->bytes;
	physical->bytes = end;
	if (physical->site)
		amount_change(&physical->site->live, physical->device, more, 0);
	device_add(physical->device, physical->kind, more, event->time_ns);
	physical->device->kinds[physical->kind].n_allocs--;
	if (physical->create)
		kept_as(physical->create, handle_create)->bytes = end;
}

static void apply_map(const struct keep_event *event)
{
	const struct vt_rec_map *given = keep_record(event, map);
	struct keep_handle *handle = handle_find(given->handle);
	struct keep_physical *physical = handle ? handle->physical : NULL;
	struct keep_mapping *mapping;

	if (given->result) {
		refused_space(given->api_id, given->stack_id, given->result, VT_DEVICE_UNKNOWN,
			given->bytes, given->time_ns);
		return;
	}
	/* It has a handle, so that it does not end with the mapping that is replaced. */
	keep.n_missed_frees += unmap_range(given->address, given->bytes, event->time_ns);
	mapping = given->bytes ? keep_alloc(sizeof(*mapping)) : NULL;
	if (!mapping)
		return;
	mapping->bytes = given->bytes;
	mapping->kept = kept_new(event);
	mapping->physical = physical;
	tree_insert(&keep.mappings, &mapping->node, given->address);
	if (!physical)
		return;
	mapping->next = physical->mappings;
	physical->mappings = mapping;
	learn_size(physical, event);
}

static void apply_unmap(const struct keep_event *event)
{
	const struct vt_rec_unmap *given = keep_record(event, unmap);

	if (given->result)
		refused_space(given->api_id, given->stack_id, given->result, VT_DEVICE_UNKNOWN,
			given->bytes, given->time_ns);
	else
		unmap_range(given->address, given->bytes, event->time_ns);
}

static struct keep_reservation *reservation_at(uint64_t address)
{
	struct tree_node *node = tree_find(&keep.reservations, address);

	return node ? keep_container(node, struct keep_reservation, node) : NULL;
}

static void reservation_remove(struct keep_reservation *reservation)
{
	if (!reservation)
		return;
	tree_remove(&keep.reservations, &reservation->node);
	kept_free(reservation->kept);
	keep_free(reservation, sizeof(*reservation));
}

static void apply_reserve(const struct keep_event *event)
{
	const struct vt_rec_reserve *given = keep_record(event, reserve);
	struct keep_reservation *reservation;

	if (given->result) {
		refused_space(given->api_id, given->stack_id, given->result, VT_DEVICE_UNKNOWN,
			given->bytes, given->time_ns);
		return;
	}
	reservation_remove(reservation_at(given->address));
	reservation = keep_alloc(sizeof(*reservation));
	if (!reservation)
		return;
	reservation->kept = kept_new(event);
	tree_insert(&keep.reservations, &reservation->node, given->address);
}

static void apply_unreserve(const struct keep_event *event)
{
	const struct vt_rec_unreserve *given = keep_record(event, unreserve);
	struct keep_reservation *reservation = reservation_at(given->address);

	if (given->result)
		refused_space(given->api_id, 0, given->result, VT_DEVICE_UNKNOWN, given->bytes,
			given->time_ns);
	else if (reservation && reservation->kept && reservation->kept->time_ns <= event->time_ns)
		reservation_remove(reservation);
}

static void apply_access(const struct keep_event *event)
{
	const struct vt_rec_access *given = keep_record(event, access);
	const struct keep_device *device;

	if (!given->result)
		return;
	device = keep_device_of(given->device);
	refused_space(given->api_id, 0, given->result,
		given->device < 0 ? VT_DEVICE_HOST
		: device	  ? device->ordinal
				  : VT_DEVICE_UNKNOWN,
		given->bytes, given->time_ns);
}

void space_keep(const struct keep_event *event)
{
	switch (event->kind) {
	case VT_REC_reserve:
		apply_reserve(event);
		break;
	case VT_REC_unreserve:
		apply_unreserve(event);
		break;
	case VT_REC_handle_create:
		apply_create(event);
		break;
	case VT_REC_handle_release:
		apply_release(event);
		break;
	case VT_REC_handle_retain:
		apply_retain(event);
		break;
	case VT_REC_map:
		apply_map(event);
		break;
	case VT_REC_unmap:
		apply_unmap(event);
		break;
	default:
		apply_access(event);
		break;
	}
}

/* References: those beyond the first that come with the memory, and other handles of it. */
static void put_references(const struct keep_physical *physical, uint64_t first)
{
	const struct keep_mapping *mapping = physical->mappings;
	uint64_t made_ns = physical->create->time_ns;
	uint64_t mapped_ns = mapping && mapping->kept ? mapping->kept->time_ns : made_ns;

	for (const struct keep_handle *handle = physical->handles; handle; handle = handle->next) {
		bool is_first = handle->handle == first;
		struct vt_rec_handle_retain retain = {
			.time_ns = is_first ? made_ns : mapped_ns,
			.handle = handle->handle,
			.address = mapping ? mapping->node.key : 0,
		};

		for (uint64_t i = is_first; i < handle->n_refs; i++)
			checkpoint_put_new(&(struct keep_event){VT_REC_handle_retain,
				physical->create->tid, retain.time_ns, &retain});
	}
}

static void put_physical(const struct keep_physical *physical)
{
	struct vt_rec_handle_create create = *kept_as(physical->create, handle_create);
	struct keep_event event = {
		VT_REC_handle_create, physical->create->tid, physical->create->time_ns, &create};

	if (physical->handles)
		create.handle = physical->handles->handle;
	checkpoint_put_new(&event);
	for (const struct keep_mapping *mapping = physical->mappings; mapping;
		mapping = mapping->next) {
		if (!mapping->kept)
			continue;
		kept_as(mapping->kept, map)->handle = create.handle;
		checkpoint_put(mapping->kept);
	}
	put_references(physical, create.handle);
	if (!physical->handles) {
		struct vt_rec_handle_release release = {
			.time_ns = physical->released_ns, .handle = create.handle};

		checkpoint_put_new(&(struct keep_event){
			VT_REC_handle_release, physical->create->tid, release.time_ns, &release});
	}
}

void space_checkpoint(void)
{
	struct tree_node *node;

	for (node = tree_ceiling(&keep.reservations, 0); node;
		node = tree_next(&keep.reservations, node))
		checkpoint_put(keep_container(node, struct keep_reservation, node)->kept);
	for (const struct keep_physical *physical = all; physical; physical = physical->next)
		if (physical->create)
			put_physical(physical);
	/* Of memory that was not seen made. */
	for (node = tree_ceiling(&keep.mappings, 0); node; node = tree_next(&keep.mappings, node))
		if (!mapping_from(node)->physical)
			checkpoint_put(mapping_from(node)->kept);
}

void space_forget(void)
{
	handles = NULL;
	all = NULL;
}
