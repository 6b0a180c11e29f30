#include "analysis/address_map.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/layout.h"
#include "analysis/order.h"
#include "model/memory.h"

struct mapper {
	struct address_map *map;
	const struct model *model;
	const struct roster *roster;
	int device;
};

static uint64_t rounded_up(uint64_t bytes, uint64_t unit)
{
	return (bytes / unit + !!(bytes % unit)) * unit;
}

static bool is_wanted(const struct mapper *mapper, const struct model_device *device, uint32_t kind)
{
	return model_kind_tracked(kind) && device->ordinal != MODEL_DEVICE_HOST &&
	       (mapper->device == MODEL_DEVICE_HOST || device->ordinal == mapper->device) &&
	       roster_device_of(mapper->roster, device->ordinal) != ROSTER_NONE;
}

static struct address_place *add_place(struct mapper *mapper, const struct address_place *place)
{
	struct address_map *map = mapper->map;

	map->places =
		memory_grow(map->places, map->n_places, &map->places_room, sizeof(*map->places));
	map->places[map->n_places] = *place;
	map->places[map->n_places].first_range = map->n_ranges;
	return &map->places[map->n_places++];
}

/* At the end of the last place. */
static void add_range(struct mapper *mapper, uint64_t address, uint64_t bytes,
	enum address_state state, const struct model_site *site, uint64_t time_ns)
{
	struct address_map *map = mapper->map;
	struct address_place *place = &map->places[map->n_places - 1];
	bool is_live = state == ADDRESS_LIVE;

	if (!bytes)
		return;
	map->ranges =
		memory_grow(map->ranges, map->n_ranges, &map->ranges_room, sizeof(*map->ranges));
	map->ranges[map->n_ranges++] = (struct address_range){
		.address = address,
		.bytes = bytes,
		.state = state,
		.live_bytes = is_live ? bytes : 0,
		.n_live = is_live,
		.row = site ? roster_row_of(mapper->roster, site) : ROSTER_NONE,
		.largest_bytes = is_live ? bytes : 0,
		.time_ns = time_ns,
	};
	place->n_ranges++;
	*(is_live			? &place->live_bytes
		: state == ADDRESS_FREE ? &place->free_bytes
					: &place->pending_bytes) += bytes;
}

static void add_segment(struct mapper *mapper, const struct layout *layout,
	const struct layout_segment *segment, uint64_t allocator_id)
{
	static const enum address_state states[] = {
		[LAYOUT_ACTIVE] = ADDRESS_LIVE,
		[LAYOUT_PENDING] = ADDRESS_PENDING,
		[LAYOUT_INACTIVE] = ADDRESS_FREE,
	};

	add_place(mapper,
		&(struct address_place){
			.kind = ADDRESS_SEGMENT,
			.memory_kind = segment->kind,
			.address = segment->address,
			.bytes = segment->bytes,
			.device = roster_device_of(mapper->roster, segment->device->ordinal),
			.allocator_id = allocator_id,
			.is_expandable = segment->mapped,
			.is_captured = segment->captured,
		});
	for (size_t i = 0; i < segment->n_ranges; i++) {
		const struct layout_range *range = &layout->ranges[segment->first_range + i];

		add_range(mapper, range->address, range->bytes, states[range->state],
			range->piece ? range->piece->site : NULL,
			range->piece ? range->piece->time_ns : 0);
	}
}

static void add_segments(struct mapper *mapper)
{
	struct layout layout;

	for (const struct model_allocator *allocator = mapper->model->allocators; allocator;
		allocator = allocator->hh.next) {
		layout_make(&layout, mapper->model, allocator);
		for (size_t i = 0; i < layout.n_segments; i++)
			if (is_wanted(mapper, layout.segments[i].device, layout.segments[i].kind))
				add_segment(mapper, &layout, &layout.segments[i],
					allocator->allocator_id);
		layout_release(&layout);
	}
}

