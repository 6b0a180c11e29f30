#include "analysis/overview.h"

#include <stdio.h>
#include <stdlib.h>

#include "analysis/order.h"
#include "model/memory.h"

static uint64_t excess(uint64_t held_bytes, uint64_t live_bytes)
{
	return held_bytes > live_bytes ? held_bytes - live_bytes : 0;
}

struct device_spare device_spare_get(const struct model_device *device)
{
	const struct model_held *held = &device->held;
	const struct model_totals *kinds = device->kinds;

	return (struct device_spare){
		.page_bytes = excess(held->linear_bytes, kinds[VT_KIND_LINEAR].live_bytes) +
			      excess(held->array_bytes, kinds[VT_KIND_ARRAY].live_bytes),
		.pool_bytes = excess(held->pool_bytes, kinds[VT_KIND_POOL].live_bytes),
		.graph_bytes = excess(held->graph_bytes, kinds[VT_KIND_GRAPH].live_bytes),
	};
}

static void take_device(struct view *view, const struct model_device *device)
{
	view->devices[view->n_devices++] = (struct view_device){
		device->ordinal, device->tracked_bytes, device_spare_get(device)};
}

static void take_devices(struct view *view, const struct model *model)
{
	view->devices = memory_new(model->n_devices + 1, sizeof(*view->devices));
	for (size_t i = 0; i < model->n_devices; i++)
		take_device(view, model->devices[i]);
	if (model->unknown.tracked_bytes)
		take_device(view, &model->unknown);
}

/* Of a peak's sites, only those whose bytes make it up. */
static void keep_peak_sites(struct site_list *list, int device)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n_rows; i++)
		if (list->rows[i].device == device && model_kind_tracked(list->rows[i].kind))
			list->rows[kept++] = list->rows[i];
	list->n_rows = kept;
}

/* The pass over the trace that fills an overview. */
struct filling {
	struct overview *overview;
	const struct owner_source *owners;
	const struct watch *watch;
};

/* Stacks are taken from the whole trace: what defines one may come behind its first use. */
static struct model_totals *group(
	void *user, const struct model *model, const struct model_site_key *key)
{
	const struct filling *filling = user;
	const struct model *whole = filling->overview->replay->model;

	return owner_list_group(&filling->overview->owners, filling->owners,
		model_stack_find(whole, key->stack_id) ? whole : model, key);
}

static void add_levels(struct filling *filling, const struct model *model, int device,
	const char *at, uint64_t time_ns)
{
	fragmentation_add(&filling->overview->fragmentation, model, device, at, time_ns, 0,
		&filling->watch->requests);
}

static void add_all_levels(
	struct filling *filling, const struct model *model, const char *at, uint64_t time_ns)
{
	for (size_t i = 0; i < model->n_devices; i++)
		add_levels(filling, model, model->devices[i]->ordinal, at, time_ns);
	add_levels(filling, model, MODEL_DEVICE_UNKNOWN, at, time_ns);
}

/* A peak that lies before what single records tell: who held the memory is known, and no more. */
static void take_past_peak(
	struct view *view, const struct model *model, const struct model_device *device)
{
	view->devices = memory_new(1, sizeof(*view->devices));
	view->devices[view->n_devices++] = (struct view_device){
		.ordinal = device->ordinal, .tracked_bytes = device->peak_tracked_bytes};
	view->time_ns = device->peak_time_ns;
	site_list_add_past_peak(&view->sites, model);
	keep_peak_sites(&view->sites, device->ordinal);
	site_list_sort(&view->sites);
}

static void visit_view(struct filling *filling, const struct model *model, struct view *view)
{
	const struct model_device *device = model_device_find(model, view->moment.device);

	if (view->moment.at == REPLAY_AT_PEAK && device &&
		model_is_past(model, device->peak_time_ns)) {
		take_past_peak(view, model, device);
		return;
	}

	take_devices(view, model);
	site_list_add_live(&view->sites, model);
	view->time_ns = model->last_ns;
	if (view->moment.at == REPLAY_AT_TIME && view->moment.time_ns < model->last_ns)
		view->time_ns = view->moment.time_ns;
	if (view->moment.at == REPLAY_AT_PEAK) {
		view->time_ns = device ? device->peak_time_ns : 0;
		keep_peak_sites(&view->sites, view->moment.device);
	}
	site_list_sort(&view->sites);
	if (!filling->watch)
		return;
	if (view->moment.at == REPLAY_AT_PEAK)
		add_levels(filling, model, view->moment.device, view->at, view->time_ns);
	else
		add_all_levels(filling, model, view->at, view->time_ns);
}

