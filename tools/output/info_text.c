#include "output/info_text.h"

#include <inttypes.h>
#include <stdlib.h>
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

static void put_process(const struct style *style, const struct report_trace *trace)
{
	const struct overview *overview = trace->overview;
	const struct model *model = overview->replay->model;
	const struct vt_file_header *header = vt_reader_header(overview->replay->reader);

	put_key(style, "trace");
	format_put_file(style->out, show_path(&trace->show, overview->facts.file));
	fprintf(style->out, ", format %u, %s, %s in %" PRIu64 " chunks", header->format,
		overview->facts.complete ? "complete" : "not complete",
		format_bytes(vt_reader_size(overview->replay->reader)).text,
		(uint64_t)header->n_chunks);
	if (overview->replay->packed_bytes)
		fprintf(style->out, ", packed to %s",
			format_bytes(overview->replay->packed_bytes).text);
	fputc('\n', style->out);
	put_key(style, "started");
	fprintf(style->out, "%s\n", format_utc(header->start_realtime_ns).text);
	put_line(style, "executable", show_path_text(&trace->show, overview->facts.exe));
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
		format_put_text(style->out, show_path_text(&trace->show, model->driver.path));
		fputc('\n', style->out);
	}
}

static const char *outcome_text(size_t outcome)
{
	static const char *const texts[VT_N_PYTHON_OUTCOMES] = {
		[VT_PYTHON_CAPTURED] = "with Python frames",
		[VT_PYTHON_NO_THREAD] = "of threads that never ran Python",
		[VT_PYTHON_EMPTY] = "of threads that ran no Python then",
		[VT_PYTHON_FINALIZING] = "without: the interpreter was ending",
		[VT_PYTHON_INVALID] = "without: they could not be read",
		[VT_PYTHON_MISMATCH] =
			"of these, each counted once, whose native frames do not all match",
	};

	return texts[outcome];
}

/* Which interpreter there was, whether its frames were recorded, and how often. */
static void put_python(
	const struct style *style, const struct show *show, const struct model_python *python)
{
	if (python->seen) {
		put_key(style, "python");
		fputs(python->version ? format_python(python->version).text : "of unknown version",
			style->out);
		fputs(python->captured ? ", frames recorded" : ", frames not recorded", style->out);
		if (!python->captured && python->reason.bytes) {
			fputs(": ", style->out);
			show_put_sentence(style->out, show, python->reason);
		}
		fputc('\n', style->out);
	}
	for (size_t i = 0; i < VT_N_PYTHON_OUTCOMES; i++) {
		if (!python->n_stacks[i])
			continue;
		put_key(style, "");
		fprintf(style->out, "%s %s %s\n", format_count(python->n_stacks[i]).text,
			line_plural(python->n_stacks[i], "stack", "stacks"), outcome_text(i));
	}
}

static void put_environment(
	const struct style *style, const struct show *show, const struct model_texts *texts)
{
	for (size_t i = 0; i + 1 < texts->n_items; i += 2) {
		put_key(style, i ? "" : "environment");
		format_put_text(style->out, texts->items[i]);
		fputc('=', style->out);
		format_put_text(style->out, show_path_text(show, texts->items[i + 1]));
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

static void put_texts(const struct style *style, const char *key, const struct show *show,
	const struct model_texts *texts)
{
	for (size_t i = 0; i < texts->n_items; i++) {
		put_key(style, i ? "" : key);
		show_put_sentence(style->out, show, texts->items[i]);
		fputc('\n', style->out);
	}
}

static void put_unwind_check(const struct style *style, const struct model *model)
{
	const struct vt_rec_unwind_check *check = &model->unwind_check;

	if (!model->unwind_check_seen)
		return;
	put_key(style, "unwinder");
	fprintf(style->out,
		"compared with libunwind in %s stacks, %s of them left to it; different: %s\n",
		format_count(check->captures).text, format_count(check->delegated).text,
		format_count(check->differences).text);
}

void info_text(const struct style *style, const struct report_trace *trace)
{
	const struct model *model = trace->overview->replay->model;

	report_put_header(style, trace);
	fputc('\n', style->out);
	put_process(style, trace);
	for (size_t i = 0; i < model->n_devices; i++) {
		const struct model_device *device = model->devices[i];

		put_key(style, "device");
		fprintf(style->out, "%d  ", device->ordinal);
		format_put_text(style->out, device->name);
		if (device->total_bytes)
			fprintf(style->out, "  %s", format_bytes(device->total_bytes).text);
		fprintf(style->out, ", pages of %s\n", format_bytes(device->page_bytes).text);
	}
	put_python(style, &trace->show, &model->python);
	put_environment(style, &trace->show, &model->environment);
	put_counts(style, model);
	put_unwind_check(style, model);
	put_texts(style, "runtime", &trace->show, &model->runtimes);
	put_texts(style, "note", &trace->show, &model->notes);
	put_texts(style, "not recorded", &trace->show, &model->uncovered);
}

static void texts_json(struct json *json, const char *key, const struct show *show,
	const struct model_texts *texts)
{
	json_open(json, key, '[');
	for (size_t i = 0; i < texts->n_items; i++) {
		char *sentence = show_sentence(show, texts->items[i]);

		json_string(json, NULL, sentence);
		free(sentence);
	}
	json_close(json, ']');
}

/* Which interpreter there was; null when none was found. */
static void python_json(
	struct json *json, const struct show *show, const struct model_python *python)
{
	char *reason = show_sentence(show, python->reason);

	if (!python->seen) {
		json_null(json, "python");
	} else {
		json_open(json, "python", '{');
		json_string(json, "version",
			python->version ? format_python(python->version).text : NULL);
		json_bool(json, "captured", python->captured);
		json_string(json, "reason", python->captured || !*reason ? NULL : reason);
		json_close(json, '}');
	}
	free(reason);
	json_open(json, "python_stacks", '{');
	for (size_t i = 0; i < VT_N_PYTHON_OUTCOMES; i++)
		if (python->n_stacks[i])
			json_number(json, model_python_outcome_name(i), python->n_stacks[i]);
	json_close(json, '}');
}

static void environment_json(
	struct json *json, const struct show *show, const struct model_texts *texts)
{
	char name[256];

	json_open(json, "environment", '{');
	for (size_t i = 0; i + 1 < texts->n_items; i += 2) {
		size_t bytes = texts->items[i].bytes;

		if (bytes >= sizeof(name))
			continue;
		memcpy(name, texts->items[i].data, bytes);
		name[bytes] = 0;
		json_text(json, name, show_path_text(show, texts->items[i + 1]));
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

static void one_json(struct json *json, const struct report_trace *trace)
{
	const struct overview *overview = trace->overview;
	const struct show *show = &trace->show;
	const struct model *model = overview->replay->model;
	const struct vt_file_header *header = vt_reader_header(overview->replay->reader);
	const struct trace_facts *facts = &overview->facts;

	json_open(json, NULL, '{');
	json_string(json, "file", show_path(show, facts->file));
	json_number(json, "format", header->format);
	json_number(json, "size_bytes", vt_reader_size(overview->replay->reader));
	json_number_or_null(json, "packed_bytes", overview->replay->packed_bytes != 0,
		overview->replay->packed_bytes);
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
	python_json(json, show, &model->python);
	environment_json(json, show, &model->environment);
	counts_json(json, model);
	texts_json(json, "runtimes", show, &model->runtimes);
	texts_json(json, "notes", show, &model->notes);
	texts_json(json, "not_covered", show, &model->uncovered);
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
		one_json(&json, &traces[i]);
	json_close(&json, ']');
	json_close(&json, '}');
	json_end(&json);
}
