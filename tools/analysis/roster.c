#include "analysis/roster.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/order.h"
#include "model/memory.h"

static uint64_t less(uint64_t from, uint64_t part)
{
	return from > part ? from - part : 0;
}

uint64_t roster_site_bytes(const struct model_site *site)
{
	return less(site->live_bytes, site->segment_bytes);
}

uint64_t roster_site_count(const struct model_site *site)
{
	return less(site->n_live, site->n_segments);
}

uint64_t roster_idle_bytes(const struct model_holding *holding)
{
	return less(holding->segment_bytes, holding->live_bytes);
}

/* The last point lies beside the others. */
static uint64_t most_in(const struct curve *curve)
{
	uint64_t most = curve->n_points ? curve->last.most_bytes : 0;

	for (size_t i = 0; i + 1 < curve->n_points; i++)
		if (curve->points[i].most_bytes > most)
			most = curve->points[i].most_bytes;
	return most;
}

static uint64_t most_of(const struct history *history, const struct model_site *site)
{
	const struct history_site *known = history_site(history, site);
	uint64_t most = known ? most_in(&known->by_time) : 0;

	return most > site->past_peak_bytes ? most : site->past_peak_bytes;
}

static bool has_held(const struct model_device *device)
{
	for (size_t kind = 0; kind < VT_N_KINDS; kind++)
		if (device->kinds[kind].n_allocs)
			return true;
	return device->peak_tracked_bytes;
}

static void add_device(struct roster *roster, const struct model_device *device)
{
	if (has_held(device))
		roster->devices[roster->n_devices++] =
			(struct roster_device){.ordinal = device->ordinal};
}

static void make_devices(struct roster *roster, const struct model *model)
{
	roster->devices = memory_new(model->n_devices + 2, sizeof(*roster->devices));
	for (size_t i = 0; i < model->n_devices; i++)
		add_device(roster, model->devices[i]);
	add_device(roster, &model->unknown);
	add_device(roster, &model->host);
}

uint32_t roster_device_of(const struct roster *roster, int ordinal)
{
	for (size_t i = 0; i < roster->n_devices; i++)
		if (roster->devices[i].ordinal == ordinal)
			return (uint32_t)i;
	return ROSTER_NONE;
}

static void add_row(struct roster *roster, const struct roster_row *row)
{
	roster->rows =
		memory_grow(roster->rows, roster->n_rows, &roster->room, sizeof(*roster->rows));
	roster->rows[roster->n_rows] = *row;
	roster->rows[roster->n_rows].owner_slot = ROSTER_NONE;
	roster->rows[roster->n_rows].curve_slot = ROSTER_NONE;
	roster->n_rows++;
}

static bool is_tracked(int device, uint32_t kind)
{
	return device != MODEL_DEVICE_HOST && model_kind_tracked(kind);
}

/* A site that may get a row. */
struct candidate {
	const struct model_site *site;
	uint64_t most_bytes;
};

static int compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int order = order_of(y->most_bytes, x->most_bytes);

	return order ? order : order_of(x->site->index, y->site->index);
}

static void add_sites(struct roster *roster, const struct model *model,
	const struct history *history, const struct owner_source *owners, size_t limit)
{
	struct candidate *candidates = memory_new(HASH_COUNT(model->sites), sizeof(*candidates));
	size_t n = 0;

	for (const struct model_site *site = model->sites; site; site = site->hh.next)
		candidates[n++] = (struct candidate){site, most_of(history, site)};
	if (n)
		qsort(candidates, n, sizeof(*candidates), compare);
	roster->n_sites = n;
	roster->by_site = memory_new(n, sizeof(*roster->by_site));
	for (size_t i = 0; i < n; i++) {
		const struct model_site *site = candidates[i].site;
		uint32_t device = roster_device_of(roster, site->key.device);

		if (site->index >= n || i >= limit || device == ROSTER_NONE) {
			roster->n_left_out++;
			if (site->index < n)
				roster->by_site[site->index] = ROSTER_NONE;
			continue;
		}
		roster->by_site[site->index] = (uint32_t)roster->n_rows;
		add_row(roster,
			&(struct roster_row){
				.key = site->key,
				.level = site->key.allocator_id ? SITE_BLOCK : SITE_DRIVER,
				.tracked = is_tracked(site->key.device, site->key.kind),
				.owner = owners->label(owners->user, model, site->key.stack_id),
				.most_bytes = candidates[i].most_bytes,
				.device = device,
			});
	}
	free(candidates);
}

static void add_idle(
	struct roster *roster, const struct model *model, const struct history *history)
{
	roster->first_idle = roster->n_rows;
	for (const struct model_allocator *allocator = model->allocators; allocator;
		allocator = allocator->hh.next)
		for (size_t i = 0; i < allocator->n_holdings; i++) {
			const struct model_holding *holding = &allocator->holdings[i];
			const struct history_idle *known = history_idle(history,
				allocator->allocator_id, holding->device->ordinal, holding->kind);
			struct roster_row row = {
				.key = {.device = holding->device->ordinal,
					.kind = holding->kind,
					.allocator_id = allocator->allocator_id},
				.level = SITE_IDLE,
				.tracked = is_tracked(holding->device->ordinal, holding->kind),
				.device = roster_device_of(roster, holding->device->ordinal),
			};

			if (row.device == ROSTER_NONE)
				continue;
			if (known)
				row.most_bytes = most_in(&known->by_time);
			add_row(roster, &row);
		}
	roster->n_idle = roster->n_rows - roster->first_idle;
}

