#include "input.h"
#include "output/timeline_svg.h"
#include "output/timeline_text.h"

#define DEFAULT_POINTS 1000u

static void print(FILE *out, const struct style *style, const struct options *options,
	const struct timeline *timeline, const struct replay *replay)
{
	if (options->csv)
		timeline_csv(out, timeline);
	else if (options->svg)
		timeline_svg(out, timeline, replay->model);
	else if (options->json)
		timeline_json(out, timeline, replay->path);
	else
		timeline_text(style, timeline, replay->model);
}

int cmd_timeline(const struct options *options)
{
	struct replay *replay;
	struct timeline timeline;
	struct owner_source owners;
	struct input input;
	struct style style;
	size_t n_points = options->n_points;
	FILE *out;
	int error, status = input_open(&input, options);

	if (status)
		return status;
	out = output_open(options);
	if (!out) {
		input_close(&input);
		return STATUS_USAGE;
	}
	style_init(&style, out, options->ascii);
	if (!n_points)
		n_points = options->csv || options->json || options->svg ? DEFAULT_POINTS
									 : timeline_columns(&style);
	for (size_t i = 0; i < input.n_traces; i++) {
		replay = input.traces[i].replay;
		owners = input_owners(&input.traces[i]);
		error = timeline_make(&timeline, replay, n_points,
			&(struct timeline_also){&owners, &input.traces[i].watch->episodes});
		if (error) {
			input_complain(replay->path, error);
			input.status = STATUS_UNREADABLE;
			continue;
		}
		print(out, &style, options, &timeline, replay);
		timeline_release(&timeline);
	}
	input_complain_damage(&input, options);
	status = output_close(out, options);
	input_close(&input);
	return status ? status : input.status;
}
