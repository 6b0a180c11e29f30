/* Why a request could not be served, and what would have been enough. */
#include <stdlib.h>

#include "analysis/oom_parts.h"
#include "analysis/order.h"
#include "model/memory.h"

/* Where NVML could not be asked, contexts and the driver's own reserve are among what others are
 * taken to use: only what exceeds them is others' for sure. */
#define GUESS_EXCESS_BYTES (UINT64_C(2) << 30)

/* Small blocks give pages back only together with their neighbours. */
#define MAX_SITES 3u

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Idle and waiting bytes of the device, by what it takes to get at them. */
struct parts {
	const struct fragmentation_row *own; /* of the allocator that was asked; NULL: the driver */
	uint64_t other_idle_bytes;	     /* of other allocators, could be given back */
	uint64_t pending_bytes;
	uint64_t pieces_bytes; /* idle, but in the way of something live; or the own allocator's */
	uint64_t others_bytes; /* of other processes, for sure */
};

static bool is_own(const struct oom *oom, const struct model_device *device,
	const struct fragmentation_row *row)
{
	const struct episode *episode = &oom->episode;
	const struct model_pool *current =
		device->current_pool ? device->current_pool : device->default_pool;

	if (row->level == FRAGMENTATION_FRAMEWORK)
		return row->allocator_id == episode->allocator_id;
	if (row->level != FRAGMENTATION_POOL || episode->kind != VT_KIND_POOL || row->graphs)
		return row->graphs && episode->want == EPISODE_GRAPH;
	return episode->pool ? row->pool == episode->pool
			     : current && row->pool == current->key.handle;
}

static void add_up(struct parts *parts, const struct oom *oom, const struct model_device *device)
{
	*parts = (struct parts){.others_bytes = oom->others_bytes};
	if (!oom->others_known)
		parts->others_bytes = less(parts->others_bytes, GUESS_EXCESS_BYTES);
	for (size_t i = 0; i < oom->levels.n_rows; i++) {
		const struct fragmentation_row *row = &oom->levels.rows[i];

		parts->pending_bytes += row->pending_bytes;
		if (is_own(oom, device, row)) {
			parts->own = row;
			parts->pieces_bytes += row->idle_bytes;
		} else {
			parts->other_idle_bytes += row->returnable_bytes;
			parts->pieces_bytes += row->pinned_bytes;
		}
	}
}

/* What was asked of the allocator, in its own terms. */
static uint64_t asked_bytes(const struct oom *oom)
{
	return oom->episode.reported ? oom->episode.report_bytes : oom->episode.bytes;
}

/* A piece of what the allocator has free is large enough, and it was given no chance: it came free
 * while the call was under way, and only the driver was asked again. */
static bool came_free_too_late(const struct oom *oom, const struct parts *parts)
{
	return parts->own && parts->own->holes_known && oom->episode.reported &&
	       oom->episode.waits_ended && parts->own->largest_free_bytes >= asked_bytes(oom);
}

/* Under a cap the driver's free memory does not count, and the allocator has what it has: idle
 * bytes, bytes that wait, and what is left up to the cap. */
static enum oom_class class_under_cap(struct oom *oom, const struct parts *parts)
{
	const struct fragmentation_row *own = parts->own;
	uint64_t asked = asked_bytes(oom), room_bytes;

	if (!own)
		return OOM_LIMIT;
	room_bytes = less(own->most_bytes, own->reserved_bytes) + own->idle_bytes;
	if (room_bytes >= asked)
		return OOM_FRAGMENTATION;
	if (room_bytes + own->pending_bytes >= asked)
		return OOM_PENDING;
	oom->limit_bytes = own->most_bytes;
	return OOM_LIMIT;
}

/* On a full device the driver still says that a little is free, which it does not give out: 3.3 MB
 * of an H200 that was filled with blocks of 1 MiB. */
#define NEVER_GIVEN_BYTES (4u << 20)

static uint64_t free_to_give(const struct oom *oom)
{
	return oom->free_bytes <= NEVER_GIVEN_BYTES ? 0 : oom->free_bytes;
}

/* An allocator refused without asking the driver, or a pool has reached the most that it was made
 * with, and the driver had room. */