static void add_rests(struct roster *roster)
{
	for (size_t i = 0; i < roster->n_devices; i++) {
		struct roster_device *device = &roster->devices[i];

		device->rest = (uint32_t)roster->n_rows;
		add_row(roster, &(struct roster_row){
					.key = {.device = device->ordinal},
					.is_rest = true,
					.tracked = device->ordinal != MODEL_DEVICE_HOST,
					.device = (uint32_t)i,
				});
	}
}

/* What the rows of one owner on one device ever held, each at its own time. */
struct owner_sum {
	const char *owner;
	uint64_t bytes;
};

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static size_t find_sum(const struct owner_sum *sums, size_t n, const char *owner)
{
	size_t i = 0;

	while (i < n && !same(sums[i].owner, owner))
		i++;
	return i;
}

static int compare_sums(const void *a, const void *b)
{
	const struct owner_sum *x = a, *y = b;
	int order = order_of(y->bytes, x->bytes);

	return order ? order : strcmp(x->owner ? x->owner : "", y->owner ? y->owner : "");
}

static bool is_drawn(const struct roster_row *row, size_t device)
{
	return row->device == device && row->tracked && row->level != SITE_IDLE && !row->is_rest;
}

/* The rows come with those that held most first. */
static void choose_curves(struct roster *roster, size_t at)
{
	struct roster_device *device = &roster->devices[at];

	for (size_t i = 0; i < roster->n_rows && device->n_curves < ROSTER_N_CURVES; i++)
		if (is_drawn(&roster->rows[i], at) && roster->rows[i].most_bytes) {
			roster->rows[i].curve_slot = (uint32_t)device->n_curves;
			device->curves[device->n_curves++] = (uint32_t)i;
		}
}

static void choose_owners(struct roster *roster, size_t at)
{
	struct roster_device *device = &roster->devices[at];
	struct owner_sum *sums = NULL;
	size_t n = 0, room = 0;

	for (size_t i = 0; i < roster->n_rows; i++) {
		size_t found;

		if (!is_drawn(&roster->rows[i], at))
			continue;
		found = find_sum(sums, n, roster->rows[i].owner);
		if (found == n) {
			sums = memory_grow(sums, n, &room, sizeof(*sums));
			sums[n++] = (struct owner_sum){roster->rows[i].owner, 0};
		}
		sums[found].bytes += roster->rows[i].most_bytes;
	}
	if (n)
		qsort(sums, n, sizeof(*sums), compare_sums);
	for (size_t i = 0; i < n && i < ROSTER_N_OWNERS; i++)
		device->owners[device->n_owners++] = sums[i].owner;
	for (size_t i = 0; i < roster->n_rows; i++) {
		size_t found;

		if (!is_drawn(&roster->rows[i], at))
			continue;
		found = find_sum(sums, n, roster->rows[i].owner);
		if (found < device->n_owners)
			roster->rows[i].owner_slot = (uint32_t)found;
	}
	free(sums);
}

void roster_make(struct roster *roster, const struct model *model, const struct history *history,
	const struct owner_source *owners, size_t limit)
{
	*roster = (struct roster){0};
	make_devices(roster, model);
	add_sites(roster, model, history, owners, limit);
	add_idle(roster, model, history);
	add_rests(roster);
	for (size_t i = 0; i < roster->n_devices; i++) {
		choose_owners(roster, i);
		choose_curves(roster, i);
	}
}

uint32_t roster_row_of(const struct roster *roster, const struct model_site *site)
{
	uint32_t row = site->index < roster->n_sites ? roster->by_site[site->index] : ROSTER_NONE;
	uint32_t device;

	/* A trace that is being written may have other sites the next time. */
	if (row != ROSTER_NONE && !memcmp(&roster->rows[row].key, &site->key, sizeof(site->key)))
		return row;
	device = roster_device_of(roster, site->key.device);
	return device == ROSTER_NONE ? ROSTER_NONE : roster->devices[device].rest;
}

uint32_t roster_idle_row(const struct roster *roster, const struct model_allocator *allocator,
	const struct model_holding *holding)
{
	for (size_t i = roster->first_idle; i < roster->first_idle + roster->n_idle; i++) {
		const struct roster_row *row = &roster->rows[i];

		if (row->key.allocator_id == allocator->allocator_id &&
			row->key.device == holding->device->ordinal &&
			row->key.kind == holding->kind)
			return (uint32_t)i;
	}
	return ROSTER_NONE;
}

void roster_release(struct roster *roster)
{
	free(roster->rows);
	free(roster->devices);
	free(roster->by_site);
	*roster = (struct roster){0};
}