/* The rest of the page that the last place is, behind its last block. */
static void close_page(struct mapper *mapper, uint64_t at)
{
	const struct address_map *map = mapper->map;
	const struct address_place *place = map->n_places ? &map->places[map->n_places - 1] : NULL;

	if (place && place->kind == ADDRESS_PAGE && at < place->address + place->bytes)
		add_range(mapper, at, place->address + place->bytes - at, ADDRESS_FREE, NULL, 0);
}

static void open_page(struct mapper *mapper, const struct model_block *block)
{
	uint64_t page = block->device->page_bytes;

	add_place(
		mapper, &(struct address_place){
				.kind = ADDRESS_PAGE,
				.memory_kind = block->kind,
				.address = block->node.key / page * page,
				.bytes = page,
				.device = roster_device_of(mapper->roster, block->device->ordinal),
			});
}

/* Blocks that share pages come in the order of addresses. */
static void add_small_blocks(struct mapper *mapper)
{
	uint64_t at = 0, page_end = 0;

	for (const struct tree_node *node = tree_ceiling(&mapper->model->live, 0); node;
		node = tree_next(&mapper->model->live, node)) {
		const struct model_block *block = model_block_of(node);
		uint64_t bytes = rounded_up(block->bytes, MODEL_UNIT_BYTES), address = node->key;

		if (block->segment || block->kind != VT_KIND_LINEAR ||
			block->bytes > MODEL_SMALL_BYTES ||
			!is_wanted(mapper, block->device, block->kind))
			continue;
		if (address >= page_end) {
			close_page(mapper, at);
			open_page(mapper, block);
			at = mapper->map->places[mapper->map->n_places - 1].address;
			page_end = at + block->device->page_bytes;
		}
		if (address > at)
			add_range(mapper, at, address - at, ADDRESS_FREE, NULL, 0);
		add_range(mapper, address, bytes, ADDRESS_LIVE, block->site, block->time_ns);
		at = address + bytes;
	}
	close_page(mapper, at);
}

static void add_large_blocks(struct mapper *mapper)
{
	for (const struct tree_node *node = tree_ceiling(&mapper->model->live, 0); node;
		node = tree_next(&mapper->model->live, node)) {
		const struct model_block *block = model_block_of(node);
		bool is_linear = block->kind == VT_KIND_LINEAR;
		uint64_t bytes = is_linear ? rounded_up(block->bytes, block->device->page_bytes)
					   : block->bytes;

		if (block->segment || (is_linear && block->bytes <= MODEL_SMALL_BYTES) ||
			!is_wanted(mapper, block->device, block->kind))
			continue;
		add_place(mapper,
			&(struct address_place){
				.kind = ADDRESS_ALLOCATION,
				.memory_kind = block->kind,
				.address = node->key,
				.bytes = bytes,
				.device = roster_device_of(mapper->roster, block->device->ordinal),
			});
		add_range(
			mapper, node->key, block->bytes, ADDRESS_LIVE, block->site, block->time_ns);
		add_range(mapper, node->key + block->bytes, bytes - block->bytes, ADDRESS_FREE,
			NULL, 0);
	}
}

static void add_mappings(struct mapper *mapper)
{
	for (const struct tree_node *node = tree_ceiling(&mapper->model->mappings, 0); node;
		node = tree_next(&mapper->model->mappings, node)) {
		const struct model_mapping *mapping =
			(const struct model_mapping *)(const void *)node;
		const struct model_block *block =
			mapping->physical ? &mapping->physical->block : NULL;

		if (mapping->segment || !block || !is_wanted(mapper, block->device, block->kind))
			continue;
		add_place(mapper,
			&(struct address_place){
				.kind = ADDRESS_MAPPING,
				.memory_kind = block->kind,
				.address = node->key,
				.bytes = mapping->bytes,
				.device = roster_device_of(mapper->roster, block->device->ordinal),
			});
		add_range(mapper, node->key, mapping->bytes, ADDRESS_LIVE, block->site,
			block->time_ns);
	}
}