/* The moments are those of the views, then those of the post-mortems. */
static void visit(void *user, const struct model *model, size_t i)
{
	struct filling *filling = user;
	struct overview *overview = filling->overview;

	if (i < overview->n_views)
		visit_view(filling, model, &overview->views[i]);
	else
		oom_judge(&overview->ooms.items[i - overview->n_views], model,
			&filling->watch->requests);
}

/* One moment for each device that ever held something. */
static size_t put_peaks(const struct model *model, struct replay_moment *moments)
{
	size_t n = 0;

	for (size_t i = 0; i < model->n_devices; i++)
		if (model->devices[i]->peak_tracked_bytes)
			moments[n++] = (struct replay_moment){
				.at = REPLAY_AT_PEAK, .device = model->devices[i]->ordinal};
	if (model->unknown.peak_tracked_bytes)
		moments[n++] = (struct replay_moment){
			.at = REPLAY_AT_PEAK, .device = MODEL_DEVICE_UNKNOWN};
	return n;
}

static void name_view(struct view *view, const struct oom_list *ooms)
{
	static const char *const names[] = {
		[REPLAY_AT_PEAK] = "peak",
		[REPLAY_AT_TIME] = "time",
		[REPLAY_AT_RECORD] = "record",
		[REPLAY_AT_END] = "end",
	};

	snprintf(view->at, sizeof(view->at), "%s", names[view->moment.at]);
	for (size_t i = 0; view->moment.at == REPLAY_AT_RECORD && i < ooms->n_items; i++)
		if (ooms->items[i].episode.moment.time_ns == view->moment.time_ns &&
			ooms->items[i].episode.moment.tid == view->moment.tid)
			snprintf(view->at, sizeof(view->at), "oom:%zu", ooms->items[i].number);
}

/* Makes the views and the post-mortems that are wanted, and the list of all their moments. */
static size_t plan(struct overview *overview, const struct overview_request *request,
	struct replay_moment **moments)
{
	const struct model *model = overview->replay->model;
	size_t n = request->moments ? request->n : model->n_devices + 1;

	if (request->watch)
		oom_list_make(&overview->ooms, &request->watch->episodes);
	*moments = memory_new(n + overview->ooms.n_items, sizeof(**moments));
	for (size_t i = 0; request->moments && i < n; i++)
		(*moments)[i] = request->moments[i];
	if (!request->moments)
		n = put_peaks(model, *moments);
	overview->n_views = n;
	overview->views = memory_new(n, sizeof(*overview->views));
	for (size_t i = 0; i < n; i++) {
		overview->views[i].moment = (*moments)[i];
		name_view(&overview->views[i], &overview->ooms);
	}
	for (size_t i = 0; i < overview->ooms.n_items; i++)
		(*moments)[n++] = overview->ooms.items[i].episode.moment;
	return n;
}

static int compare_failures(const void *a, const void *b)
{
	const struct model_failure *x = *(const struct model_failure *const *)a;
	const struct model_failure *y = *(const struct model_failure *const *)b;
	int order = order_of(y->n_calls, x->n_calls);

	if (!order)
		order = order_of(y->bytes, x->bytes);
	return order ? order : order_of(x->first_ns, y->first_ns);
}

static void take_failures(struct overview *overview, const struct model *model)
{
	overview->failures = memory_new(HASH_COUNT(model->failures), sizeof(*overview->failures));
	for (const struct model_failure *failure = model->failures; failure;
		failure = failure->hh.next)
		overview->failures[overview->n_failures++] = failure;
	qsort(overview->failures, overview->n_failures, sizeof(*overview->failures),
		compare_failures);
}

/* Tried for a device when it is first asked for. */
static const struct whatif_hint *hint_for(
	struct overview *overview, struct replay *replay, int device, bool *tried)
{
	const struct model *model = replay->model;

