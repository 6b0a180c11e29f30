#include "input.h"
#include "output/info_text.h"

int cmd_info(const struct options *options)
{
	struct replay_moment end = {.at = REPLAY_AT_END};
	struct input input;
	struct style style;
	FILE *out;
	int status = input_open(&input, options);

	if (status)
		return status;
	status = input_overview(&input, &(struct input_wants){.moments = &end, .n = 1});
	out = status ? NULL : output_open(options);
	if (!out) {
		input_close(&input);
		return status ? status : STATUS_USAGE;
	}
	style_init(&style, out, options->ascii);
	if (options->json)
		info_json(out, input.shown, input.n_traces);
	for (size_t i = 0; i < input.n_traces && !options->json; i++) {
		if (i)
			fputc('\n', out);
		info_text(&style, &input.shown[i]);
	}
	status = output_close(out, options);
	input_close(&input);
	return status ? status : input.status;
}
