/*
 * What lies where in a device's memory, as far as addresses tell: segments of allocators with their
 * blocks and holes, pages of the driver that small allocations share, allocations of their own, and
 * physical memory that was mapped. Arrays have no address.
 */
#ifndef VRAMTRACE_ANALYSIS_ADDRESS_MAP_H
#define VRAMTRACE_ANALYSIS_ADDRESS_MAP_H

#include "analysis/roster.h"

/* More than this is put together, or left out. */
#define ADDRESS_MAP_RANGES 4000u
#define ADDRESS_MAP_PLACES 1500u

enum address_state {
	ADDRESS_LIVE,
	ADDRESS_PENDING, /* given back, waits for a stream */
	ADDRESS_FREE,	 /* a hole */
	ADDRESS_MIXED,	 /* small ranges put together */
};

struct address_range {
	uint64_t address;
	uint64_t bytes;
	enum address_state state;
	uint64_t live_bytes; /* of them */
	uint64_t n_live;     /* blocks */
	uint32_t row;	     /* of the roster: of the largest block; ROSTER_NONE: not known */
	uint64_t largest_bytes;
	uint64_t time_ns; /* when the oldest block came */
};

enum address_place_kind {
	ADDRESS_SEGMENT,
	ADDRESS_PAGE,
	ADDRESS_ALLOCATION,
	ADDRESS_MAPPING,
};

struct address_place {
	enum address_place_kind kind;
	uint32_t memory_kind; /* enum vt_kind */
	uint64_t address;
	uint64_t bytes;
	uint32_t device;       /* index in the roster's devices */
	uint64_t allocator_id; /* of a segment */
	bool is_expandable, is_captured;
	uint64_t live_bytes;
	uint64_t pending_bytes;
	uint64_t free_bytes; /* beside live blocks of a segment or page: pinned by them */
	size_t first_range, n_ranges;
};

/* All zero is empty; release it with address_map_release. */
struct address_map {
	struct address_place *places; /* by kind and address */
	size_t n_places, places_room;
	struct address_range *ranges;
	size_t n_ranges, ranges_room;
	uint64_t grain_bytes; /* ranges smaller than this were put together; 0: none */
	size_t n_left_out;    /* places, the smallest */
	uint64_t left_out_bytes;
};

/* The map of model as it is now; device: ordinal, or MODEL_DEVICE_HOST for all devices. */
void address_map_make(struct address_map *map, const struct model *model,
	const struct roster *roster, int device);

void address_map_release(struct address_map *map);

#endif
