#include "analysis/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "model/blocks.h"
#include "model/memory.h"

struct filler {
	struct timeline *timeline;
	const struct timeline_also *also;
	size_t column;			/* being filled */
	struct timeline_column *states; /* each device as the last record left it */
	struct vt_rec_host_memory host; /* the last sample */
	struct owner_list owners;
	const struct model *names; /* of the pass before: it has all stacks */
};

/* What allocators keep on the device for blocks to come. */
static uint64_t kept_bytes(
	const struct model_allocator *allocator, const struct model_device *device)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < allocator->n_holdings; i++) {
		const struct model_holding *holding = &allocator->holdings[i];

		if (holding->device == device && model_kind_tracked(holding->kind) &&
			holding->segment_bytes > holding->live_bytes)
			bytes += holding->segment_bytes - holding->live_bytes;
	}
	return bytes;
}

/* The owner that an allocator's memory is booked for: the one of its name, else who has most. */
static size_t owner_of(const struct timeline_device *device, const struct timeline_column *state,
	const struct model_allocator *allocator)
{
	size_t most = 0;

	for (size_t i = 0; i < device->n_owners; i++) {
		const char *owner = device->owners[i];

		if (owner && strlen(owner) == allocator->name.bytes &&
			!memcmp(owner, allocator->name.data, allocator->name.bytes))
			return i;
		if (state->owner_bytes[i] > state->owner_bytes[most])
			most = i;
	}
	return most;
}

/* Who holds the device's memory. What is booked for an owner is what it has from the driver. */
static void take_owners(struct filler *filler, struct timeline_device *device,
	struct timeline_column *state, const struct model *model, const struct model_device *of)
{
	memset(state->owner_bytes, 0, sizeof(state->owner_bytes));
	state->live_bytes = 0;
	device->n_owners = 0;
	for (size_t i = 0; i < filler->owners.n_rows; i++) {
		const struct owner_row *row = filler->owners.rows[i];

		if (row->device != device->ordinal)
			continue;
		state->live_bytes += row->totals.live_bytes;
		if (device->n_owners == TIMELINE_N_OWNERS)
			continue;
		device->owners[device->n_owners] = row->owner;
		state->owner_bytes[device->n_owners++] = row->totals.live_bytes;
	}
	for (const struct model_allocator *allocator = model->allocators; allocator;
		allocator = allocator->hh.next) {
		uint64_t *owner = &state->owner_bytes[owner_of(device, state, allocator)];
		uint64_t kept = kept_bytes(allocator, of);

		state->live_bytes -= kept < state->live_bytes ? kept : state->live_bytes;
		*owner -= kept < *owner ? kept : *owner;
	}
}

static void take_state(struct timeline_column *state, const struct model_device *device)
{
	state->tracked_bytes = device->tracked_bytes;
	for (size_t kind = 0; kind < VT_N_KINDS; kind++)
		state->kind_bytes[kind] = device->kinds[kind].live_bytes;
	state->used_known = device->account.seen;
	state->used_bytes = device->last_sample.used_bytes;
	state->untracked_bytes = device->account.untracked_sum_bytes;
	state->others_bytes = device->account.others_bytes;
	state->unexplained_bytes = device->account.unexplained_bytes;
}

/* What was sampled goes with the stretch's end, not with its highest moment. */
static void take_sample(struct timeline_column *column, const struct timeline_column *state)
{
	column->used_known = state->used_known;
	column->used_bytes = state->used_bytes;
	column->untracked_bytes = state->untracked_bytes;
	column->others_bytes = state->others_bytes;
	column->unexplained_bytes = state->unexplained_bytes;
}

/* Enters the states into the column being filled. */
static void enter(struct filler *filler)
{
	for (size_t i = 0; i < filler->timeline->n_devices; i++) {
		struct timeline_column *column =
			&filler->timeline->devices[i].columns[filler->column];
		const struct timeline_column *state = &filler->states[i];

		if (state->tracked_bytes >= column->tracked_bytes)
			*column = *state;
		else
			take_sample(column, state);
	}
	filler->timeline->host[filler->column] = filler->host;
}

/* Goes on to a later column; what was held at the end of one is held at the beginning of the next.
 */
static void advance(struct filler *filler, size_t column)
{
	while (filler->column < column) {
		filler->column++;
		enter(filler);
	}
}

static size_t column_at(const struct timeline *timeline, uint64_t time_ns)
{
	uint64_t since = time_ns > timeline->start_ns ? time_ns - timeline->start_ns : 0;
	uint64_t column = since / timeline->column_ns;

	return column < timeline->n_columns ? (size_t)column : timeline->n_columns - 1;
}

static void note_host(struct filler *filler, const struct vt_record *record)
{
	filler->host = record->host_memory;
	/* Of the time before single records begin, some are repeated. */
	for (size_t k = column_at(filler->timeline, record->time_ns); k < filler->column; k++)
		filler->timeline->host[k] = filler->host;
}

