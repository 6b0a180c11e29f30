#include "analysis/export_sites.h"

#include <stdlib.h>

#include "analysis/order.h"
#include "model/blocks.h"
#include "model/memory.h"

static uint64_t less(uint64_t from, uint64_t part)
{
	return from > part ? from - part : 0;
}

static bool is_wanted(const struct export_moment *moment, int device, uint32_t kind)
{
	if (moment->one_device && device != moment->moment.device)
		return false;
	return moment->moment.at == REPLAY_AT_PEAK ? model_kind_tracked(kind)
						   : kind != VT_KIND_SHARED;
}

static void add(struct export_moment *moment, const struct export_site *site)
{
	if ((!site->live_bytes && !site->alloc_bytes) ||
		!is_wanted(moment, site->device, site->kind))
		return;
	moment->sites =
		memory_grow(moment->sites, moment->n_sites, &moment->room, sizeof(*moment->sites));
	moment->sites[moment->n_sites++] = *site;
}

static void add_site(struct export_moment *moment, const struct model_site *site)
{
	add(moment, &(struct export_site){
			    .stack_id = site->key.stack_id,
			    .device = site->key.device,
			    .kind = site->key.kind,
			    .level = site->key.allocator_id ? SITE_BLOCK : SITE_DRIVER,
			    .allocator_id = site->key.allocator_id,
			    .live_bytes = less(site->live_bytes, site->segment_bytes),
			    .n_live = less(site->n_live, site->n_segments),
			    .alloc_bytes = less(site->alloc_bytes, site->as_segment_bytes),
			    .n_allocs = less(site->n_allocs, site->n_as_segments),
		    });
}

static void add_idle(struct export_moment *moment, const struct model_allocator *allocator,
	const struct model_holding *holding)
{
	uint64_t bytes = less(holding->segment_bytes, holding->live_bytes);

	add(moment, &(struct export_site){
			    .device = holding->device->ordinal,
			    .kind = holding->kind,
			    .level = SITE_IDLE,
			    .allocator_id = allocator->allocator_id,
			    .live_bytes = bytes,
			    .n_live = holding->n_segments,
			    .alloc_bytes = bytes,
			    .n_allocs = holding->n_segments,
		    });
}

static int compare(const void *a, const void *b)
{
	const struct export_site *x = a, *y = b;
	int order = order_of(y->live_bytes, x->live_bytes);

	if (!order)
		order = order_of(y->alloc_bytes, x->alloc_bytes);
	/* The rest only so that equal traces give equal documents. */
	if (!order)
		order = order_of(x->stack_id, y->stack_id);
	if (!order)
		order = order_of(x->kind, y->kind);
	if (!order)
		order = order_of(x->allocator_id, y->allocator_id);
	return order ? order : (x->device > y->device) - (x->device < y->device);
}

void export_moment_fill(struct export_moment *moment, const struct model *model)
{
	for (const struct model_site *site = model->sites; site; site = site->hh.next)
		add_site(moment, site);
	for (const struct model_allocator *allocator = model->allocators; allocator;
		allocator = allocator->hh.next)
		for (size_t i = 0; i < allocator->n_holdings; i++)
			add_idle(moment, allocator, &allocator->holdings[i]);
	if (moment->n_sites)
		qsort(moment->sites, moment->n_sites, sizeof(*moment->sites), compare);
}

static uint64_t time_of(const struct export_moment *moment, const struct model *model)
{
	const struct model_device *device = model_device_find(model, moment->moment.device);

	switch (moment->moment.at) {
	case REPLAY_AT_PEAK:
		return device ? device->peak_time_ns : 0;
	case REPLAY_AT_TIME:
		return moment->moment.time_ns < model->last_ns ? moment->moment.time_ns
							       : model->last_ns;
	default:
		return model->last_ns;
	}
}

static void visit(void *user, const struct model *model, size_t i)
{
	struct export_moment *moment = &((struct export_moment *)user)[i];

	moment->time_ns = time_of(moment, model);
	export_moment_fill(moment, model);
}

int export_moments_make(struct replay *replay, struct export_moment *moments, size_t n)
{
	struct replay_moment *wanted = memory_new(n, sizeof(*wanted));
	int error;

	for (size_t i = 0; i < n; i++)
		wanted[i] = moments[i].moment;
	error = replay_visit(replay, wanted, n, visit, NULL, moments);
	free(wanted);
	return error;
}

void export_moment_release(struct export_moment *moment)
{
	free(moment->sites);
	moment->sites = NULL;
	moment->n_sites = moment->room = 0;
}
