#include "input.h"
#include "output/leaks_text.h"
#include "output/sites_text.h"

int cmd_leaks(const struct options *options)
{
	bool at_end = !options->at_given || options->at == REPLAY_AT_END;
	struct input input;
	struct style style;
	FILE *out;
	int status;

	if (options->sanitizer && (options->json || !at_end)) {
		fputs("vramtrace: leaks: --style=sanitizer is text, of the end; see vramtrace "
		      "leaks --help\n",
			stderr);
		return STATUS_USAGE;
	}
	status = input_open(&input, options);
	if (status)
		return status;
	status = input_suppress(&input, options);
	if (!status)
		status = input_overview_at(
			&input, options, REPLAY_AT_END, &(struct input_wants){.leaks = at_end});
	out = status ? NULL : output_open(options);
	if (!out) {
		input_close(&input);
		return status ? status : STATUS_USAGE;
	}
	style_init(&style, out, options->ascii);
	for (size_t i = 0; i < input.n_traces; i++) {
		if (options->json) {
			if (!at_end)
				overview_end_from_views(&input.traces[i].overview);
		} else if (options->sanitizer) {
			leaks_sanitizer(out, &input.shown[i]);
		} else if (at_end) {
			leaks_text(&style, &input.shown[i]);
		} else {
			sites_text_views(&style, &input.shown[i]);
		}
	}
	if (options->json)
		report_json(out, input.shown, input.n_traces, REPORT_LEAKS);
	status = output_close(out, options);
	input_close(&input);
	return status ? status : input.status;
}