static uint64_t add_time(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void observe(void *user, const struct model *model, const struct vt_record *record)
{
	struct filler *filler = user;

	if (record->kind < VT_REC_alloc || model_is_summary(record))
		return;
	/* What a checkpoint repeats is not all that there was then. */
	if (!model_is_past(model, record->time_ns))
		advance(filler, column_at(filler->timeline, record->time_ns));
	timeline_events_observe(&filler->timeline->marks, &filler->timeline->phases, model, record);
	if (record->kind == VT_REC_host_memory)
		note_host(filler, record);
	for (size_t i = 0; i < filler->timeline->n_devices; i++) {
		struct timeline_device *drawn = &filler->timeline->devices[i];
		const struct model_device *device = model_device_find(model, drawn->ordinal);

		if (!device)
			continue;
		take_state(&filler->states[i], device);
		if (filler->also->owners)
			take_owners(filler, drawn, &filler->states[i], model, device);
	}
	if (!model_is_past(model, record->time_ns))
		enter(filler);
}

static void column_from(struct timeline_column *column, const struct vt_rec_stretch *stretch)
{
	*column = (struct timeline_column){
		.tracked_bytes = stretch->tracked_bytes,
		.kind_bytes = {[VT_KIND_LINEAR] = stretch->linear_bytes,
			[VT_KIND_ARRAY] = stretch->array_bytes,
			[VT_KIND_POOL] = stretch->pool_bytes,
			[VT_KIND_VMM] = stretch->vmm_bytes,
			[VT_KIND_MANAGED] = stretch->managed_bytes,
			[VT_KIND_GRAPH] = stretch->graph_bytes,
			[VT_KIND_SHARED] = stretch->shared_bytes},
		.used_known = stretch->used_known,
		.used_bytes = stretch->used_bytes,
		.untracked_bytes = stretch->untracked_bytes,
		.others_bytes = stretch->others_bytes,
		.unexplained_bytes = stretch->unexplained_bytes,
	};
}

/* The checkpoint's timeline into the columns that its stretches reach into. */
static void enter_stretch(struct timeline *timeline, const struct vt_rec_stretch *stretch)
{
	size_t last = column_at(timeline, add_time(stretch->start_ns, stretch->length_ns) - 1);
	struct timeline_column from;

	column_from(&from, stretch);
	for (size_t i = 0; i < timeline->n_devices; i++) {
		if (timeline->devices[i].ordinal != stretch->device)
			continue;
		for (size_t k = column_at(timeline, stretch->start_ns); k <= last; k++) {
			struct timeline_column *to = &timeline->devices[i].columns[k];

			if (from.tracked_bytes >= to->tracked_bytes)
				*to = from;
			else
				take_sample(to, &from);
		}
	}
}

/* Single records begin in the last stretch's column. */
static void enter_past(struct filler *filler, const struct model *model)
{
	for (size_t i = 0; i < model->n_stretches; i++)
		enter_stretch(filler->timeline, &model->stretches[i]);
	if (model->kept_from_ns)
		filler->column = column_at(filler->timeline, model->kept_from_ns);
}

static struct model_totals *group(
	void *user, const struct model *model, const struct model_site_key *key)
{
	struct filler *filler = user;

	(void)model;
	return owner_list_group(&filler->owners, filler->also->owners, filler->names, key);
}

static void note_refused(struct timeline *timeline, const struct episodes *episodes)
{
	for (size_t i = 0; episodes && i < episodes->n_items; i++) {
		const struct episode *episode = &episodes->items[i];
		size_t column = column_at(timeline, episode->moment.time_ns);

		for (size_t k = 0; episode->want == EPISODE_MEMORY && k < timeline->n_devices; k++)
			if (timeline->devices[k].ordinal == episode->device)
				timeline->devices[k].columns[column].n_refused++;
	}
}

static bool used(const struct model_device *device)
{
	return device->peak_tracked_bytes || device->kinds[VT_KIND_MANAGED].n_allocs;
}

int timeline_make(struct timeline *timeline, struct replay *replay, size_t n_columns,
	const struct timeline_also *also)
{
	struct model *model = replay_take_model(replay);
	struct filler filler = {.timeline = timeline, .also = also, .names = model};
	uint64_t length = model->last_ns > model->first_ns ? model->last_ns - model->first_ns : 0;
	int error;

	*timeline = (struct timeline){
		.start_ns = model->first_ns,
		.column_ns = length / n_columns + 1,
		.n_columns = n_columns,
	};
	timeline->devices = memory_new(model->n_devices + 1, sizeof(*timeline->devices));
	for (size_t i = 0; i <= model->n_devices; i++) {
		const struct model_device *device =
			i < model->n_devices ? model->devices[i] : &model->unknown;

		if (!used(device))
			continue;
		timeline->devices[timeline->n_devices++] =
			(struct timeline_device){.ordinal = device->ordinal,
				.columns = memory_new(n_columns, sizeof(struct timeline_column))};
	}
	timeline->host = memory_new(n_columns, sizeof(*timeline->host));
	filler.states = memory_new(timeline->n_devices, sizeof(*filler.states));
	enter_past(&filler, model);
	error = replay_follow(replay, &(struct replay_hooks){.observer = observe,
					      .grouper = also->owners ? group : NULL,
					      .user = &filler});
	if (error) {
		timeline_release(timeline);
	} else {
		advance(&filler, n_columns - 1);
		timeline_events_finish(&timeline->phases, replay->model);
		note_refused(timeline, also->episodes);
	}
	owner_list_release(&filler.owners);
	free(filler.states);
	model_free(model);
	return error;
}

void timeline_release(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->n_devices; i++)
		free(timeline->devices[i].columns);
	free(timeline->devices);
	free(timeline->host);
	timeline_events_release(&timeline->marks);
	timeline_events_release(&timeline->phases);
	*timeline = (struct timeline){0};
}
