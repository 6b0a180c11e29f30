#include "input.h"

int cmd_report(const struct options *options)
{
	struct input input;
	struct style style;
	FILE *out;
	int status = input_open(&input, options);

	if (status)
		return status;
	status = input_suppress(&input, options);
	if (!status)
		status = input_overview(
			&input, &(struct input_wants){
					.owners = options->json, .findings = true, .leaks = true});
	out = status ? NULL : output_open(options);
	if (!out) {
		input_close(&input);
		return status ? status : STATUS_USAGE;
	}
	style_init(&style, out, options->ascii);
	if (options->json)
		report_json(out, input.shown, input.n_traces, REPORT_ALL);
	for (size_t i = 0; i < input.n_traces && !options->json; i++) {
		if (i)
			fputc('\n', out);
		report_text(&style, &input.shown[i]);
	}
	status = output_close(out, options);
	input_close(&input);
	return status ? status : input.status;
}
