#include "input.h"
#include "output/transfers_text.h"

int cmd_transfers(const struct options *options)
{
	struct replay_moment end = {.at = REPLAY_AT_END};
	struct input_wants wants = {.moments = &end, .n = 1, .owners = true};
	/* Of several traces the text shows so many in all. */
	struct site_filter filter = options->filter;
	struct input input;
	struct style style;
	FILE *out;
	int status = input_open(&input, options);

	if (status)
		return status;
	status = input_overview(&input, &wants);
	out = status ? NULL : output_open(options);
	if (!out) {
		input_close(&input);
		return status ? status : STATUS_USAGE;
	}
	style_init(&style, out, options->ascii);
	filter.limit = options->json ? options->filter.limit : 0;
	for (size_t i = 0; i < input.n_traces; i++)
		transfers_filter(&input.traces[i].overview.transfers, &filter);
	if (options->json)
		report_json(out, input.shown, input.n_traces, REPORT_TRANSFERS);
	else
		transfers_text(&style, input.shown, input.n_traces, options->filter.limit);
	status = output_close(out, options);
	input_close(&input);
	return status ? status : input.status;
}
