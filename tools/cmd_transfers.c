#include "input.h"
#include "output/transfers_text.h"

int cmd_transfers(const struct options *options)
{
	struct replay_moment end = {.at = REPLAY_AT_END};
	struct input input;
	struct style style;
	FILE *out;
	int status = input_open(&input, options);

	if (status)
		return status;
	status = input_overview(&input, &end, 1, true);
	out = status ? NULL : output_open(options);
	if (!out) {
		input_close(&input);
		return status ? status : STATUS_USAGE;
	}
	style_init(&style, out, options->ascii);
	if (options->json)
		report_json(out, input.shown, input.n_traces, REPORT_TRANSFERS);
	else
		transfers_text(&style, input.shown, input.n_traces, &options->filter);
	status = output_close(out, options);
	input_close(&input);
	return status ? status : input.status;
}
