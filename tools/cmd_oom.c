#include "input.h"
#include "output/oom_text.h"

int cmd_oom(const struct options *options)
{
	struct input input;
	struct style style;
	FILE *out;
	int status;

	if (options->at_given && options->at != REPLAY_AT_RECORD) {
		fputs("vramtrace: oom: --at takes oom or oom:N here; see vramtrace oom --help\n",
			stderr);
		return STATUS_USAGE;
	}
	status = input_open(&input, options);
	if (status)
		return status;
	status = input_findings(&input, options);
	out = status ? NULL : output_open(options);
	if (!out) {
		input_close(&input);
		return status ? status : STATUS_USAGE;
	}
	style_init(&style, out, options->ascii);
	if (options->json)
		report_json(out, input.shown, input.n_traces, REPORT_OOM);
	for (size_t i = 0; i < input.n_traces && !options->json; i++)
		oom_text(&style, &input.shown[i]);
	status = output_close(out, options);
	input_close(&input);
	return status ? status : input.status;
}
