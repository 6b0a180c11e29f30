#include "output/blocks_text.h"
#include "output/export.h"
#include "output/html_parts.h"

static const char *kind_text(const struct roster_row *row)
{
	return row->is_rest ? "" : model_kind_name(row->key.kind);
}

/* What the row is called where there is no room for its stack. */
static void row_label(
	const struct stack_source *source, const struct roster_row *row, char *label, size_t size)
{
	char name[100];

	if (row->is_rest) {
		snprintf(label, size, "other call sites");
	} else if (row->level == SITE_IDLE) {
		blocks_name(source->model, row->key.allocator_id, name, sizeof(name));
		snprintf(label, size, "kept by %s, in no block", name);
	} else {
		stack_label(source, row->key.stack_id, label, size);
	}
}

static const char *row_owner(const struct stack_source *source, const struct roster_row *row)
{
	if (row->level == SITE_IDLE && !row->is_rest)
		return blocks_idle_owner(source->model, row->key.allocator_id);
	return row->owner;
}

/* [device, stack, kind, level, owner, label, allocator, tracked, most]; -1 for none. */
static void put_row(struct html_data *data, size_t index, const struct html_trace *trace,
	const struct roster_row *row)
{
	struct stack_source source = report_stacks(trace->shown);
	struct export_site site = {.stack_id = row->key.stack_id,
		.level = row->level,
		.allocator_id = row->key.allocator_id};
	const char *owner = row_owner(&source, row);
	char label[1100], name[100];

	row_label(&source, row, label, sizeof(label));
	json_open(&data->json, NULL, '[');
	html_put_number(data, row->device);
	html_put_number(data, row->is_rest ? -1 : (int64_t)html_stack(data, index, &source, &site));
	html_put_number(data, (int64_t)html_text(data, kind_text(row)));
	html_put_number(data, row->is_rest ? -1 : (int64_t)row->level);
	html_put_number(data, owner ? (int64_t)html_text(data, owner) : -1);
	html_put_number(data, (int64_t)html_text(data, export_name_set(&data->name, label)));
	if (row->key.allocator_id)
		blocks_name(source.model, row->key.allocator_id, name, sizeof(name));
	html_put_number(data, row->key.allocator_id ? (int64_t)html_text(data, name) : -1);
	html_put_number(data, row->tracked);
	html_put_number(data, (int64_t)row->most_bytes);
	json_close(&data->json, ']');
}

static void put_device(
	struct html_data *data, const struct html_trace *trace, const struct roster_device *of)
{
	const struct model_device *device =
		model_device_find(trace->shown->overview->replay->model, of->ordinal);
	struct json *json = &data->json;

	json_open(json, NULL, '{');
	json_number_or_null(json, "ordinal", of->ordinal >= 0, (uint64_t)of->ordinal);
	json_string(json, "name", report_device_name(of->ordinal).text);
	json_bool(json, "is_host", of->ordinal == MODEL_DEVICE_HOST);
	json_text_or_null(json, "model", device->name);
	json_number(json, "total_bytes", device->total_bytes);
	json_number(json, "peak_bytes", device->peak_tracked_bytes);
	json_number(json, "peak_ns", device->peak_time_ns);
	json_open(json, "owners", '[');
	for (size_t i = 0; i < of->n_owners; i++)
		html_put_number(
			data, (int64_t)html_text(data, of->owners[i] ? of->owners[i] : "unknown"));
	json_close(json, ']');
	json_open(json, "curves", '[');
	for (size_t i = 0; i < of->n_curves; i++)
		html_put_number(data, of->curves[i]);
	json_close(json, ']');
	json_close(json, '}');
}

static const char *scene_at(const struct scene *scene)
{
	static const char *const names[] = {
		[REPLAY_AT_PEAK] = "peak",
		[REPLAY_AT_TIME] = "time",
		[REPLAY_AT_RECORD] = "oom",
		[REPLAY_AT_END] = "end",
	};

	return names[scene->moment.at];
}

