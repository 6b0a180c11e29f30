#include "input.h"
#include "output/together_text.h"

int cmd_report(const struct options *options)
{
	struct together together = {0};
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
	if (!status)
		status = input_together(&input, &together);
	out = status ? NULL : output_open(options);
	if (!out) {
		together_release(&together);
		input_close(&input);
		return status ? status : STATUS_USAGE;
	}
	style_init(&style, out, options->ascii);
	if (options->json)
		report_json_together(out, input.shown, input.n_traces, &together);
	else
		together_text(&style, input.shown, input.n_traces, &together);
	status = output_close(out, options);
	together_release(&together);
	input_close(&input);
	return status ? status : input.status;
}
