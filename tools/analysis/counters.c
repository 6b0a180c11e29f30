#include "analysis/counters.h"

#include <stdlib.h>

#include "model/blocks.h"
#include "model/memory.h"

#define MAX_POINTS 400000u

/* One curve: the last point told, and what waits until the step is over. */
struct counter {
	enum counter_what what;
	int device;
	const struct owner_row *owner;
	bool begun;
	int64_t bytes; /* now */
	uint64_t told_ns;
	bool waits;
	int64_t high_bytes;
	uint64_t high_ns, last_ns;
};

struct counters {
	const struct counters_request *request;
	struct owner_list owners;
	struct counter *items;
	size_t n_items, room;
	size_t n_owners, n_devices; /* that have curves */
};

uint64_t counters_step(const struct model *model)
{
	uint64_t length = model->last_ns > model->first_ns ? model->last_ns - model->first_ns : 0;

	return model->n_events > MAX_POINTS ? 2 * length / MAX_POINTS : 0;
}

static void tell(
	const struct counters *counters, struct counter *counter, uint64_t time_ns, int64_t bytes)
{
	counter->told_ns = time_ns;
	counters->request->point(counters->request->user,
		&(struct counter_point){(size_t)(counter - counters->items), counter->what,
			counter->device, counter->owner ? counter->owner->owner : NULL, time_ns,
			bytes});
}

static void end_step(const struct counters *counters, struct counter *counter)
{
	if (counter->high_ns != counter->last_ns)
		tell(counters, counter, counter->high_ns, counter->high_bytes);
	tell(counters, counter, counter->last_ns, counter->bytes);
	counter->waits = false;
}

static void note(
	const struct counters *counters, struct counter *counter, uint64_t now, int64_t bytes)
{
	bool is_over = now - counter->told_ns >= counters->request->step_ns;

	if (counter->waits && is_over) {
		end_step(counters, counter);
		is_over = now - counter->told_ns >= counters->request->step_ns;
	}
	if (bytes == counter->bytes)
		return;
	counter->bytes = bytes;
	if (!counter->begun || is_over) {
		counter->begun = true;
		tell(counters, counter, now, bytes);
		return;
	}
	if (!counter->waits || bytes > counter->high_bytes) {
		counter->high_bytes = bytes;
		counter->high_ns = now;
	}
	counter->waits = true;
	counter->last_ns = now;
}

static int64_t value_of(
	const struct counter *counter, const struct model *model, const struct model_device *device)
{
	uint64_t bytes = 0;

	switch (counter->what) {
	case COUNTER_TRACKED:
		return (int64_t)device->tracked_bytes;
	case COUNTER_USED:
		return (int64_t)device->last_sample.used_bytes;
	case COUNTER_UNTRACKED:
		return device->account.untracked_sum_bytes;
	case COUNTER_BLOCKS:
		return (int64_t)device->block_bytes;
	case COUNTER_PINNED:
		return (int64_t)(device->kinds[VT_KIND_PINNED].live_bytes +
				 device->kinds[VT_KIND_REGISTERED].live_bytes);
	case COUNTER_OWNER:
		return (int64_t)counter->owner->totals.live_bytes;
	case COUNTER_RESERVED:
		for (const struct model_allocator *allocator = model->allocators; allocator;
			allocator = allocator->hh.next)
			for (size_t i = 0; i < allocator->n_holdings; i++)
				if (allocator->holdings[i].device == device)
					bytes += allocator->holdings[i].segment_bytes;
		return (int64_t)bytes;
	}
	return 0;
}

static void add(struct counters *counters, enum counter_what what, int device,
	const struct owner_row *owner)
{
	counters->items = memory_grow(
		counters->items, counters->n_items, &counters->room, sizeof(*counters->items));
	counters->items[counters->n_items++] =
		(struct counter){.what = what, .device = device, .owner = owner};
}

/* Devices and owners that are new get their counters. */
static void add_new(struct counters *counters, const struct model *model)
{
	for (; counters->n_devices < model->n_devices; counters->n_devices++)
		for (enum counter_what what = COUNTER_TRACKED; what <= COUNTER_BLOCKS; what++)
			add(counters, what, model->devices[counters->n_devices]->ordinal, NULL);
	for (; counters->n_owners < counters->owners.n_rows; counters->n_owners++)
		add(counters, COUNTER_OWNER, counters->owners.rows[counters->n_owners]->device,
			counters->owners.rows[counters->n_owners]);
}

static void observe(void *user, const struct model *model, const struct vt_record *record)
{
	struct counters *counters = user;

	if (record->kind < VT_REC_alloc)
		return;
	add_new(counters, model);
	for (size_t i = 0; i < counters->n_items; i++) {
		struct counter *counter = &counters->items[i];

		note(counters, counter, record->time_ns,
			value_of(counter, model, model_device_find(model, counter->device)));
	}
}

static struct model_totals *group(
	void *user, const struct model *model, const struct model_site_key *key)
{
	struct counters *counters = user;

	(void)model;
	return owner_list_group(
		&counters->owners, counters->request->owners, counters->request->names, key);
}

int counters_make(struct replay *replay, const struct counters_request *request)
{
	struct counters counters = {.request = request};
	int error;

	add(&counters, COUNTER_TRACKED, MODEL_DEVICE_UNKNOWN, NULL);
	add(&counters, COUNTER_PINNED, MODEL_DEVICE_HOST, NULL);
	error = replay_follow(replay,
		&(struct replay_hooks){.observer = observe, .grouper = group, .user = &counters});
	for (size_t i = 0; i < counters.n_items && !error; i++)
		if (counters.items[i].waits)
			end_step(&counters, &counters.items[i]);
	free(counters.items);
	owner_list_release(&counters.owners);
	return error;
}
