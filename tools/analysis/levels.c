#include "analysis/levels.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/levels_parts.h"
#include "model/memory.h"

/* What a row holds as the pass goes on. */
struct row_state {
	uint64_t bytes, count;		 /* now */
	uint64_t told_bytes, told_count; /* by the last entry */
	bool is_dirty;
};

/* What a site of the pass's model holds: the rows of the rest are of many. */
struct site_state {
	uint64_t bytes, count;
};

/* The pass: the bin being filled, and the devices as the last record left them. */
struct gatherer {
	struct levels *levels;
	const struct roster *roster;
	const struct levels_limits *limits;
	struct level_point *states; /* of devices: most_bytes is what is tracked now */
	struct level_point *open;   /* the bin */
	struct level_span span;
	uint64_t n_in_bin, stride;
	struct row_state *rows;
	struct site_state *sites;
	size_t n_sites, sites_room;
	uint32_t *dirty; /* rows that changed in the bin */
	size_t n_dirty;
};

static struct level *finest(const struct gatherer *gatherer)
{
	return &gatherer->levels->levels[0];
}

static void add_to(uint64_t *sum, uint64_t from, uint64_t to)
{
	*sum += to - from;
}

/* Of a damaged trace it may be too much. */
static int64_t sum(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void set_row(struct gatherer *gatherer, uint32_t at, uint64_t bytes, uint64_t count)
{
	const struct roster_row *row = &gatherer->roster->rows[at];
	struct row_state *state = &gatherer->rows[at];
	struct level_point *device = &gatherer->states[row->device];

	if (row->tracked && row->level == SITE_IDLE) {
		add_to(&device->kept_bytes, state->bytes, bytes);
	} else if (row->tracked) {
		add_to(&device->live_bytes, state->bytes, bytes);
		if (row->owner_slot != ROSTER_NONE)
			add_to(&device->owner_bytes[row->owner_slot], state->bytes, bytes);
		if (row->curve_slot != ROSTER_NONE)
			add_to(&device->curve_bytes[row->curve_slot], state->bytes, bytes);
	}
	state->bytes = bytes;
	state->count = count;
	if (!state->is_dirty)
		gatherer->dirty[gatherer->n_dirty++] = at;
	state->is_dirty = true;
}

static struct site_state *site_state(struct gatherer *gatherer, const struct model_site *site)
{
	while (gatherer->n_sites <= site->index) {
		gatherer->sites = memory_grow(gatherer->sites, gatherer->n_sites,
			&gatherer->sites_room, sizeof(*gatherer->sites));
		gatherer->sites[gatherer->n_sites++] = (struct site_state){0};
	}
	return &gatherer->sites[site->index];
}

/* A row may be that of many sites: what each of them gained is added. */
static void note_site(struct gatherer *gatherer, const struct model_site *site)
{
	struct site_state *state = site_state(gatherer, site);
	uint64_t bytes = roster_site_bytes(site), count = roster_site_count(site);
	uint32_t at = roster_row_of(gatherer->roster, site);
	const struct row_state *row;

	if (at == ROSTER_NONE || (state->bytes == bytes && state->count == count))
		return;
	/* The rest of a device is drawn as memory of it: without what is not counted in it. */
	if (gatherer->roster->rows[at].is_rest && site->key.device != MODEL_DEVICE_HOST &&
		!model_kind_tracked(site->key.kind))
		return;
	row = &gatherer->rows[at];
	set_row(gatherer, at, row->bytes + bytes - state->bytes, row->count + count - state->count);
	*state = (struct site_state){bytes, count};
}

static bool note_kept(struct gatherer *gatherer, const struct model *model)
{
	bool changed = false;

	for (const struct model_allocator *allocator = model->allocators; allocator;
		allocator = allocator->hh.next)
		for (size_t i = 0; i < allocator->n_holdings; i++) {
			const struct model_holding *holding = &allocator->holdings[i];
			uint32_t at = roster_idle_row(gatherer->roster, allocator, holding);
			uint64_t bytes = roster_idle_bytes(holding);

			if (at == ROSTER_NONE || gatherer->rows[at].bytes == bytes)
				continue;
			set_row(gatherer, at, bytes, holding->n_segments);
			changed = true;
		}
	return changed;
}

/* Brings the states up to date; false when nothing that is drawn has changed. */
static bool note_devices(
	struct gatherer *gatherer, const struct model *model, const struct vt_record *record)
{
	bool changed = model->n_changes;

	for (size_t i = 0; i < model->n_changes; i++)
		note_site(gatherer, model->changes[i].site);
	if (changed || record->kind == VT_REC_block_alloc || record->kind == VT_REC_block_free)
		changed = note_kept(gatherer, model) || changed;
	for (size_t i = 0; i < gatherer->roster->n_devices; i++) {
		struct level_point *state = &gatherer->states[i];
		const struct model_device *device =
			model_device_find(model, gatherer->roster->devices[i].ordinal);

		if (!device)
			continue;
		changed = changed || state->most_bytes != device->tracked_bytes ||
			  (device->account.seen &&
				  (!state->used_known ||
					  state->used_bytes != device->last_sample.used_bytes));
		state->most_bytes = state->least_bytes = device->tracked_bytes;
		state->least_live_bytes = state->live_bytes;
		state->used_known = device->account.seen;
		state->used_bytes = device->last_sample.used_bytes;
		state->untracked_bytes =
			sum(device->account.untracked_sum_bytes, device->account.unexplained_bytes);
	}
	return changed;
}

/* Two bins become one, and the next ones are filled with twice as much. */
static void halve(struct gatherer *gatherer)
{
	struct levels *levels = gatherer->levels;
	struct level *level = finest(gatherer);

	for (size_t i = 0; i < level->n_bins; i += 2) {
		level->spans[i / 2] = level->spans[i];
		level_span_join(&level->spans[i / 2], &level->spans[i + 1]);
		for (size_t device = 0; device < levels->n_devices; device++) {
			struct level_point *points = level->points[device];

			points[i / 2] = points[i];
			level_point_join(&points[i / 2], &points[i + 1]);
		}
	}
	level->n_bins /= 2;
	gatherer->stride *= 2;
	if (levels->live_shift) {
		levels->live_shift--;
		return;
	}
	for (size_t i = 0; i < levels->n_live; i++)
		levels->live[i].bin /= 2;
}

static void tell_live(struct gatherer *gatherer)
{
	struct levels *levels = gatherer->levels;
	uint32_t bin = (uint32_t)(finest(gatherer)->n_bins >> levels->live_shift);

	for (size_t i = 0; i < gatherer->n_dirty; i++) {
		uint32_t at = gatherer->dirty[i];
		struct row_state *row = &gatherer->rows[at];

		row->is_dirty = false;
		if (row->bytes == row->told_bytes && row->count == row->told_count)
			continue;
		row->told_bytes = row->bytes;
		row->told_count = row->count;
		levels->live = memory_grow(
			levels->live, levels->n_live, &levels->live_room, sizeof(*levels->live));
		levels->live[levels->n_live++] =
			(struct live_entry){bin, at, row->bytes, row->count};
	}
	gatherer->n_dirty = 0;
}

static void close_bin(struct gatherer *gatherer)
{
	struct level *level = finest(gatherer);

	if (!gatherer->n_in_bin)
		return;
	tell_live(gatherer);
	level->spans[level->n_bins] = gatherer->span;
	for (size_t i = 0; i < gatherer->levels->n_devices; i++)
		level->points[i][level->n_bins] = gatherer->open[i];
	level->n_bins++;
	gatherer->n_in_bin = 0;
	if (level->n_bins == 2 * gatherer->limits->n_bins)
		halve(gatherer);
	if (gatherer->levels->n_live > 2 * gatherer->limits->n_live)
		live_fit(gatherer->levels, gatherer->roster->n_rows, gatherer->limits->n_live);
}

static void enter(struct gatherer *gatherer, uint64_t from_ns, uint64_t to_ns)
{
	size_t bytes = gatherer->levels->n_devices * sizeof(*gatherer->states);

	if (!gatherer->n_in_bin) {
		gatherer->span.from_ns = from_ns;
		memcpy(gatherer->open, gatherer->states, bytes);
	} else {
		for (size_t i = 0; i < gatherer->levels->n_devices; i++)
			level_point_join(&gatherer->open[i], &gatherer->states[i]);
	}
	gatherer->span.to_ns = to_ns;
	gatherer->levels->n_changes++;
	if (++gatherer->n_in_bin == gatherer->stride)
		close_bin(gatherer);
}

/* What a checkpoint knows of the time before it: how much, and not whose. */
static void enter_stretches(struct gatherer *gatherer, const struct model *model)
{
	for (size_t i = 0; i < model->n_stretches; i++) {
		const struct vt_rec_stretch *stretch = &model->stretches[i];
		uint32_t device = roster_device_of(gatherer->roster, (int)stretch->device);
		uint64_t to_ns = stretch->start_ns + stretch->length_ns;
		struct level_point *state;

		if (device == ROSTER_NONE)
			continue;
		state = &gatherer->states[device];
		*state = (struct level_point){
			.most_bytes = stretch->tracked_bytes,
			.least_bytes = stretch->tracked_bytes,
			.used_known = stretch->used_known,
			.used_bytes = stretch->used_bytes,
			.untracked_bytes =
				sum(stretch->untracked_bytes, stretch->unexplained_bytes),
		};
		enter(gatherer, stretch->start_ns, to_ns > stretch->start_ns ? to_ns - 1 : to_ns);
	}
	close_bin(gatherer);
	memset(gatherer->states, 0, gatherer->levels->n_devices * sizeof(*gatherer->states));
}

static void observe(void *user, const struct model *model, const struct vt_record *record)
{
	struct gatherer *gatherer = user;

	if (record->kind < VT_REC_alloc || model_is_summary(record))
		return;
	timeline_events_observe(&gatherer->levels->marks, &gatherer->levels->phases, model, record);
	/* What a checkpoint repeats is not all that there was then. */
	if (note_devices(gatherer, model, record) && !model_is_past(model, record->time_ns))
		enter(gatherer, record->time_ns, record->time_ns);
}

static void begin(struct gatherer *gatherer, size_t n_rows)
{
	struct level *level = finest(gatherer);
	size_t n_devices = gatherer->levels->n_devices, n_bins = 2 * gatherer->limits->n_bins;

	level->spans = memory_new(n_bins, sizeof(*level->spans));
	level->points = memory_new(n_devices, sizeof(*level->points));
	for (size_t i = 0; i < n_devices; i++)
		level->points[i] = memory_new(n_bins, sizeof(**level->points));
	gatherer->states = memory_new(n_devices, sizeof(*gatherer->states));
	gatherer->open = memory_new(n_devices, sizeof(*gatherer->open));
	gatherer->rows = memory_new(n_rows, sizeof(*gatherer->rows));
	gatherer->dirty = memory_new(n_rows, sizeof(*gatherer->dirty));
}

int levels_make(struct levels *levels, struct replay *replay, const struct roster *roster,
	const struct levels_limits *limits)
{
	struct gatherer gatherer = {
		.levels = levels, .roster = roster, .limits = limits, .stride = 1};
	const struct model *model = replay->model;
	int error;

	*levels = (struct levels){.start_ns = model->first_ns,
		.end_ns = model->last_ns,
		.n_devices = roster->n_devices,
		.kept_from_ns = model->kept_from_ns};
	begin(&gatherer, roster->n_rows);
	enter_stretches(&gatherer, model);
	error = replay_aside(replay, observe, &gatherer);
	close_bin(&gatherer);
	live_fit(levels, roster->n_rows, limits->n_live);
	levels_build(levels);
	timeline_events_finish(&levels->phases, replay->model);
	free(gatherer.states);
	free(gatherer.open);
	free(gatherer.rows);
	free(gatherer.sites);
	free(gatherer.dirty);
	if (error)
		levels_release(levels);
	return error;
}
