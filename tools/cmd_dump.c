#include "input.h"
#include "output/dump.h"

struct dumper {
	FILE *out;
	bool json;
	struct model
		*names; /* of the first pass: an entry point's name may come after its first use */
};

static void dump(void *user, const struct model *model, const struct vt_record *record)
{
	struct dumper *dumper = user;

	(void)model;
	if (dumper->json)
		dump_json(dumper->out, dumper->names, record);
	else
		dump_text(dumper->out, dumper->names, record);
}

int cmd_dump(const struct options *options)
{
	struct dumper dumper = {.json = options->json};
	struct input input;
	int error, status = input_open(&input, options);

	if (status)
		return status;
	dumper.out = output_open(options);
	if (!dumper.out) {
		input_close(&input);
		return STATUS_USAGE;
	}
	for (size_t i = 0; i < input.n_traces; i++) {
		struct replay *replay = input.traces[i].replay;

		dumper.names = replay_take_model(replay);
		error = replay_again(replay, dump, &dumper);
		model_free(dumper.names);
		if (error) {
			input_complain(replay->path, error);
			input.status = STATUS_UNREADABLE;
		}
	}
	input_complain_damage(&input, options);
	status = output_close(dumper.out, options);
	input_close(&input);
	return status ? status : input.status;
}
