/* What the driver gave and refused, and which of it was PyTorch's. */
#include <stdlib.h>

#include "analysis/whatif_parts.h"
#include "model/memory.h"

static struct whatif_region *region_from(struct tree_node *node)
{
	return node ? (void *)((char *)node - offsetof(struct whatif_region, node)) : NULL;
}

static size_t add_entry(struct whatif_driver *driver, enum allocator_request request,
	uint64_t bytes, uint64_t address)
{
	driver->entries = memory_grow(
		driver->entries, driver->n_entries, &driver->room, sizeof(*driver->entries));
	driver->entries[driver->n_entries] =
		(struct whatif_entry){.answer = {request, bytes, address}, .range = SIZE_MAX};
	return driver->n_entries++;
}

static struct whatif_region *region_at(const struct whatif_driver *driver, uint64_t address)
{
	return region_from(tree_find(&driver->regions, address));
}

static void remove_region(struct whatif_driver *driver, struct whatif_region *region)
{
	tree_remove(&driver->regions, &region->node);
	free(region);
}

static void add_region(
	struct whatif_driver *driver, uint64_t address, uint64_t bytes, bool is_range)
{
	struct whatif_region *region = region_at(driver, address);

	if (region)
		remove_region(driver, region);
	region = memory_new(1, sizeof(*region));
	region->bytes = bytes;
	region->is_range = is_range;
	region->entry =
		add_entry(driver, is_range ? ALLOCATOR_RANGE : ALLOCATOR_SEGMENT, bytes, address);
	tree_insert(&driver->regions, &region->node, address);
}

struct whatif_region *whatif_driver_find(const struct whatif_driver *driver, uint64_t address)
{
	struct whatif_region *region = region_from(tree_floor(&driver->regions, address));

	return region && address - region->node.key < region->bytes ? region : NULL;
}

static void apply_refused(
	struct whatif_driver *driver, enum allocator_request request, uint64_t bytes, uint32_t tid)
{
	size_t entry = add_entry(driver, request, bytes, 0);

	if (request == ALLOCATOR_MAP && driver->last_range_tid == tid)
		driver->entries[entry].range = driver->last_range;
	if (driver->n_open < WHATIF_MAX_OPEN) {
		driver->open[driver->n_open].entry = entry;
		driver->open[driver->n_open++].tid = tid;
	}
}

static void apply_failure(
	struct whatif_driver *driver, const struct vt_rec_failure *given, uint32_t tid)
{
	if (given->result != VT_RESULT_OUT_OF_MEMORY || given->device != driver->device)
		return;
	if (given->kind == VT_KIND_LINEAR)
		apply_refused(driver, ALLOCATOR_SEGMENT, given->bytes, tid);
	else if (given->kind == VT_KIND_VMM)
		apply_refused(driver, ALLOCATOR_MAP, given->bytes, tid);
}

static void apply_map(struct whatif_driver *driver, const struct vt_rec_map *given, uint32_t tid)
{
	struct whatif_region *region = whatif_driver_find(driver, given->address);

	if (given->result) {
		apply_refused(driver, ALLOCATOR_MAP, given->bytes, tid);
	} else if (region && region->is_range) {
		size_t entry = add_entry(driver, ALLOCATOR_MAP, given->bytes, given->address);

		driver->entries[entry].range = region->entry;
		driver->last_range = region->entry;
		driver->last_range_tid = tid;
		region->n_maps++;
	}
}

static void apply_reserve(
	struct whatif_driver *driver, const struct vt_rec_reserve *given, uint32_t tid)
{
	if (given->result) {
		apply_refused(driver, ALLOCATOR_RANGE, given->bytes, tid);
		return;
	}
	driver->last_range = driver->n_entries;
	driver->last_range_tid = tid;
	add_region(driver, given->address, given->bytes, true);
}

static void apply_free(struct whatif_driver *driver, uint64_t address)
{
	struct whatif_region *region = region_at(driver, address);

	if (!region || region->is_range)
		return;
	driver->n_torch_frees += region->is_torch;
	driver->n_segment_frees += region->is_torch;
	remove_region(driver, region);
}

void whatif_driver_observe(struct whatif_driver *driver, const struct vt_record *record)
{
	struct whatif_region *region;

	switch (record->kind) {
	case VT_REC_alloc:
		if (record->alloc.kind == VT_KIND_LINEAR && record->alloc.device == driver->device)
			add_region(driver, record->alloc.address, record->alloc.bytes, false);
		break;
	case VT_REC_free:
		if (!record->free.result)
			apply_free(driver, record->free.address);
		break;
	case VT_REC_failure:
		apply_failure(driver, &record->failure, record->tid);
		break;
	case VT_REC_reserve:
		apply_reserve(driver, &record->reserve, record->tid);
		break;
	case VT_REC_unreserve:
		region = region_at(driver, record->unreserve.address);
		if (region && region->is_range && !record->unreserve.result)
			remove_region(driver, region);
		break;
	case VT_REC_map:
		apply_map(driver, &record->map, record->tid);
		break;
	case VT_REC_unmap:
		region = whatif_driver_find(driver, record->unmap.address);
		driver->n_torch_frees += region && region->is_torch && !record->unmap.result;
		break;
	default:
		break;
	}
}

bool whatif_driver_use(struct whatif_driver *driver, struct whatif_region *region)
{
	bool is_new = region->is_range ? region->n_maps != region->n_known : !region->is_torch;

	region->is_torch = driver->entries[region->entry].is_torch = true;
	region->n_known = region->n_maps;
	return is_new;
}

void whatif_driver_settle(struct whatif_driver *driver, uint32_t tid, bool is_torch)
{
	size_t n = 0;

	for (size_t i = 0; i < driver->n_open; i++) {
		struct whatif_entry *entry = &driver->entries[driver->open[i].entry];

		if (driver->open[i].tid != tid) {
			driver->open[n++] = driver->open[i];
			continue;
		}
		entry->is_torch = is_torch;
		if (is_torch && entry->range != SIZE_MAX)
			driver->entries[entry->range].is_torch = true;
	}
	driver->n_open = n;
}

struct whatif_answer *whatif_driver_answers(const struct whatif_driver *driver, size_t *n)
{
	struct whatif_answer *answers = memory_new(driver->n_entries + 1, sizeof(*answers));

	*n = 0;
	for (size_t i = 0; i < driver->n_entries; i++) {
		const struct whatif_entry *entry = &driver->entries[i];

		if (entry->is_torch ||
			(entry->range != SIZE_MAX && driver->entries[entry->range].is_torch))
			answers[(*n)++] = entry->answer;
	}
	return answers;
}

void whatif_driver_release(struct whatif_driver *driver)
{
	struct whatif_region *region;

	while ((region = region_from(tree_ceiling(&driver->regions, 0))))
		remove_region(driver, region);
	free(driver->entries);
	*driver = (struct whatif_driver){0};
}
