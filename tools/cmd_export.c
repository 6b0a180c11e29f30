/* A trace's memory in the formats of other viewers. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporting.h"
#include "model/memory.h"

/* What a format can show. */
static const struct format {
	const char *name;
	int (*make)(struct exporter *exporter);
	bool of_moment;	   /* --at says which */
	bool many_at_once; /* several out-of-memory episodes in one document */
	bool one_trace;
} formats[] = {
	{"pprof", exporting_pprof, .of_moment = true},
	{"perfetto", exporting_perfetto, .of_moment = false},
	{"speedscope", exporting_speedscope, .of_moment = true, .many_at_once = true},
	{"collapsed", exporting_collapsed, .of_moment = true},
	{"torch-snapshot", exporting_torch_snapshot, .of_moment = true, .one_trace = true},
	{"csv", exporting_csv, .of_moment = false},
	{"jsonl", exporting_jsonl, .of_moment = false},
	{"json", exporting_jsonl, .of_moment = false},
};

static int refuse(const char *format, const char *why)
{
	fprintf(stderr, "vramtrace: export: %s%s%s\n", format, *format ? ": " : "", why);
	return STATUS_USAGE;
}

static const struct format *find_format(const char *name)
{
	for (size_t i = 0; name && i < sizeof(formats) / sizeof(*formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	fprintf(stderr, "vramtrace: export: %s; there are:",
		name ? "there is no such --format" : "--format FORMAT is missing");
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		fprintf(stderr, " %s", formats[i].name);
	fputc('\n', stderr);
	return NULL;
}

static void open_sources(
	struct exporter *exporter, const struct input *input, const struct format *format)
{
	exporter->n = input->n_traces;
	exporter->sources = memory_new(exporter->n, sizeof(*exporter->sources));
	for (size_t i = 0; i < exporter->n; i++) {
		struct export_source *source = &exporter->sources[i];
		struct replay *replay = input->traces[i].replay;

		source->input = &input->traces[i];
		trace_facts_get(&source->facts, replay);
		source->trace.facts = &source->facts;
		source->trace.source = (struct stack_source){
			replay->model, input->traces[i].symbols, exporter->options->show};
		if (format->of_moment)
			exporting_plan(source, exporter->options);
		else
			exporting_plan_all(source, exporter->options);
		source->trace.moments = source->moments;
	}
}

static void close_sources(struct exporter *exporter)
{
	for (size_t i = 0; i < exporter->n; i++) {
		struct export_source *source = &exporter->sources[i];

		for (size_t k = 0; k < source->trace.n_moments; k++)
			export_moment_release(&source->moments[k]);
		free(source->moments);
		model_free(source->names);
	}
	free(exporter->sources);
}

/* The moment of a snapshot: by default the end; of several peaks the highest one's. */
static void choose_time(struct exporter *exporter)
{
	const struct export_source *source = exporter->sources;
	uint64_t highest = 0;

	exporter->until_ns = UINT64_MAX;
	for (size_t i = 0; exporter->options->at_given && i < source->trace.n_moments; i++) {
		const struct export_moment *moment = &source->moments[i];
		const struct model_device *device =
			model_device_find(source->input->replay->model, moment->moment.device);

		if (moment->moment.at == REPLAY_AT_PEAK && device &&
			device->peak_tracked_bytes < highest)
			continue;
		highest = device ? device->peak_tracked_bytes : 0;
		exporter->until_ns = exporting_time(source, moment);
	}
}

/* Whether the format can show what is asked for; says why not. */
static int check(
	const struct exporter *exporter, const struct format *format, const struct input *input)
{
	const struct options *options = exporter->options;

	if (format->one_trace && exporter->n > 1)
		return refuse(format->name, "takes one trace");
	if (options->at_given && !format->of_moment)
		return refuse(format->name, "shows all of the time: it takes no --at");
	if (!options->at_given || options->at != REPLAY_AT_RECORD)
		return STATUS_OK;
	if (!input_has_ooms(input, options->oom_number))
		return STATUS_USAGE;
	for (size_t i = 0; i < exporter->n && !format->many_at_once; i++)
		if (exporter->sources[i].trace.n_moments > 1)
			return refuse(format->name,
				"shows one moment, and memory was refused more often: --at oom:1, "
				"--at oom:2, ...");
	return STATUS_OK;
}

static int write_document(
	struct exporter *exporter, const struct format *format, const struct options *options)
{
	int error;

	if (!options->output && isatty(STDOUT_FILENO) &&
		(format->make == exporting_pprof || format->make == exporting_perfetto ||
			format->make == exporting_torch_snapshot))
		return refuse(format->name, "is not for a terminal: -o FILE");
	exporter->out = output_open(options);
	if (!exporter->out)
		return STATUS_USAGE;
	error = format->make(exporter);
	if (error)
		input_complain(exporter->sources[0].input->replay->path, error);
	if (output_close(exporter->out, options))
		return STATUS_USAGE;
	return error ? STATUS_UNREADABLE : STATUS_OK;
}

int cmd_export(const struct options *options)
{
	const struct format *format = find_format(options->format);
	struct exporter exporter = {.options = options};
	struct input input;
	int status;

	if (!format)
		return STATUS_USAGE;
	status = input_open(&input, options);
	if (status)
		return status;
	open_sources(&exporter, &input, format);
	choose_time(&exporter);
	status = check(&exporter, format, &input);
	if (!status) {
		input_complain_damage(&input, options);
		status = write_document(&exporter, format, options);
	}
	close_sources(&exporter);
	input_close(&input);
	return status ? status : input.status;
}
