#include "analysis/scenes.h"

#include <stdlib.h>

#include "analysis/oom.h"
#include "analysis/order.h"
#include "model/memory.h"

struct visitor {
	struct scene_list *list;
	const struct roster *roster;
	uint64_t *bytes, *counts; /* by row */
};

static void add_site(
	struct visitor *visitor, const struct model_site *site, uint64_t bytes, uint64_t count)
{
	uint32_t row = roster_row_of(visitor->roster, site);

	if (row == ROSTER_NONE ||
		(visitor->roster->rows[row].is_rest && site->key.device != MODEL_DEVICE_HOST &&
			!model_kind_tracked(site->key.kind)))
		return;
	visitor->bytes[row] += bytes;
	visitor->counts[row] += count;
}

static void add_all(struct visitor *visitor, const struct model *model)
{
	for (const struct model_site *site = model->sites; site; site = site->hh.next)
		add_site(visitor, site, roster_site_bytes(site), roster_site_count(site));
	for (const struct model_allocator *allocator = model->allocators; allocator;
		allocator = allocator->hh.next)
		for (size_t i = 0; i < allocator->n_holdings; i++) {
			const struct model_holding *holding = &allocator->holdings[i];
			uint32_t row = roster_idle_row(visitor->roster, allocator, holding);

			if (row == ROSTER_NONE)
				continue;
			visitor->bytes[row] = roster_idle_bytes(holding);
			visitor->counts[row] = holding->n_segments;
		}
}

/* Of a peak before what single records tell only is known who held the memory. */
static void add_past(struct visitor *visitor, const struct model *model, int device)
{
	for (const struct model_site *site = model->sites; site; site = site->hh.next)
		if (site->key.device == device)
			add_site(visitor, site, site->past_peak_bytes, site->n_past_peak);
}

static void take_rows(struct visitor *visitor, struct scene *scene)
{
	size_t room = 0;

	for (size_t i = 0; i < visitor->roster->n_rows; i++) {
		if (visitor->bytes[i] || visitor->counts[i]) {
			scene->rows = memory_grow(
				scene->rows, scene->n_rows, &room, sizeof(*scene->rows));
			scene->rows[scene->n_rows++] = (struct scene_row){
				(uint32_t)i, visitor->bytes[i], visitor->counts[i]};
		}
		visitor->bytes[i] = visitor->counts[i] = 0;
	}
}

static void visit(void *user, const struct model *model, size_t i)
{
	struct visitor *visitor = user;
	struct scene *scene = &visitor->list->items[i];
	bool is_peak = scene->moment.at == REPLAY_AT_PEAK;
	const struct model_device *device = model_device_find(model, scene->moment.device);

	scene->time_ns = is_peak			      ? device->peak_time_ns
			 : scene->moment.at == REPLAY_AT_TIME ? scene->moment.time_ns
							      : model->last_ns;
	if (is_peak && model_is_past(model, scene->time_ns)) {
		add_past(visitor, model, device->ordinal);
		take_rows(visitor, scene);
		return;
	}
	add_all(visitor, model);
	take_rows(visitor, scene);
	scene->has_map = true;
	address_map_make(&scene->map, model, visitor->roster,
		is_peak ? scene->moment.device : MODEL_DEVICE_HOST);
}

static void add(struct scene_list *list, const struct scene *scene)
{
	list->items[list->n_items++] = *scene;
}

static void add_peaks(struct scene_list *list, const struct model *model)
{
	for (size_t i = 0; i <= model->n_devices; i++) {
		const struct model_device *device =
			i < model->n_devices ? model->devices[i] : &model->unknown;

		if (device->peak_tracked_bytes)
			add(list, &(struct scene){.moment = {.at = REPLAY_AT_PEAK,
							  .device = device->ordinal}});
	}
}

static void add_ooms(struct scene_list *list, const struct episodes *episodes, size_t n_ooms)
{
	struct oom_list ooms;

	oom_list_make(&ooms, episodes);
	for (size_t i = 0; i < ooms.n_items && n_ooms; i++, n_ooms--)
		add(list, &(struct scene){.moment = ooms.items[i].episode.moment,
				  .oom_number = ooms.items[i].number});
	oom_list_release(&ooms);
}

static void add_times(struct scene_list *list, const struct model *model, size_t n_times)
{
	uint64_t from_ns =
		model->kept_from_ns > model->first_ns ? model->kept_from_ns : model->first_ns;
	uint64_t part_ns = (model->last_ns - from_ns) / (n_times + 1);

	for (size_t i = 1; part_ns && i <= n_times; i++)
		add(list, &(struct scene){.moment = {.at = REPLAY_AT_TIME,
						  .time_ns = from_ns + i * part_ns}});
}

static int compare(const void *a, const void *b)
{
	const struct scene *x = a, *y = b;
	int order = order_of(x->time_ns, y->time_ns);

	return order ? order : (x->moment.at > y->moment.at) - (x->moment.at < y->moment.at);
}

int scenes_make(struct scene_list *list, struct replay *replay, const struct roster *roster,
	const struct episodes *episodes, size_t n_ooms, size_t n_times)
{
	const struct model *model = replay->model;
	struct visitor visitor = {.list = list,
		.roster = roster,
		.bytes = memory_new(roster->n_rows, sizeof(uint64_t)),
		.counts = memory_new(roster->n_rows, sizeof(uint64_t))};
	struct replay_moment *moments;
	int error;

	*list = (struct scene_list){0};
	list->items = memory_new(model->n_devices + 2 + n_ooms + n_times, sizeof(*list->items));
	add_peaks(list, model);
	add_ooms(list, episodes, n_ooms);
	add_times(list, model, n_times);
	add(list, &(struct scene){.moment = {.at = REPLAY_AT_END}});
	moments = memory_new(list->n_items, sizeof(*moments));
	for (size_t i = 0; i < list->n_items; i++)
		moments[i] = list->items[i].moment;
	error = replay_visit(replay, moments, list->n_items, visit, NULL, &visitor);
	free(moments);
	free(visitor.bytes);
	free(visitor.counts);
	if (error)
		scenes_release(list);
	else
		qsort(list->items, list->n_items, sizeof(*list->items), compare);
	return error;
}

void scenes_release(struct scene_list *list)
{
	for (size_t i = 0; i < list->n_items; i++) {
		free(list->items[i].rows);
		address_map_release(&list->items[i].map);
	}
	free(list->items);
	*list = (struct scene_list){0};
}