_Static_assert(offsetof(struct model_mapping, node) == 0, "a mapping is where its node is");

static void join(struct address_range *range, const struct address_range *next)
{
	if (next->largest_bytes > range->largest_bytes) {
		range->largest_bytes = next->largest_bytes;
		range->row = next->row;
	}
	if (!range->n_live || (next->n_live && next->time_ns < range->time_ns))
		range->time_ns = next->time_ns;
	if (range->state != next->state)
		range->state = ADDRESS_MIXED;
	range->bytes += next->bytes;
	range->live_bytes += next->live_bytes;
	range->n_live += next->n_live;
}

/* Puts neighbours together that are small. */
static void coarsen(struct address_map *map)
{
	size_t kept = 0;

	map->grain_bytes = map->grain_bytes ? 2 * map->grain_bytes : MODEL_UNIT_BYTES;
	for (size_t i = 0; i < map->n_places; i++) {
		struct address_place *place = &map->places[i];
		size_t first = kept;

		for (size_t k = place->first_range; k < place->first_range + place->n_ranges; k++) {
			const struct address_range *range = &map->ranges[k];

			if (kept > first && range->bytes < map->grain_bytes &&
				map->ranges[kept - 1].bytes < map->grain_bytes)
				join(&map->ranges[kept - 1], range);
			else
				map->ranges[kept++] = *range;
		}
		place->first_range = first;
		place->n_ranges = kept - first;
	}
	map->n_ranges = kept;
}

static int compare_sizes(const void *a, const void *b)
{
	const struct address_place *x = a, *y = b;
	int order = order_of(y->bytes, x->bytes);

	return order ? order : order_of(x->address, y->address);
}

static int compare_places(const void *a, const void *b)
{
	const struct address_place *x = a, *y = b;
	int order = order_of(x->device, y->device);

	if (!order)
		order = (x->kind > y->kind) - (x->kind < y->kind);
	return order ? order : order_of(x->address, y->address);
}

static void leave_out(struct address_map *map)
{
	size_t n_ranges = 0;
	struct address_range *ranges;

	if (map->n_places <= ADDRESS_MAP_PLACES)
		return;
	qsort(map->places, map->n_places, sizeof(*map->places), compare_sizes);
	for (size_t i = ADDRESS_MAP_PLACES; i < map->n_places; i++) {
		map->n_left_out++;
		map->left_out_bytes += map->places[i].bytes;
	}
	map->n_places = ADDRESS_MAP_PLACES;
	ranges = memory_new(map->n_ranges, sizeof(*ranges));
	for (size_t i = 0; i < map->n_places; i++) {
		struct address_place *place = &map->places[i];

		memcpy(&ranges[n_ranges], &map->ranges[place->first_range],
			place->n_ranges * sizeof(*ranges));
		place->first_range = n_ranges;
		n_ranges += place->n_ranges;
	}
	free(map->ranges);
	map->ranges = ranges;
	map->ranges_room = map->n_ranges;
	map->n_ranges = n_ranges;
}

void address_map_make(
	struct address_map *map, const struct model *model, const struct roster *roster, int device)
{
	struct mapper mapper = {map, model, roster, device};

	*map = (struct address_map){0};
	add_segments(&mapper);
	add_small_blocks(&mapper);
	add_large_blocks(&mapper);
	add_mappings(&mapper);
	leave_out(map);
	while (map->n_ranges > ADDRESS_MAP_RANGES && map->n_ranges > 2 * map->n_places &&
		map->grain_bytes < UINT64_MAX / 2)
		coarsen(map);
	if (map->n_places)
		qsort(map->places, map->n_places, sizeof(*map->places), compare_places);
}

void address_map_release(struct address_map *map)
{
	free(map->places);
	free(map->ranges);
	*map = (struct address_map){0};
}
