#include "analysis/overview.h"

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

static void visit(void *user, const struct model *model, size_t i)
{
	struct overview *overview = ((struct filling *)user)->overview;
	struct view *view = &overview->views[i];
	const struct model_device *device = model_device_find(model, view->moment.device);

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
}

/* One moment for each device that ever held something. */
static size_t peaks_of(const struct model *model, struct replay_moment **moments)
{
	size_t n = 0;

	*moments = memory_new(model->n_devices + 1, sizeof(**moments));
	for (size_t i = 0; i < model->n_devices; i++)
		if (model->devices[i]->peak_tracked_bytes)
			(*moments)[n++] = (struct replay_moment){
				REPLAY_AT_PEAK, model->devices[i]->ordinal, 0};
	if (model->unknown.peak_tracked_bytes)
		(*moments)[n++] = (struct replay_moment){REPLAY_AT_PEAK, MODEL_DEVICE_UNKNOWN, 0};
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

int overview_make(struct overview *overview, struct replay *replay,
	const struct replay_moment *moments, size_t n, const struct owner_source *owners)
{
	struct filling filling = {overview, owners};
	struct replay_moment *peaks = NULL;
	int error;

	*overview = (struct overview){.replay = replay, .owners_known = owners != NULL};
	if (!moments) {
		n = peaks_of(replay->model, &peaks);
		moments = peaks;
	}
	overview->n_views = n;
	overview->views = memory_new(n, sizeof(*overview->views));
	for (size_t i = 0; i < n; i++)
		overview->views[i].moment = moments[i];
	error = replay_visit(replay, moments, n, visit, owners ? group : NULL, &filling);
	free(peaks);
	if (error) {
		overview_release(overview);
		return error;
	}
	trace_facts_get(&overview->facts, replay);
	site_list_add_live(&overview->end, replay->model);
	site_list_add_teardown(&overview->end, replay->model);
	site_list_sort(&overview->end);
	owner_list_sort(&overview->owners);
	transfers_make(&overview->transfers, replay->model, owners);
	take_failures(overview, replay->model);
	return 0;
}

void overview_end_from_views(struct overview *overview)
{
	overview->end.n_rows = 0;
	for (size_t i = 0; i < overview->n_views; i++)
		site_list_append(&overview->end, &overview->views[i].sites);
}

void overview_release(struct overview *overview)
{
	for (size_t i = 0; i < overview->n_views; i++) {
		free(overview->views[i].devices);
		site_list_release(&overview->views[i].sites);
	}
	free(overview->views);
	site_list_release(&overview->end);
	transfers_release(&overview->transfers);
	free(overview->failures);
	owner_list_release(&overview->owners);
	*overview = (struct overview){0};
}
