#include "analysis/whatif_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/order.h"
#include "analysis/whatif_parts.h"
#include "model/hash.h"
#include "model/memory.h"

#define MAX_FRAMES 200u

enum action {
	ALLOC,
	FREE_REQUESTED,
	FREE_COMPLETED,
	SEGMENT_ALLOC,
	SEGMENT_FREE,
	SEGMENT_MAP,
	SEGMENT_UNMAP,
	OOM,
	OTHER,
};

/* A block that is live, or pending. */
struct live {
	uint64_t address;
	uint32_t block;
	bool pending;
	UT_hash_handle hh;
};

/* A segment, or what was mapped so far of an expandable one. */
struct region {
	struct tree_node node; /* by address */
	uint64_t bytes, mapped_bytes;
	uint64_t pool;
	bool is_range;
};

struct history {
	struct whatif_built *built;
	const struct pickle_value *snapshot, *entries;
	size_t n_entries;
	size_t steps_room, answers_room;
	struct live *live;
	struct tree regions;
	/* Where segments and ranges began, at any time. */
	struct place {
		uint64_t address;
		bool is_range;
	} * places;
	size_t n_places, places_room;
	uint64_t reserved_bytes;
	uint64_t refused_bytes; /* the driver would not have given so much; UINT64_MAX: not known */
	uint32_t *late;		/* blocks that became ready in the course of a request */
	size_t n_late, late_room;
	uint64_t pools[64][2];
	size_t n_pools;
};

static const struct pickle_value *entry_at(const struct history *history, size_t i)
{
	return pickle_item(history->entries, i);
}

static uint64_t number(const struct pickle_value *entry, const char *key)
{
	return (uint64_t)pickle_integer(pickle_get(entry, key), 0);
}

static enum action action_of(const struct pickle_value *entry)
{
	static const char *const names[] = {
		[ALLOC] = "alloc",
		[FREE_REQUESTED] = "free_requested",
		[FREE_COMPLETED] = "free_completed",
		[SEGMENT_ALLOC] = "segment_alloc",
		[SEGMENT_FREE] = "segment_free",
		[SEGMENT_MAP] = "segment_map",
		[SEGMENT_UNMAP] = "segment_unmap",
		[OOM] = "oom",
	};
	const struct pickle_value *action = pickle_get(entry, "action");

	for (size_t i = 0; i < OTHER; i++)
		if (pickle_is_text(action, names[i]))
			return (enum action)i;
	return OTHER;
}

static struct whatif_step *add_step(struct history *history, enum whatif_kind kind, size_t entry)
{
	struct whatif_built *built = history->built;
	size_t *n = &built->recording.n_steps;
	uint64_t begin_us = number(entry_at(history, 0), "time_us");

	built->steps = memory_grow(built->steps, *n, &history->steps_room, sizeof(*built->steps));
	built->steps[*n] = (struct whatif_step){
		.kind = kind,
		.stack_id = entry + 1,
		.time_ns = (number(entry_at(history, entry), "time_us") - begin_us) * 1000,
	};
	return &built->steps[(*n)++];
}

static void add_answer(
	struct history *history, enum allocator_request request, uint64_t bytes, uint64_t address)
{
	struct whatif_built *built = history->built;
	size_t *n = &built->recording.n_answers;

	built->answers =
		memory_grow(built->answers, *n, &history->answers_room, sizeof(*built->answers));
	built->answers[(*n)++] = (struct whatif_answer){request, bytes, address};
}

/* The driver refused so much more than there was. */
static void add_refusal(struct history *history, uint64_t bytes)
{
	bool expandable = history->built->recording.settings.expandable;

	/* How much of it was to be mapped is not told. */
	add_answer(
		history, expandable ? ALLOCATOR_MAP : ALLOCATOR_SEGMENT, expandable ? 0 : bytes, 0);
	if (history->reserved_bytes + bytes < history->refused_bytes)
		history->refused_bytes = history->reserved_bytes + bytes;
}

static struct region *region_from(struct tree_node *node)
{
	return node ? (void *)((char *)node - offsetof(struct region, node)) : NULL;
}

/* The region that holds address, or ends there if it is a range. */
static struct region *find_region(const struct history *history, uint64_t address)
{
	struct region *region = region_from(tree_floor(&history->regions, address));

	if (!region || address - region->node.key > region->bytes)
		return NULL;
	return address - region->node.key < region->bytes || region->is_range ? region : NULL;
}

/* NULL: it lies over another one. */
static struct region *add_region(
	struct history *history, uint64_t address, uint64_t bytes, bool is_range)
{
	struct region *below = region_from(tree_floor(&history->regions, address));
	struct region *above = region_from(tree_ceiling(&history->regions, address));
	struct region *region;

