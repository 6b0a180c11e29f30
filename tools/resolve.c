/* Process ids in the place of traces. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input.h"
#include "model/memory.h"
#include "running.h"

struct resolved {
	char **paths;
	size_t n;
	size_t room;
};

static void add(struct resolved *resolved, char *path)
{
	resolved->paths = memory_grow(
		resolved->paths, resolved->n, &resolved->room, sizeof(*resolved->paths));
	resolved->paths[resolved->n++] = path;
}

static int add_process(struct resolved *resolved, const char *text)
{
	char **paths;
	size_t n = running_find_traces(running_pid(text), &paths);

	if (!n)
		input_complain_text(text, errno == ENOENT ? "there is no such process"
					  : errno	  ? strerror(errno)
						  : "this process writes no trace: it is not "
						    "recorded, or has not used CUDA yet");
	for (size_t i = 0; i < n; i++)
		add(resolved, paths[i]);
	free(paths);
	return n ? STATUS_OK : STATUS_UNREADABLE;
}

int input_resolve(struct options *options, char ***paths)
{
	struct resolved resolved = {0};
	int status = STATUS_OK;

	for (size_t i = 0; i < options->n_arguments; i++) {
		char *argument = options->arguments[i];

		/* A file of that name is meant as one. */
		if (running_pid(argument) && access(argument, F_OK)) {
			int error = add_process(&resolved, argument);

			status = status ? status : error;
		} else {
			add(&resolved, memory_text(argument));
		}
	}
	options->arguments = *paths = resolved.paths;
	options->n_arguments = resolved.n;
	return status;
}

void input_resolved_release(struct options *options, char **paths)
{
	for (size_t i = 0; i < options->n_arguments; i++)
		free(paths[i]);
	free(paths);
}