static void put_scene(
	struct html_data *data, const struct html_trace *trace, const struct scene *scene)
{
	struct json *json = &data->json;
	bool is_peak = scene->moment.at == REPLAY_AT_PEAK;

	json_open(json, NULL, '{');
	json_string(json, "at", scene_at(scene));
	json_number_or_null(json, "oom", scene->oom_number, scene->oom_number);
	json_number_or_null(
		json, "device", is_peak, roster_device_of(trace->roster, scene->moment.device));
	json_number(json, "time_ns", scene->time_ns);
	json_open(json, "rows", '[');
	for (size_t i = 0; i < scene->n_rows; i++) {
		html_put_number(data, scene->rows[i].row);
		html_put_number(data, (int64_t)scene->rows[i].bytes);
		html_put_number(data, (int64_t)scene->rows[i].count);
	}
	json_close(json, ']');
	if (scene->has_map)
		html_put_map(data, trace, &scene->map);
	else
		json_null(json, "map");
	json_close(json, '}');
}

static void put_place(struct html_data *data, const struct timeline_event *event)
{
	char name[256];

	model_place_text(&event->place, name, sizeof(name));
	html_put_number(data, (int64_t)html_text(data, export_name_set(&data->name, name)));
	html_put_number(data, (int64_t)event->begin_ns);
}

/* [name, begin, end or -1, thread, ...], and [name, time, ...]. */
static void put_places(struct html_data *data, const struct levels *levels)
{
	json_open(&data->json, "phases", '[');
	for (size_t i = 0; i < levels->phases.n_items; i++) {
		const struct timeline_event *phase = &levels->phases.items[i];

		put_place(data, phase);
		html_put_number(data, phase->is_open ? -1 : (int64_t)phase->end_ns);
		html_put_number(data, (int64_t)phase->thread_id);
	}
	json_close(&data->json, ']');
	json_open(&data->json, "marks", '[');
	for (size_t i = 0; i < levels->marks.n_items; i++)
		put_place(data, &levels->marks.items[i]);
	json_close(&data->json, ']');
	json_number(&data->json, "places_left_out",
		levels->phases.n_left_out + levels->marks.n_left_out);
}

static void put_trace(struct html_data *data, size_t index, const struct html_trace *trace)
{
	const struct roster *roster = trace->roster;
	struct json *json = &data->json;

	json_open(json, NULL, '{');
	json_string(json, "name", export_process_name(&trace->shown->overview->facts).text);
	json_number(json, "start_ns", trace->levels->start_ns);
	json_number(json, "end_ns", trace->levels->end_ns);
	json_number(json, "kept_from_ns", trace->levels->kept_from_ns);
	json_open(json, "devices", '[');
	for (size_t i = 0; i < roster->n_devices; i++)
		put_device(data, trace, &roster->devices[i]);
	json_close(json, ']');
	json_open(json, "rows", '[');
	for (size_t i = 0; i < roster->n_rows; i++)
		put_row(data, index, trace, &roster->rows[i]);
	json_close(json, ']');
	json_number(json, "rows_left_out", roster->n_left_out);
	html_put_levels(data, trace);
	json_open(json, "scenes", '[');
	for (size_t i = 0; i < trace->scenes->n_items; i++)
		put_scene(data, trace, &trace->scenes->items[i]);
	json_close(json, ']');
	put_places(data, trace->levels);
	html_put_labels(data, trace);
	json_close(json, '}');
}

void html_data_put(FILE *out, const struct html_trace *traces, size_t n)
{
	struct html_data data = {0};

	json_init(&data.json, out, true);
	data.json.in_html = true;
	json_open(&data.json, NULL, '{');
	json_string(&data.json, "schema", "vramtrace.page");
	json_number(&data.json, "version", 1);
	json_string(&data.json, "generator", "vramtrace " VT_VERSION);
	json_open(&data.json, "traces", '[');
	for (size_t i = 0; i < n; i++)
		put_trace(&data, i, &traces[i]);
	json_close(&data.json, ']');
	html_put_tables(&data);
	json_close(&data.json, '}');
	json_end(&data.json);
	html_data_release(&data);
}