	if ((below && address - below->node.key < below->bytes) ||
		(above && above->node.key - address < bytes)) {
		whatif_snapshot_refuse(
			history->built, WHATIF_OUTSIDE, "the history has segments that overlap");
		return NULL;
	}
	region = memory_new(1, sizeof(*region));
	tree_insert(&history->regions, &region->node, address);
	region->bytes = bytes;
	region->is_range = is_range;
	history->places = memory_grow(history->places, history->n_places, &history->places_room,
		sizeof(*history->places));
	history->places[history->n_places++] = (struct place){address, is_range};
	return region;
}

static void remove_region(struct history *history, struct region *region)
{
	tree_remove(&history->regions, &region->node);
	free(region);
}

static void count_reserved(struct history *history, uint64_t bytes)
{
	history->reserved_bytes += bytes;
	if (history->reserved_bytes > history->built->peak_reserved_bytes)
		history->built->peak_reserved_bytes = history->reserved_bytes;
}

/* 0: the ordinary ones. */
static uint64_t pool_number(struct history *history, const struct pickle_value *id)
{
	uint64_t first = (uint64_t)pickle_integer(pickle_item(id, 0), 0);
	uint64_t second = (uint64_t)pickle_integer(pickle_item(id, 1), 0);
	size_t i = 0;

	if (!first && !second)
		return 0;
	while (i < history->n_pools &&
		(history->pools[i][0] != first || history->pools[i][1] != second))
		i++;
	if (i == sizeof(history->pools) / sizeof(*history->pools))
		return i;
	history->pools[i][0] = first;
	history->pools[i][1] = second;
	history->n_pools += i == history->n_pools;
	return i + 1;
}

/* What the snapshot still has at this address tells of its pool, where the history does not. */
static uint64_t pool_of(struct history *history, const struct pickle_value *entry)
{
	const struct pickle_value *id = pickle_get(entry, "pool_id");
	const struct pickle_value *segments = pickle_get(history->snapshot, "segments");
	const struct pickle_value *segment;
	uint64_t address = number(entry, "addr");

	for (size_t i = 0; !id && (segment = pickle_item(segments, i)); i++)
		if (number(segment, "address") == address)
			id = pickle_get(segment, "segment_pool_id");
	return pool_number(history, id);
}

static void apply_segment(struct history *history, const struct pickle_value *entry)
{
	uint64_t address = number(entry, "addr"), bytes = number(entry, "size");

	struct region *region = add_region(history, address, bytes, false);

	if (!region)
		return;
	region->pool = pool_of(history, entry);
	add_answer(history, ALLOCATOR_SEGMENT, bytes, address);
	count_reserved(history, bytes);
}

static void apply_map(struct history *history, const struct pickle_value *entry)
{
	uint64_t address = number(entry, "addr"), bytes = number(entry, "size");
	struct region *region = find_region(history, address);

	if (!region || !region->is_range) {
		region = add_region(history, address, bytes, true);
		if (!region)
			return;
		region->pool = pool_of(history, entry);
		add_answer(history, ALLOCATOR_RANGE, bytes, address);
	}
	if (address + bytes - region->node.key > region->bytes)
		region->bytes = address + bytes - region->node.key;
	region->mapped_bytes += bytes;
	add_answer(history, ALLOCATOR_MAP, bytes, address);
	count_reserved(history, bytes);
}

static void apply_released(struct history *history, const struct pickle_value *entry)
{
	uint64_t address = number(entry, "addr"), bytes = number(entry, "size");
	struct region *region = find_region(history, address);

	if (!region || bytes > history->reserved_bytes ||
		(!region->is_range && address != region->node.key)) {
		whatif_snapshot_late(history->built);
		return;
	}
	history->reserved_bytes -= bytes;
	if (!region->is_range)
		history->built->n_device_frees++;
	else if (region->mapped_bytes > bytes)
		region->mapped_bytes -= bytes;
	else
		region->mapped_bytes = 0;
	if (!region->is_range || !region->mapped_bytes)
		remove_region(history, region);
}

static void apply_alloc(struct history *history, size_t i)
{
	const struct pickle_value *entry = entry_at(history, i);
	uint64_t address = number(entry, "addr");
	struct region *region = find_region(history, address);
	struct whatif_step *step;
	struct live *live;

	HASH_FIND(hh, history->live, &address, sizeof(address), live);
	if (!region || live) {
		whatif_snapshot_late(history->built);
		return;
	}
	step = add_step(history, WHATIF_GET, i);
	step->block = (uint32_t)history->built->recording.n_blocks++;
	step->bytes = step->likely_bytes = number(entry, "size");
	step->address = address;
	step->stream = number(entry, "stream");
	step->pool = pickle_get(entry, "pool_id") ? pool_of(history, entry) : region->pool;
	live = memory_new(1, sizeof(*live));
	live->address = address;
	live->block = step->block;
	HASH_ADD(hh, history->live, address, sizeof(live->address), live);
}