static bool is_capped(const struct oom *oom, const struct fragmentation_row *own)
{
	if (oom->free_known && free_to_give(oom) < oom->need_bytes)
		return false;
	if (oom->episode.reported && !oom->episode.n_calls)
		return true;
	return own && own->level == FRAGMENTATION_POOL && own->most_bytes &&
	       oom->need_bytes > less(own->most_bytes, own->reserved_bytes);
}

/* The driver was short of `short_bytes`: who has them. */
static enum oom_class class_of_shortage(
	const struct oom *oom, const struct parts *parts, uint64_t short_bytes)
{
	bool framework = parts->own && parts->own->level == FRAGMENTATION_FRAMEWORK;
	uint64_t asked = asked_bytes(oom);
	const struct {
		enum oom_class class;
		uint64_t bytes;
		uint64_t own_bytes; /* of the framework's allocator that was asked: it needs no
				       whole segment for the request */
	} blames[] = {
		{OOM_OTHER_PROCESS, parts->others_bytes, 0},
		{OOM_OTHER_ALLOCATOR, parts->other_idle_bytes, 0},
		{OOM_PENDING, parts->pending_bytes, framework ? parts->own->pending_bytes : 0},
		{OOM_FRAGMENTATION, parts->pieces_bytes, framework ? parts->own->idle_bytes : 0},
	};
	uint64_t sum = 0, most = 0;
	enum oom_class class = OOM_EXHAUSTED;

	for (size_t i = 0; i < sizeof(blames) / sizeof(*blames); i++)
		if (blames[i].bytes >= short_bytes ||
			(blames[i].own_bytes && blames[i].own_bytes >= asked))
			return blames[i].class;
	/* None alone, but all of this process's together. */
	for (size_t i = 1; i < sizeof(blames) / sizeof(*blames); i++) {
		sum += blames[i].bytes;
		if (blames[i].bytes > most) {
			most = blames[i].bytes;
			class = blames[i].class;
		}
	}
	if (sum >= short_bytes)
		return class;
	/* Nobody knows whose it is: nothing says that live data fills the device. */
	if (oom->account.unexplained_bytes > 0 &&
		(uint64_t)oom->account.unexplained_bytes >= short_bytes)
		return OOM_UNEXPLAINED;
	return OOM_EXHAUSTED;
}

static enum oom_class decide(struct oom *oom, const struct parts *parts)
{
	const struct episode *episode = &oom->episode;

	/* Managed memory may exceed the device, and page-locked memory is the host's. */
	if (episode->want == EPISODE_HOST || episode->kind == VT_KIND_MANAGED)
		return OOM_UNEXPLAINED;
	if (episode->want != EPISODE_ADDRESS_SPACE && oom->total_bytes &&
		asked_bytes(oom) > oom->total_bytes)
		return OOM_IMPOSSIBLE;
	if (episode->want == EPISODE_ADDRESS_SPACE)
		return OOM_ADDRESS_SPACE;
	if (came_free_too_late(oom, parts))
		return OOM_PENDING;
	if (oom->capped)
		return class_under_cap(oom, parts);
	if (!oom->free_known || free_to_give(oom) >= oom->need_bytes)
		return OOM_UNEXPLAINED;
	return class_of_shortage(oom, parts, oom->need_bytes - free_to_give(oom));
}

static void add_remedy(struct oom *oom, struct oom_remedy remedy)
{
	oom->remedies = memory_grow(
		oom->remedies, oom->n_remedies, &oom->remedy_room, sizeof(*oom->remedies));
	oom->remedies[oom->n_remedies++] = remedy;
}

static enum oom_action action_of(const struct fragmentation_row *row)
{
	if (row->level == FRAGMENTATION_FRAMEWORK)
		return OOM_RELEASE_CACHE;
	return row->graphs ? OOM_TRIM_GRAPHS : OOM_TRIM_POOL;
}

