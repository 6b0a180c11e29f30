/* Timelines for machines: CSV and JSON. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/memory.h"
#include "output/csv.h"
#include "output/export_stack.h"
#include "output/json_phases.h"
#include "output/timeline_text.h"

/* Kinds that have a column of their own. */
static const uint32_t shown_kinds[] = {
	VT_KIND_LINEAR, VT_KIND_ARRAY, VT_KIND_POOL, VT_KIND_VMM, VT_KIND_MANAGED, VT_KIND_GRAPH};
#define N_SHOWN (sizeof(shown_kinds) / sizeof(*shown_kinds))

static const char *owner_name(const struct timeline_device *device, size_t owner)
{
	return device->owners[owner] ? device->owners[owner] : "unknown";
}

/* A field that is empty when it is not known. */
static void put_known(FILE *out, bool known, uint64_t bytes)
{
	fputc(',', out);
	if (known)
		fprintf(out, "%" PRIu64, bytes);
}

static void put_host(FILE *out, const struct vt_rec_host_memory *host)
{
	put_known(out, host->known & VT_HOST_RESIDENT, host->resident_bytes);
	put_known(out, host->known & VT_HOST_LOCKED, host->locked_bytes);
	put_known(out, host->known & VT_HOST_AVAILABLE, host->available_bytes);
	put_known(out, host->known & VT_HOST_SWAP, model_swap_used(host));
}

/* The owners of all devices, each once: they have columns of their own. */
struct owner_names {
	const char **items;
	size_t n_items, room;
};

static void add_names(struct owner_names *names, const struct timeline_device *device)
{
	for (size_t i = 0; i < device->n_owners; i++) {
		const char *name = owner_name(device, i);
		size_t k = 0;

		while (k < names->n_items && strcmp(names->items[k], name) != 0)
			k++;
		if (k < names->n_items)
			continue;
		names->items = memory_grow(
			names->items, names->n_items, &names->room, sizeof(*names->items));
		names->items[names->n_items++] = name;
	}
}

static void put_head(FILE *out, const struct owner_names *names)
{
	struct export_name clean = {0};

	fputs("time_ns,device,tracked_bytes", out);
	for (size_t k = 0; k < N_SHOWN; k++)
		fprintf(out, ",%s_bytes", model_kind_name(shown_kinds[k]));
	fputs(",device_used_bytes,untracked_bytes,other_processes_bytes,unexplained_bytes", out);
	fputs(",resident_bytes,locked_bytes,machine_available_bytes,machine_swap_used_bytes", out);
	fputs(",live_bytes,refused", out);
	for (size_t i = 0; i < names->n_items; i++) {
		char name[200];

		snprintf(name, sizeof(name), "owner %.180s bytes", names->items[i]);
		fputc(',', out);
		csv_put(out, export_name_set(&clean, name));
	}
	fputc('\n', out);
	export_name_release(&clean);
}

static void put_owners(FILE *out, const struct owner_names *names,
	const struct timeline_device *device, const struct timeline_column *column)
{
	for (size_t i = 0; i < names->n_items; i++) {
		uint64_t bytes = 0;

		for (size_t k = 0; k < device->n_owners; k++)
			if (!strcmp(owner_name(device, k), names->items[i]))
				bytes += column->owner_bytes[k];
		fprintf(out, ",%" PRIu64, bytes);
	}
}

static void put_row(FILE *out, const struct timeline *timeline, const struct owner_names *names,
	const struct timeline_device *device, size_t index)
{
	const struct timeline_column *column = &device->columns[index];

	fprintf(out, "%" PRIu64 ",", timeline->start_ns + index * timeline->column_ns);
	if (device->ordinal >= 0)
		fprintf(out, "%d", device->ordinal);
	fprintf(out, ",%" PRIu64, column->tracked_bytes);
	for (size_t k = 0; k < N_SHOWN; k++)
		fprintf(out, ",%" PRIu64, column->kind_bytes[shown_kinds[k]]);
	if (column->used_known)
		fprintf(out, ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",%" PRId64, column->used_bytes,
			column->untracked_bytes, column->others_bytes, column->unexplained_bytes);
	else
		fputs(",,,,", out);
	put_host(out, &timeline->host[index]);
	fprintf(out, ",%" PRIu64 ",%" PRIu64, column->live_bytes, column->n_refused);
	put_owners(out, names, device, column);
	fputc('\n', out);
}