static void forget(struct history *history, struct live *live)
{
	HASH_DEL(history->live, live);
	free(live);
}

/* One entry or two: a block that no other stream uses is free at once. Returns how many. */
static size_t apply_free(struct history *history, size_t i)
{
	const struct pickle_value *next = entry_at(history, i + 1);
	uint64_t address = number(entry_at(history, i), "addr");
	bool at_once = action_of(next) == FREE_COMPLETED && number(next, "addr") == address;
	struct live *live;

	HASH_FIND(hh, history->live, &address, sizeof(address), live);
	if (!live || live->pending) {
		whatif_snapshot_late(history->built);
		return 1;
	}
	add_step(history, at_once ? WHATIF_PUT : WHATIF_PUT_PENDING, i)->block = live->block;
	live->pending = true;
	if (at_once)
		forget(history, live);
	return 1 + at_once;
}

static void flush_late(struct history *history, size_t i)
{
	for (size_t k = 0; k < history->n_late; k++)
		add_step(history, WHATIF_READY, i)->block = history->late[k];
	history->n_late = 0;
}

static void apply_ready(struct history *history, size_t i)
{
	uint64_t address = number(entry_at(history, i), "addr");
	struct live *live;

	HASH_FIND(hh, history->live, &address, sizeof(address), live);
	if (!live || !live->pending) {
		whatif_snapshot_late(history->built);
		return;
	}
	history->late = memory_grow(
		history->late, history->n_late, &history->late_room, sizeof(*history->late));
	history->late[history->n_late++] = live->block;
	forget(history, live);
}

static bool is_same_text(const struct pickle_value *a, const struct pickle_value *b)
{
	return a == b ||
	       (a && b && a->kind == PICKLE_TEXT && b->kind == PICKLE_TEXT &&
		       a->text_bytes == b->text_bytes && !memcmp(a->text, b->text, a->text_bytes));
}

/* Both are told, and are one call. */
static bool is_same_place(const struct pickle_value *a, const struct pickle_value *b)
{
	const struct pickle_value *x = pickle_get(a, "frames"), *y = pickle_get(b, "frames");
	size_t i;

	for (i = 0; i < MAX_FRAMES; i++) {
		const struct pickle_value *f = pickle_item(x, i), *g = pickle_item(y, i);

		if (!f && !g)
			break;
		if (!is_same_text(pickle_get(f, "name"), pickle_get(g, "name")) ||
			pickle_integer(pickle_get(f, "line"), -1) !=
				pickle_integer(pickle_get(g, "line"), -2))
			return false;
	}
	return i > 0;
}

/* Blocks that became ready, segments that were given back: on their own (empty_cache), or for a
 * request that comes next, whose history has the same call stack then. Returns how many entries. */
static size_t apply_release(struct history *history, size_t begin)
{
	uint64_t reserved_bytes = history->reserved_bytes;
	const struct pickle_value *freed = NULL, *next;
	enum action action;
	size_t i = begin;

	for (;; i++) {
		const struct pickle_value *entry = entry_at(history, i);

		action = action_of(entry);
		if (action == FREE_COMPLETED) {
			apply_ready(history, i);
		} else if (action == SEGMENT_FREE || action == SEGMENT_UNMAP) {
			apply_released(history, entry);
			freed = entry;
		} else {
			break;
		}
	}
	next = entry_at(history, i);
	if (freed && action == OOM)
		return i - begin;
	if (freed && (action == SEGMENT_ALLOC || action == SEGMENT_MAP) &&
		is_same_place(freed, next)) {
		uint64_t after_bytes = history->reserved_bytes;

		history->reserved_bytes = reserved_bytes;
		add_refusal(history, number(next, "size"));
		history->reserved_bytes = after_bytes;
		return i - begin;
	}
	if (freed)
		add_step(history, WHATIF_EMPTY_CACHE, begin);
	flush_late(history, begin);
	return i - begin;
}

/* Refused before what was free was given back, and after it. */
static void apply_oom(struct history *history, size_t i)
{
	const struct pickle_value *entry = entry_at(history, i);
	uint64_t bytes = number(entry, "size");
	struct whatif_step *step = add_step(history, WHATIF_REFUSED, i);

	step->bytes = step->likely_bytes = bytes;
	step->stream = number(entry, "stream");
	step->pool = pool_number(history, pickle_get(entry, "pool_id"));
	bytes = allocator_segment_bytes(&history->built->recording.settings, bytes);
	add_refusal(history, bytes);
	add_refusal(history, bytes);
}

