#include "output/export.h"
#include "output/export_stack.h"
#include "output/intern.h"
#include "output/json.h"
#include "output/report.h"

#include <stdlib.h>
#include <string.h>

#include "model/memory.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct known_frame {
	const struct symbol_frame *frame;
	const struct show *show;
};

struct speedscope {
	struct json json;
	struct intern_table numbers;
	struct known_frame *frames; /* in the order of their numbers */
	size_t n_frames, room;
	struct export_labels labels;
	struct export_stack stack;
	struct export_name name;
};

/* What a profile's weights are. */
static const struct metric {
	const char *name;
	size_t offset; /* in struct export_site */
} metrics[] = {
	{"live", offsetof(struct export_site, live_bytes)},
	{"allocated until then", offsetof(struct export_site, alloc_bytes)},
};

static uint64_t weight_of(const struct export_site *site, const struct metric *metric)
{
	return *(const uint64_t *)(const void *)((const char *)site + metric->offset);
}

static uint64_t number_of(
	struct speedscope *speedscope, const struct show *show, const struct symbol_frame *frame)
{
	bool is_new;
	uint64_t number = intern_number(&speedscope->numbers, (uintptr_t)frame, &is_new);

	if (is_new) {
		speedscope->frames = memory_grow(speedscope->frames, speedscope->n_frames,
			&speedscope->room, sizeof(*speedscope->frames));
		speedscope->frames[speedscope->n_frames++] = (struct known_frame){frame, show};
	}
	return number - 1;
}

static void put_sample(struct speedscope *speedscope, const struct export_trace *trace,
	const struct export_site *site)
{
	export_stack_of_site(&speedscope->stack, &speedscope->labels, &trace->source, site);
	json_open(&speedscope->json, NULL, '[');
	for (size_t i = speedscope->stack.n_frames; i--;)
		json_number(&speedscope->json, NULL,
			number_of(speedscope, &trace->source.show, speedscope->stack.frames[i]));
	json_close(&speedscope->json, ']');
}

static void put_profile(struct speedscope *speedscope, const struct export_trace *trace,
	const struct export_moment *moment, int device, const struct metric *metric)
{
	struct json *json = &speedscope->json;
	uint64_t sum = 0;
	char name[300];

	snprintf(name, sizeof(name), "%s, %s, %s: %s", report_device_name(device).text,
		metric->name, export_process_name(trace->facts).text,
		export_moment_name(moment).text);
	json_open(json, NULL, '{');
	json_string(json, "type", "sampled");
	json_string(json, "name", name);
	json_string(json, "unit", "bytes");
	json_open(json, "samples", '[');
	for (size_t i = 0; i < moment->n_sites; i++)
		if (moment->sites[i].device == device && weight_of(&moment->sites[i], metric))
			put_sample(speedscope, trace, &moment->sites[i]);
	json_close(json, ']');
	json_open(json, "weights", '[');
	for (size_t i = 0; i < moment->n_sites; i++) {
		uint64_t weight = weight_of(&moment->sites[i], metric);

		if (moment->sites[i].device != device || !weight)
			continue;
		json_number(json, NULL, weight);
		sum += weight;
	}
	json_close(json, ']');
	json_number(json, "startValue", 0);
	json_number(json, "endValue", sum);
	json_close(json, '}');
}

/* The devices of a moment's sites, in order, each once. */
static size_t devices_of(const struct export_moment *moment, int **devices)
{
	size_t n = 0, room = 0;

	*devices = NULL;
	for (size_t i = 0; i < moment->n_sites; i++) {
		size_t k = 0;

		while (k < n && (*devices)[k] != moment->sites[i].device)
			k++;
		if (k < n)
			continue;
		*devices = memory_grow(*devices, n, &room, sizeof(**devices));
		(*devices)[n++] = moment->sites[i].device;
	}
	return n;
}

static void put_moment(struct speedscope *speedscope, const struct export_trace *trace,
	const struct export_moment *moment)
{
	int *devices;
	size_t n = devices_of(moment, &devices);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(metrics) / sizeof(*metrics); k++)
			put_profile(speedscope, trace, moment, devices[i], &metrics[k]);
	free(devices);
}

static void put_frames(struct speedscope *speedscope)
{
	struct json *json = &speedscope->json;

	json_open(json, "shared", '{');
	json_open(json, "frames", '[');
	for (size_t i = 0; i < speedscope->n_frames; i++) {
		const struct symbol_frame *frame = speedscope->frames[i].frame;
		const struct show *show = speedscope->frames[i].show;
		const char *file;

		json_open(json, NULL, '{');
		json_string(json, "name", export_frame_name(&speedscope->name, show, frame));
		file = export_frame_file(&speedscope->name, show, frame);
		if (!file && frame->module)
			file = export_name_set(&speedscope->name, show_path(show, frame->module));
		if (file)
			json_string(json, "file", file);
		if (frame->file && frame->line)
			json_number(json, "line", frame->line);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

void export_speedscope(FILE *out, const struct export_trace *traces, size_t n)
{
	struct speedscope speedscope = {0};

	json_init(&speedscope.json, out, true);
	json_open(&speedscope.json, NULL, '{');
	json_string(&speedscope.json, "$schema", SCHEMA);
	json_string(&speedscope.json, "exporter", "vramtrace " VT_VERSION);
	json_open(&speedscope.json, "profiles", '[');
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < traces[i].n_moments; k++)
			put_moment(&speedscope, &traces[i], &traces[i].moments[k]);
	json_close(&speedscope.json, ']');
	put_frames(&speedscope);
	json_close(&speedscope.json, '}');
	json_end(&speedscope.json);
	intern_release(&speedscope.numbers);
	free(speedscope.frames);
	export_labels_release(&speedscope.labels);
	export_stack_release(&speedscope.stack);
	export_name_release(&speedscope.name);
}
