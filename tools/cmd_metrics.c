#include "input.h"
#include "output/metrics_text.h"

int cmd_metrics(const struct options *options)
{
	struct options resolved = *options;
	struct input input = {0};
	char **paths;
	FILE *out = NULL;
	int status = input_resolve(&resolved, &paths);

	if (!status)
		status = input_open(&input, &resolved);
	if (!status)
		status = input_overview(&input, &(struct input_wants){.owners = true});
	if (!status) {
		out = output_open(&resolved);
		status = out ? STATUS_OK : STATUS_USAGE;
	}
	if (out) {
		metrics_text(out, input.shown, input.n_traces);
		status = output_close(out, &resolved);
	}
	input_close(&input);
	input_resolved_release(&resolved, paths);
	return status ? status : input.status;
}