	for (size_t i = 0; i < model->n_devices; i++) {
		if (model->devices[i]->ordinal != device || tried[i])
			continue;
		tried[i] = true;
		if (whatif_hint_make(&overview->hints[overview->n_hints], replay, device))
			overview->n_hints++;
	}
	for (size_t i = 0; i < overview->n_hints; i++)
		if (overview->hints[i].device == device)
			return &overview->hints[i];
	return NULL;
}

static void add_hints(struct overview *overview, struct replay *replay)
{
	bool *tried = memory_new(replay->model->n_devices, sizeof(*tried));
	struct fragmentation *list = &overview->fragmentation;

	overview->hints = memory_new(replay->model->n_devices, sizeof(*overview->hints));
	for (size_t i = 0; i < overview->ooms.n_items; i++) {
		struct oom *oom = &overview->ooms.items[i];

		if (oom->episode.reported)
			oom->hint = hint_for(overview, replay, oom->episode.device, tried);
		for (size_t k = 0; k < oom->levels.n_rows; k++)
			if (oom->levels.rows[k].advice == ADVICE_EXPANDABLE)
				oom->levels.rows[k].hint = oom->hint;
	}
	for (size_t i = 0; i < list->n_rows; i++)
		if (list->rows[i].advice == ADVICE_EXPANDABLE)
			list->rows[i].hint =
				hint_for(overview, replay, list->rows[i].device, tried);
	free(tried);
}

static void take_leaks(struct overview *overview, const struct overview_request *request)
{
	const struct model *model = overview->replay->model;

	if (request->history) {
		request->history->is_running = overview->facts.end == TRACE_END_RUNNING;
		leak_list_make(&overview->leaks, model, request->history, &overview->end);
		untracked_list_make(&overview->untracked, request->history);
	} else {
		leak_list_take(&overview->leaks, &overview->end);
	}
	if (request->suppressor)
		leak_list_suppress(&overview->leaks, model, request->suppressor);
	if (request->leak_owners)
		leak_list_group(&overview->leaks, model, request->leak_owners);
}

int overview_make(
	struct overview *overview, struct replay *replay, const struct overview_request *request)
{
	struct filling filling = {overview, request->owners, request->watch};
	struct replay_moment *moments;
	size_t n;
	int error;

	*overview = (struct overview){.replay = replay,
		.owners_known = request->owners != NULL,
		.watched = request->watch != NULL};
	n = plan(overview, request, &moments);
	error = replay_visit(replay, moments, n, visit, request->owners ? group : NULL, &filling);
	free(moments);
	if (error) {
		overview_release(overview);
		return error;
	}
	trace_facts_get(&overview->facts, replay);
	idle_list_make(&overview->idle, replay->model, &overview->facts);
	site_list_add_live(&overview->end, replay->model);
	site_list_add_teardown(&overview->end, replay->model);
	site_list_sort(&overview->end);
	take_leaks(overview, request);
	owner_list_sort(&overview->owners);
	transfers_make(&overview->transfers, replay->model, request->owners);
	take_failures(overview, replay->model);
	if (request->watch && !request->moments)
		add_all_levels(&filling, replay->model, "end", replay->model->last_ns);
	add_hints(overview, replay);
	return 0;
}

void overview_end_from_views(struct overview *overview)
{
	overview->end.n_rows = 0;
	for (size_t i = 0; i < overview->n_views; i++)
		site_list_append(&overview->end, &overview->views[i].sites);
	leak_list_release(&overview->leaks);
	untracked_list_release(&overview->untracked);
	leak_list_take(&overview->leaks, &overview->end);
}

void overview_release(struct overview *overview)
{
	for (size_t i = 0; i < overview->n_views; i++) {
		free(overview->views[i].devices);
		site_list_release(&overview->views[i].sites);
	}
	free(overview->views);
	site_list_release(&overview->end);
	leak_list_release(&overview->leaks);
	untracked_list_release(&overview->untracked);
	idle_list_release(&overview->idle);
	transfers_release(&overview->transfers);
	free(overview->failures);
	owner_list_release(&overview->owners);
	oom_list_release(&overview->ooms);
	fragmentation_release(&overview->fragmentation);
	free(overview->hints);
	*overview = (struct overview){0};
}