/* So that no sum of what follows is more than 64 bits. */
static bool is_sane(const struct pickle_value *entry)
{
	return number(entry, "addr") < (uint64_t)1 << 62 && number(entry, "size") < (uint64_t)1
											    << 45;
}

static size_t apply(struct history *history, size_t i)
{
	const struct pickle_value *entry = entry_at(history, i);

	if (!is_sane(entry)) {
		whatif_snapshot_refuse(
			history->built, WHATIF_OUTSIDE, "the history has numbers that cannot be");
		return 1;
	}
	switch (action_of(entry)) {
	case ALLOC:
		apply_alloc(history, i);
		flush_late(history, i);
		return 1;
	case FREE_REQUESTED:
		return apply_free(history, i);
	case FREE_COMPLETED:
	case SEGMENT_FREE:
	case SEGMENT_UNMAP:
		return apply_release(history, i);
	case SEGMENT_ALLOC:
		apply_segment(history, entry);
		return 1;
	case SEGMENT_MAP:
		apply_map(history, entry);
		return 1;
	case OOM:
		apply_oom(history, i);
		flush_late(history, i);
		return 1;
	case OTHER:
		return 1;
	}
	return 1;
}

static int compare_places(const void *a, const void *b)
{
	return order_of(((const struct place *)a)->address, ((const struct place *)b)->address);
}

/* The device's size is not told. An expandable segment has addresses for a little more than that,
 * and not more than up to what was ever behind it. */
static uint64_t find_range_bytes(struct history *history)
{
	const struct place *places = history->places;
	uint64_t least = 0;

	if (history->n_places)
		qsort(history->places, history->n_places, sizeof(*places), compare_places);
	for (size_t i = 0, next = 0; i < history->n_places; i++) {
		while (next < history->n_places && places[next].address <= places[i].address)
			next++;
		if (places[i].is_range && next < history->n_places &&
			(!least || places[next].address - places[i].address < least))
			least = places[next].address - places[i].address;
	}
	return least;
}

/* The history leads to what the snapshot shows at its end. */
static void check_end(struct history *history)
{
	const struct pickle_value *segments = pickle_get(history->snapshot, "segments"), *segment;
	uint64_t bytes = 0;

	for (size_t i = 0; (segment = pickle_item(segments, i)); i++)
		if ((int)pickle_integer(pickle_get(segment, "device"), 0) == history->built->device)
			bytes += number(segment, "total_size");
	if (bytes != history->reserved_bytes)
		whatif_snapshot_late(history->built);
}

static void find_entries(struct history *history, int device)
{
	const struct pickle_value *traces = pickle_get(history->snapshot, "device_traces");
	const struct pickle_value *entries;

	for (size_t i = 0; (entries = pickle_item(traces, i)); i++) {
		if (device >= 0 && (size_t)device != i)
			continue;
		if (entries->kind != PICKLE_LIST || !entries->n_items)
			continue;
		history->entries = entries;
		history->n_entries = entries->n_items;
		history->built->device = (int)i;
		history->built->entries = entries;
		return;
	}
	whatif_snapshot_refuse(history->built, WHATIF_NO_BLOCKS,
		"the snapshot has no history (torch.cuda.memory._record_memory_history before the "
		"first tensor)");
}

static void release(struct history *history)
{
	struct live *live, *next;

	HASH_ITER(hh, history->live, live, next)
	{
		forget(history, live);
	}
	while (history->regions.root)
		remove_region(history, region_from(history->regions.root));
	free(history->late);
	free(history->places);
}

void whatif_snapshot_build(
	struct whatif_built *built, const struct pickle_value *snapshot, int device)
{
	struct history history = {
		.built = built, .snapshot = snapshot, .refused_bytes = UINT64_MAX};
	struct whatif_recording *recording = &built->recording;

	*built = (struct whatif_built){.device = device, .streams_known = true};
	recording->sizes_exact = true;
	find_entries(&history, device);
	if (!built->refusal)
		whatif_snapshot_settings(built, snapshot);
	for (size_t i = 0; i < history.n_entries && !built->refusal;)
		i += apply(&history, i);
	if (!built->refusal)
		check_end(&history);
	recording->range_bytes = find_range_bytes(&history);
	recording->steps = built->steps;
	recording->answers = built->answers;
	if (history.refused_bytes != UINT64_MAX)
		recording->driver_bytes = history.refused_bytes - 1;
	if (recording->driver_bytes && recording->driver_bytes < built->peak_reserved_bytes)
		recording->driver_bytes = built->peak_reserved_bytes;
	whatif_note_streams(built);
	release(&history);
}
