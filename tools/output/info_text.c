#include "output/info_text.h"

#include <inttypes.h>
#include <string.h>

#include "output/line.h"
#include "trace/reader.h"
#include "trace/schema.h"

#define KEY_COLUMNS 14

static void put_key(const struct style *style, const char *key)
{
	fprintf(style->out, "%-*s", KEY_COLUMNS, key);
}

static void put_line(const struct style *style, const char *key, struct vt_text value)
{
	if (!value.bytes)
		return;
	put_key(style, key);
	format_put_text(style->out, value);
	fputc('\n', style->out);
}

static void put_process(const struct style *style, const struct overview *overview)
{
	const struct model *model = overview->replay->model;
	const struct vt_file_header *header = vt_reader_header(overview->replay->reader);

	put_key(style, "trace");
	format_put_file(style->out, overview->facts.file);
	fprintf(style->out, ", format %u, %s, %s in %" PRIu64 " chunks\n", header->format,
		overview->facts.complete ? "complete" : "not complete",
		format_bytes(vt_reader_size(overview->replay->reader)).text,
		(uint64_t)header->n_chunks);
	put_key(style, "started");
	fprintf(style->out, "%s\n", format_utc(header->start_realtime_ns).text);
	put_line(style, "executable", overview->facts.exe);
	if (model->process_seen) {
		put_key(style, "process");
		fprintf(style->out, "pid %" PRIu64 ", parent %" PRIu64 "\n", model->process.pid,
			model->process.ppid);
	}
	put_line(style, "recorder", model->process.recorder_version);
	if (model->driver_seen) {
		put_key(style, "driver");
		fprintf(style->out, "CUDA %" PRIu64 ".%" PRIu64 "  ", model->driver.version / 1000,
			model->driver.version % 1000 / 10);
		format_put_text(style->out, model->driver.path);
		fputc('\n', style->out);
	}
}

static void put_environment(const struct style *style, const struct model_texts *texts)
{
	for (size_t i = 0; i + 1 < texts->n_items; i += 2) {
		put_key(style, i ? "" : "environment");
		format_put_text(style->out, texts->items[i]);
		fputc('=', style->out);
		format_put_text(style->out, texts->items[i + 1]);
		fputc('\n', style->out);
	}
}

static void put_counts(const struct style *style, const struct model *model)
{
	const char *key = "records";

	for (unsigned int kind = 0; kind < VT_N_RECORDS; kind++) {
		if (!model->n_by_record[kind])
			continue;
		put_key(style, key);
		fprintf(style->out, "%-15s %12s\n", vt_schema_get(kind)->name,
			format_count(model->n_by_record[kind]).text);
		key = "";
	}
}

static void put_texts(const struct style *style, const char *key, const struct model_texts *texts)
{
	for (size_t i = 0; i < texts->n_items; i++) {
		put_key(style, i ? "" : key);
		format_put_text(style->out, texts->items[i]);
		fputc('\n', style->out);
	}
}

void info_text(const struct style *style, const struct report_trace *trace)
{
	const struct model *model = trace->overview->replay->model;

	report_put_header(style, trace);
	fputc('\n', style->out);
	put_process(style, trace->overview);
	for (size_t i = 0; i < model->n_devices; i++) {
		const struct model_device *device = model->devices[i];

		put_key(style, "device");
		fprintf(style->out, "%d  ", device->ordinal);
		format_put_text(style->out, device->name);
		if (device->total_bytes)
			fprintf(style->out, "  %s", format_bytes(device->total_bytes).text);
		fprintf(style->out, ", pages of %s\n", format_bytes(device->page_bytes).text);
	}
	put_environment(style, &model->environment);
	put_counts(style, model);
	put_texts(style, "runtime", &model->runtimes);
	put_texts(style, "note", &model->notes);
	put_texts(style, "not recorded", &model->uncovered);
}

static void texts_json(struct json *json, const char *key, const struct model_texts *texts)
{
	json_open(json, key, '[');
	for (size_t i = 0; i < texts->n_items; i++)
		json_text(json, NULL, texts->items[i]);
	json_close(json, ']');
}

static void environment_json(struct json *json, const struct model_texts *texts)
{
	char name[256];

	json_open(json, "environment", '{');
	for (size_t i = 0; i + 1 < texts->n_items; i += 2) {
		size_t bytes = texts->items[i].bytes;

		if (bytes >= sizeof(name))
			continue;
		memcpy(name, texts->items[i].data, bytes);
		name[bytes] = 0;
		json_text(json, name, texts->items[i + 1]);
	}
	json_close(json, '}');
}

static void counts_json(struct json *json, const struct model *model)
{
	json_open(json, "records", '{');
	for (unsigned int kind = 0; kind < VT_N_RECORDS; kind++)
		if (model->n_by_record[kind])
			json_number(json, vt_schema_get(kind)->name, model->n_by_record[kind]);
	json_close(json, '}');
}

static void devices_json(struct json *json, const struct model *model)
{
	json_open(json, "devices", '[');
	for (size_t i = 0; i < model->n_devices; i++) {
		const struct model_device *device = model->devices[i];

		json_open(json, NULL, '{');
		json_signed(json, "ordinal", device->ordinal);
		json_text(json, "name", device->name);
		json_number_or_null(
			json, "total_bytes", device->total_bytes != 0, device->total_bytes);
		json_number(json, "page_bytes", device->page_bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void one_json(struct json *json, const struct overview *overview)
{
	const struct model *model = overview->replay->model;
	const struct vt_file_header *header = vt_reader_header(overview->replay->reader);
	const struct trace_facts *facts = &overview->facts;

	json_open(json, NULL, '{');
	json_string(json, "file", facts->file);
	json_number(json, "format", header->format);
	json_number(json, "size_bytes", vt_reader_size(overview->replay->reader));
	json_number(json, "chunks", header->n_chunks);
	json_number(json, "pid", facts->pid);
	json_string(json, "start_time", format_utc(facts->start_realtime_ns).text);
	json_number(json, "duration_ns", facts->duration_ns);
	json_string(json, "end", trace_end_name(facts->end));
	json_bool(json, "complete", facts->complete);
	json_bool(json, "damaged", facts->damaged);
	json_number(json, "events", facts->n_events);
	json_number(json, "lost_events", facts->n_lost);
	json_string(json, "stopped", facts->stopped ? vt_error_text(facts->stopped) : NULL);
	json_text(json, "recorder_version", model->process.recorder_version);
	json_number_or_null(json, "driver_version", model->driver_seen, model->driver.version);
	devices_json(json, model);
	environment_json(json, &model->environment);
	counts_json(json, model);
	texts_json(json, "runtimes", &model->runtimes);
	texts_json(json, "notes", &model->notes);
	texts_json(json, "not_covered", &model->uncovered);
	json_close(json, '}');
}

void info_json(FILE *out, const struct report_trace *traces, size_t n)
{
	struct json json;

	json_init(&json, out, false);
	json_open(&json, NULL, '{');
	json_string(&json, "schema", "vramtrace.info");
	json_number(&json, "version", 1);
	json_open(&json, "traces", '[');
	for (size_t i = 0; i < n; i++)
		one_json(&json, traces[i].overview);
	json_close(&json, ']');
	json_close(&json, '}');
	json_end(&json);
}
