#include <string.h>

#include "analysis/limits.h"
#include "input.h"
#include "output/leaks_text.h"
#include "output/line.h"

#define MAX_LABEL 200u

/* The line of an exceeded limit. */
struct line {
	FILE *out;
	const struct report_trace *trace;
	bool exceeded; /* any was */
};

static void begin(struct line *line)
{
	format_put_file(
		line->out, show_path(&line->trace->show, line->trace->overview->facts.file));
	fputs(": ", line->out);
	line->exceeded = true;
}

/* Its end: the limit, and where most of it is from. */
static void end(
	const struct line *line, const char *option, const char *limit, const struct leak *leak)
{
	struct stack_source source = report_stacks(line->trace);
	char label[MAX_LABEL];

	fprintf(line->out, ", more than %s (%s)", limit, option);
	if (leak) {
		stack_label(&source, leak->row.stack_id, label, sizeof(label));
		fputs(", most of it from ", line->out);
		format_put_text(line->out, (struct vt_text){label, strlen(label)});
	}
	fputc('\n', line->out);
}

static void check_peaks(struct line *line, const struct limit *limit)
{
	const struct model *model = line->trace->overview->replay->model;

	for (size_t i = 0; i <= model->n_devices && limit->given; i++) {
		const struct model_device *device =
			i < model->n_devices ? model->devices[i] : &model->unknown;

		if (device->peak_tracked_bytes <= limit->value)
			continue;
		begin(line);
		fprintf(line->out, "the peak of %s was %s",
			report_device_name(device->ordinal).text,
			format_bytes(device->peak_tracked_bytes).text);
		end(line, "--max-peak", format_bytes(limit->value).text, NULL);
	}
}

static void check_trace(struct line *line, const struct options *options)
{
	struct limit_sums sums;

	limit_sums_get(&sums, line->trace->overview);
	check_peaks(line, &options->max_peak);
	if (options->max_leak.given && sums.leak_bytes > options->max_leak.value) {
		begin(line);
		fprintf(line->out, "%s leaked", format_bytes(sums.leak_bytes).text);
		if (sums.unknown_bytes)
			fprintf(line->out, " (%s of it without a verdict: too little was seen)",
				format_bytes(sums.unknown_bytes).text);
		end(line, "--max-leak", format_bytes(options->max_leak.value).text, sums.largest);
	}
	if (options->max_live.given && sums.live_bytes > options->max_live.value) {
		begin(line);
		fprintf(line->out, "%s are live at the end", format_bytes(sums.live_bytes).text);
		end(line, "--max-live", format_bytes(options->max_live.value).text, NULL);
	}
	if (options->max_growth.given && sums.growth_bytes_per_s > options->max_growth.value) {
		begin(line);
		fprintf(line->out, "it grows by %s", leaks_rate(sums.growth_bytes_per_s).text);
		end(line, "--max-growth", leaks_rate(options->max_growth.value).text, sums.fastest);
	}
	if (options->no_oom && sums.n_refused) {
		begin(line);
		fprintf(line->out, "memory was refused %s %s (--no-oom)\n",
			format_count(sums.n_refused).text,
			line_plural(sums.n_refused, "time", "times"));
	}
}

/* Nothing is known of a program that went past the recorder: no limit was kept. */
static bool is_seen(const struct report_trace *trace)
{
	if (trace->overview->replay->model->hooks_active)
		return true;
	fprintf(stderr,
		"vramtrace: %s: the driver was reached past the recorder: nothing can be checked\n",
		trace->overview->facts.file);
	return false;
}

int cmd_check(const struct options *options)
{
	struct line line = {0};
	struct input input;
	int status;

	if (!options->max_peak.given && !options->max_leak.given && !options->max_live.given &&
		!options->max_growth.given && !options->no_oom) {
		fputs("vramtrace: check: no limit is given; see vramtrace check --help\n", stderr);
		return STATUS_USAGE;
	}
	status = input_open(&input, options);
	if (status)
		return status;
	status = input_suppress(&input, options);
	if (!status)
		status = input_overview(
			&input, &(struct input_wants){.findings = true, .leaks = true});
	line.out = status ? NULL : output_open(options);
	if (!line.out) {
		input_close(&input);
		return status ? status : STATUS_USAGE;
	}
	for (size_t i = 0; i < input.n_traces; i++) {
		line.trace = &input.shown[i];
		if (is_seen(line.trace))
			check_trace(&line, options);
		else
			input.status = STATUS_UNREADABLE;
	}
	input_complain_damage(&input, options);
	status = output_close(line.out, options);
	input_close(&input);
	return status	       ? status
	       : input.status  ? input.status
	       : line.exceeded ? STATUS_OVER_LIMIT
			       : STATUS_OK;
}
