#include "input.h"

int cmd_snapshot(const struct options *options)
{
	struct options resolved = *options;
	char **paths;
	int status = input_resolve(&resolved, &paths);

	if (!status)
		status = cmd_report(&resolved);
	input_resolved_release(&resolved, paths);
	return status;
}