/* What of one level would have been enough. */
static void add_remedies_of(struct oom *oom, const struct parts *parts,
	const struct fragmentation_row *row, uint64_t short_bytes)
{
	uint64_t pieces_bytes = row == parts->own ? row->idle_bytes : row->pinned_bytes;

	if (row == parts->own && row->level == FRAGMENTATION_FRAMEWORK &&
		short_bytes > asked_bytes(oom))
		short_bytes = asked_bytes(oom);

	if (row != parts->own && row->returnable_bytes >= short_bytes)
		add_remedy(oom,
			(struct oom_remedy){action_of(row), row->returnable_bytes, 0, row->pool});
	if (row->pending_bytes >= short_bytes)
		add_remedy(oom, (struct oom_remedy){
					OOM_WAIT_FOR_STREAMS, row->pending_bytes, 0, row->pool});
	if (row->n_pinners && pieces_bytes >= short_bytes)
		add_remedy(oom, (struct oom_remedy){OOM_MOVE_PINNING, pieces_bytes,
					row->pinners[0].stack_id, 0});
}

/* What freeing the blocks of one site would give to whoever asked: to the driver all that it has
 * from the driver, whole pages provided; to an allocator one block of its own. 0: nothing. */
static uint64_t given_by(
	const struct oom *oom, const struct parts *parts, const struct site_row *row)
{
	bool own_blocks = parts->own && parts->own->level == FRAGMENTATION_FRAMEWORK;
	uint64_t each_bytes = row->bytes / (row->count ? row->count : 1);

	if (row->level == SITE_BLOCK && own_blocks && row->allocator_id == parts->own->allocator_id)
		return each_bytes >= asked_bytes(oom) ? each_bytes : 0;
	if (row->level == SITE_DRIVER && each_bytes > MODEL_SMALL_BYTES)
		return row->bytes;
	return 0;
}

/* The smallest that would do: nobody frees more than has to be freed. */
static void add_sites(struct oom *oom, const struct parts *parts, uint64_t short_bytes)
{
	size_t n = 0;

	for (size_t i = oom->holders.n_rows; i > 0 && n < MAX_SITES; i--) {
		const struct site_row *row = &oom->holders.rows[i - 1];
		uint64_t bytes = given_by(oom, parts, row);

		if (!bytes || bytes < short_bytes)
			continue;
		add_remedy(oom, (struct oom_remedy){OOM_FREE_SITE, bytes, row->stack_id, 0});
		n++;
	}
}

static void add_remedies(struct oom *oom, const struct parts *parts)
{
	uint64_t short_bytes = less(oom->need_bytes, oom->free_bytes);

	if (oom->class == OOM_LIMIT) {
		add_remedy(
			oom, (struct oom_remedy){OOM_RAISE_LIMIT,
				     less(oom->need_bytes, parts->own ? parts->own->idle_bytes : 0),
				     0, parts->own ? parts->own->pool : 0});
		return;
	}
	if (came_free_too_late(oom, parts))
		add_remedy(
			oom, (struct oom_remedy){OOM_RETRY, parts->own->largest_free_bytes, 0, 0});
	if (oom->class == OOM_ADDRESS_SPACE) {
		add_remedy(
			oom, (struct oom_remedy){OOM_RELEASE_ADDRESSES,
				     less(oom->reserved_address_bytes, oom->mapped_bytes), 0, 0});
		return;
	}
	if (oom->class == OOM_IMPOSSIBLE || oom->class == OOM_UNEXPLAINED)
		return;
	if (oom->capped && parts->own)
		short_bytes = less(
			oom->need_bytes, less(parts->own->most_bytes, parts->own->reserved_bytes));
	for (size_t i = 0; i < oom->levels.n_rows; i++)
		if (!oom->capped || &oom->levels.rows[i] == parts->own)
			add_remedies_of(oom, parts, &oom->levels.rows[i], short_bytes);
	if (!oom->capped && parts->others_bytes >= short_bytes)
		add_remedy(oom, (struct oom_remedy){OOM_END_OTHERS, oom->others_bytes, 0, 0});
	add_sites(oom, parts, short_bytes);
}

void oom_classify(struct oom *oom, const struct model *model, const struct model_device *device)
{
	struct parts parts;

	(void)model;
	add_up(&parts, oom, device);
	oom->capped = oom->episode.want == EPISODE_MEMORY && is_capped(oom, parts.own);
	oom->class = decide(oom, &parts);
	add_remedies(oom, &parts);
}
