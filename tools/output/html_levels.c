/* Curves, who held what over time, and maps of addresses, as the page's script reads them. */
#include <stddef.h>

#include "output/blocks_text.h"
#include "output/html_parts.h"

static void put_member(struct html_data *data, const char *key, const struct level *level,
	size_t device, size_t offset)
{
	struct html_series series = html_series_begin(data, key);

	for (size_t i = 0; i < level->n_bins; i++)
		html_series_put(&series,
			*(const uint64_t *)(const void *)((const char *)&level->points[device][i] +
							  offset));
	html_series_end(&series);
}

/* What the driver said is known from some bin on. */
static void put_samples(struct html_data *data, const struct level *level, size_t device)
{
	size_t first = 0;

	while (first < level->n_bins && !level->points[device][first].used_known)
		first++;
	json_number(&data->json, "sampled_from", first);
	put_member(data, "used", level, device, offsetof(struct level_point, used_bytes));
	put_member(data, "untracked", level, device, offsetof(struct level_point, untracked_bytes));
}

static void put_device_level(struct html_data *data, const struct html_trace *trace,
	const struct level *level, size_t device)
{
	const struct roster_device *of = &trace->roster->devices[device];

	json_open(&data->json, NULL, '{');
	put_member(data, "most", level, device, offsetof(struct level_point, most_bytes));
	put_member(data, "least", level, device, offsetof(struct level_point, least_bytes));
	put_member(data, "live", level, device, offsetof(struct level_point, live_bytes));
	put_member(
		data, "least_live", level, device, offsetof(struct level_point, least_live_bytes));
	put_member(data, "kept", level, device, offsetof(struct level_point, kept_bytes));
	put_samples(data, level, device);
	json_open(&data->json, "owners", '[');
	for (size_t i = 0; i < of->n_owners; i++)
		put_member(data, NULL, level, device,
			offsetof(struct level_point, owner_bytes) + i * sizeof(uint64_t));
	json_close(&data->json, ']');
	json_open(&data->json, "curves", '[');
	for (size_t i = 0; i < of->n_curves; i++)
		put_member(data, NULL, level, device,
			offsetof(struct level_point, curve_bytes) + i * sizeof(uint64_t));
	json_close(&data->json, ']');
	json_close(&data->json, '}');
}

static void put_level(
	struct html_data *data, const struct html_trace *trace, const struct level *level)
{
	struct html_series series;

	json_open(&data->json, NULL, '{');
	series = html_series_begin(data, "from");
	for (size_t i = 0; i < level->n_bins; i++)
		html_series_put(&series, level->spans[i].from_ns);
	html_series_end(&series);
	json_open(&data->json, "length", '[');
	for (size_t i = 0; i < level->n_bins; i++)
		html_put_number(data, (int64_t)(level->spans[i].to_ns - level->spans[i].from_ns));
	json_close(&data->json, ']');
	json_open(&data->json, "devices", '[');
	for (size_t i = 0; i < trace->levels->n_devices; i++)
		put_device_level(data, trace, level, i);
	json_close(&data->json, ']');
	json_close(&data->json, '}');
}

static void put_live(struct html_data *data, const struct levels *levels)
{
	struct html_series series;

	json_open(&data->json, "live", '{');
	json_number(&data->json, "shift", levels->live_shift);
	series = html_series_begin(data, "bin");
	for (size_t i = 0; i < levels->n_live; i++)
		html_series_put(&series, levels->live[i].bin);
	html_series_end(&series);
	json_open(&data->json, "row", '[');
	for (size_t i = 0; i < levels->n_live; i++)
		html_put_number(data, levels->live[i].row);
	json_close(&data->json, ']');
	json_open(&data->json, "bytes", '[');
	for (size_t i = 0; i < levels->n_live; i++)
		html_put_number(data, (int64_t)levels->live[i].bytes);
	json_close(&data->json, ']');
	json_open(&data->json, "count", '[');
	for (size_t i = 0; i < levels->n_live; i++)
		html_put_number(data, (int64_t)levels->live[i].count);
	json_close(&data->json, ']');
	json_close(&data->json, '}');
}

void html_put_levels(struct html_data *data, const struct html_trace *trace)
{
	const struct levels *levels = trace->levels;

	json_number(&data->json, "changes", levels->n_changes);
	json_open(&data->json, "levels", '[');
	for (size_t i = 0; i < levels->n_levels; i++)
		put_level(data, trace, &levels->levels[i]);
	json_close(&data->json, ']');
	put_live(data, levels);
}

/* [kind, memory, "address", bytes, device, allocator, expandable, captured, live, pending, free,
 *  [bytes, state, live, blocks, row, time, ...]], with -1 for what is not known. */
static void put_place(struct html_data *data, const struct html_trace *trace,
	const struct address_map *map, const struct address_place *place)
{
	const struct model *model = trace->shown->overview->replay->model;
	struct json *json = &data->json;
	char name[100];

	json_open(json, NULL, '[');
	html_put_number(data, place->kind);
	html_put_number(data, (int64_t)html_text(data, model_kind_name(place->memory_kind)));
	json_hex(json, NULL, place->address);
	html_put_number(data, (int64_t)place->bytes);
	html_put_number(data, place->device);
	if (place->allocator_id)
		blocks_name(model, place->allocator_id, name, sizeof(name));
	html_put_number(data, place->allocator_id ? (int64_t)html_text(data, name) : -1);
	html_put_number(data, place->is_expandable);
	html_put_number(data, place->is_captured);
	html_put_number(data, (int64_t)place->live_bytes);
	html_put_number(data, (int64_t)place->pending_bytes);
	html_put_number(data, (int64_t)place->free_bytes);
	json_open(json, NULL, '[');
	for (size_t i = place->first_range; i < place->first_range + place->n_ranges; i++) {
		const struct address_range *range = &map->ranges[i];

		html_put_number(data, (int64_t)range->bytes);
		html_put_number(data, range->state);
		html_put_number(data, (int64_t)range->live_bytes);
		html_put_number(data, (int64_t)range->n_live);
		html_put_number(data, range->row == ROSTER_NONE ? -1 : (int64_t)range->row);
		html_put_number(data, (int64_t)range->time_ns);
	}
	json_close(json, ']');
	json_close(json, ']');
}

void html_put_map(
	struct html_data *data, const struct html_trace *trace, const struct address_map *map)
{
	json_open(&data->json, "map", '{');
	json_number(&data->json, "grain", map->grain_bytes);
	json_number(&data->json, "left_out", map->n_left_out);
	json_number(&data->json, "left_out_bytes", map->left_out_bytes);
	json_open(&data->json, "places", '[');
	for (size_t i = 0; i < map->n_places; i++)
		put_place(data, trace, map, &map->places[i]);
	json_close(&data->json, ']');
	json_close(&data->json, '}');
}
