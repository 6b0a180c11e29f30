#include "analysis/whatif_report.h"
#include "input.h"
#include "output/whatif_text.h"

static void put(FILE *out, const struct options *options, const struct stack_source *source,
	const struct whatif_report *report)
{
	struct style style;

	style_init(&style, out, options->ascii);
	if (options->json)
		whatif_json(out, source, report);
	else
		whatif_text(&style, source, report);
}

int cmd_whatif(const struct options *options)
{
	const struct whatif_request request = {
		.device = options->filter.one_device ? options->filter.device : -1,
		.capacity_bytes = options->capacity_bytes,
		.settings = options->settings,
		.n_settings = options->n_settings,
		.sweep = options->sweep,
	};
	struct whatif_report report;
	struct stack_source source;
	struct input input;
	FILE *out;
	int status = input_open(&input, options), error;

	if (status)
		return status;
	if (input.n_traces > 1) {
		fputs("vramtrace: whatif: takes one trace; the folder holds several\n", stderr);
		input_close(&input);
		return STATUS_USAGE;
	}
	error = whatif_report_make(&report, input.traces[0].replay, &request);
	if (error)
		input_complain(input.traces[0].replay->path, error);
	out = error ? NULL : output_open(options);
	if (out) {
		source = (struct stack_source){
			input.traces[0].replay->model, input.traces[0].symbols, options->show};
		put(out, options, &source, &report);
		status = output_close(out, options);
	} else {
		status = error ? STATUS_UNREADABLE : STATUS_USAGE;
	}
	whatif_report_release(&report);
	input_close(&input);
	return status ? status : input.status;
}
