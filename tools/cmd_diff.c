#include "input.h"
#include "output/diff_text.h"

static struct replay_moment moment_of(const struct moment *given, const struct site_filter *filter)
{
	return (struct replay_moment){
		.at = given->given ? given->at : REPLAY_AT_END,
		.device = filter->device,
		.time_ns = given->ns,
	};
}

/* Both moments are looked at in each trace; of the first one that of --from is shown, of the last
 * one that of --to. */
static void show(FILE *out, const struct input *input, const struct options *options)
{
	struct site_filter filter = options->filter;
	struct diff diff = {0};
	struct diff_side sides[2];
	struct diff_shown shown[2];
	struct style style;

	for (size_t side = 0; side < 2; side++) {
		struct report_trace *trace = &input->shown[side ? input->n_traces - 1 : 0];

		shown[side] = (struct diff_shown){trace, &trace->overview->views[side]};
		sides[side] =
			(struct diff_side){&shown[side].view->sites, diff_key, diff_owner, trace};
		/* Of a peak there are only the sites that make it up. */
		filter.one_device =
			filter.one_device || shown[side].view->moment.at == REPLAY_AT_PEAK;
	}
	diff_make(&diff, sides);
	diff_filter(&diff, &filter);
	style_init(&style, out, options->ascii);
	if (options->json)
		diff_json(out, &diff, shown);
	else
		diff_text(&style, &diff, shown);
	diff_release(&diff);
}

static int complain(const char *what)
{
	fprintf(stderr, "vramtrace: diff: %s; see vramtrace diff --help\n", what);
	return STATUS_USAGE;
}

int cmd_diff(const struct options *options)
{
	struct replay_moment moments[] = {moment_of(&options->from, &options->filter),
		moment_of(&options->to, &options->filter)};
	struct input input;
	FILE *out;
	int status = input_open(&input, options);

	if (status)
		return status;
	if (input.status)
		status = input.status;
	else if (input.n_traces > 2)
		status = complain("more than two traces are given");
	else if (input.n_traces == 1 && !options->from.given)
		status = complain("one trace is given, and no --from");
	else
		status = input_overview(&input, &(struct input_wants){.moments = moments, .n = 2});
	out = status ? NULL : output_open(options);
	if (!out) {
		input_close(&input);
		return status ? status : STATUS_USAGE;
	}
	show(out, &input, options);
	input_complain_damage(&input, options);
	status = output_close(out, options);
	input_close(&input);
	return status;
}