void timeline_csv(FILE *out, const struct timeline *timeline)
{
	struct owner_names names = {0};

	for (size_t i = 0; i < timeline->n_devices; i++)
		add_names(&names, &timeline->devices[i]);
	put_head(out, &names);
	for (size_t i = 0; i < timeline->n_devices; i++)
		for (size_t c = 0; c < timeline->n_columns; c++)
			put_row(out, timeline, &names, &timeline->devices[i], c);
	free(names.items);
}

static void column_json(struct json *json, const struct timeline *timeline,
	const struct timeline_device *device, size_t index)
{
	const struct timeline_column *column = &device->columns[index];

	json_open(json, NULL, '{');
	json_number(json, "time_ns", timeline->start_ns + index * timeline->column_ns);
	json_number(json, "tracked_bytes", column->tracked_bytes);
	json_open(json, "by_kind", '{');
	for (size_t k = 0; k < N_SHOWN; k++)
		json_number(
			json, model_kind_name(shown_kinds[k]), column->kind_bytes[shown_kinds[k]]);
	json_close(json, '}');
	json_number(json, "live_bytes", column->live_bytes);
	json_open(json, "by_owner", '{');
	for (size_t k = 0; k < device->n_owners; k++)
		json_number(json, owner_name(device, k), column->owner_bytes[k]);
	json_close(json, '}');
	json_number(json, "refused", column->n_refused);
	json_number_or_null(json, "device_used_bytes", column->used_known, column->used_bytes);
	json_signed_or_null(json, "untracked_bytes", column->used_known, column->untracked_bytes);
	json_signed_or_null(
		json, "other_processes_bytes", column->used_known, column->others_bytes);
	json_signed_or_null(
		json, "unexplained_bytes", column->used_known, column->unexplained_bytes);
	json_close(json, '}');
}

static void host_json(struct json *json, const struct timeline *timeline)
{
	json_open(json, "host", '[');
	for (size_t c = 0; c < timeline->n_columns; c++) {
		json_open(json, NULL, '{');
		json_number(json, "time_ns", timeline->start_ns + c * timeline->column_ns);
		json_host_sample(json, &timeline->host[c]);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void events_json(
	struct json *json, const char *key, const struct timeline_events *events, bool phases)
{
	char name[520];

	json_open(json, key, '[');
	for (size_t i = 0; i < events->n_items; i++) {
		const struct timeline_event *event = &events->items[i];

		json_open(json, NULL, '{');
		json_string(json, "name", model_place_text(&event->place, name, sizeof(name)));
		json_number(json, "thread", event->thread_id);
		json_number(json, phases ? "begin_ns" : "time_ns", event->begin_ns);
		if (phases)
			json_number_or_null(json, "end_ns", !event->is_open, event->end_ns);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void timeline_json(FILE *out, const struct timeline *timeline, const char *file)
{
	struct json json;

	json_init(&json, out, false);
	json_open(&json, NULL, '{');
	json_string(&json, "schema", "vramtrace.timeline");
	json_number(&json, "version", 1);
	json_string(&json, "file", file);
	json_number(&json, "column_ns", timeline->column_ns);
	json_open(&json, "devices", '[');
	for (size_t i = 0; i < timeline->n_devices; i++) {
		const struct timeline_device *device = &timeline->devices[i];

		json_open(&json, NULL, '{');
		json_number_or_null(
			&json, "ordinal", device->ordinal >= 0, (uint64_t)device->ordinal);
		json_open(&json, "columns", '[');
		for (size_t c = 0; c < timeline->n_columns; c++)
			column_json(&json, timeline, device, c);
		json_close(&json, ']');
		json_close(&json, '}');
	}
	json_close(&json, ']');
	host_json(&json, timeline);
	events_json(&json, "marks", &timeline->marks, false);
	events_json(&json, "phases", &timeline->phases, true);
	json_number(&json, "marks_left_out", timeline->marks.n_left_out);
	json_number(&json, "phases_left_out", timeline->phases.n_left_out);
	json_close(&json, '}');
	json_end(&json);
}
