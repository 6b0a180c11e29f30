#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "input.h"
#include "launch.h"
#include "model/memory.h"
#include "model/progress.h"
#include "output/together_text.h"
#include "packing.h"

#define DEFAULT_PATTERN "vramtrace.%e.%p.vt"

/* The pattern as an absolute path, for the program may change its folder. To be freed. */
static char *absolute(const char *pattern)
{
	char folder[PATH_MAX], *path, *to;

	if (*pattern == '/' || !getcwd(folder, sizeof(folder)))
		return memory_text(pattern);
	path = memory_new(2 * strlen(folder) + strlen(pattern) + 2, 1);
	to = path;
	for (const char *from = folder; *from; from++) {
		*to++ = *from;
		if (*from == '%')
			*to++ = '%';
	}
	sprintf(to, "/%s", pattern);
	return path;
}

/* Better said now than found out after hours: the recorder itself says nothing under `run`. */
static bool can_write(const char *pattern)
{
	char *copy = memory_text(pattern), *folder = dirname(copy);
	struct stat st;
	bool can = true;

	if (!strchr(folder, '%') && (access(folder, W_OK | X_OK) || stat(folder, &st))) {
		fprintf(stderr,
			"vramtrace: %s: traces cannot be written there: %s; give another place "
			"with -o\n",
			folder, strerror(errno));
		can = false;
	} else if (!strchr(pattern, '%') && !stat(pattern, &st) && S_ISDIR(st.st_mode)) {
		fprintf(stderr, "vramtrace: %s: is a folder; give a file to -o\n", pattern);
		can = false;
	}
	free(copy);
	return can;
}

static void set_environment(const struct options *options, const char *pattern, const char *mark)
{
	for (size_t i = 0; i < options->n_variables; i++)
		setenv(options->variables[i].name, options->variables[i].value, 1);
	setenv("VRAMTRACE_OUTPUT", pattern, 1);
	setenv("VRAMTRACE_QUIET", "1", 1);
	setenv(LAUNCH_MARK, mark, 1);
}

static void make_mark(char *mark, size_t size)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(mark, size, "%ld.%lld.%09ld", (long)getpid(), (long long)now.tv_sec, now.tv_nsec);
}

/* As the user would type it. */
static const char *from_here(const char *path)
{
	char folder[PATH_MAX];
	size_t bytes;

	if (!getcwd(folder, sizeof(folder)))
		return path;
	bytes = strlen(folder);
	return !strncmp(path, folder, bytes) && path[bytes] == '/' ? path + bytes + 1 : path;
}

static void print_report(const struct options *options, char **paths, size_t n)
{
	struct together together = {0};
	struct input input = {0};
	struct style style;

	progress_show(true);
	for (size_t i = 0; i < n; i++)
		input_add(&input, from_here(paths[i]));
	if (input.n_traces && !input_suppress(&input, options) &&
		!input_overview(&input, &(struct input_wants){.findings = true, .leaks = true}) &&
		!input_together(&input, &together)) {
		style_init(&style, stdout, options->ascii);
		fputc('\n', stdout);
		together_text(&style, input.shown, input.n_traces, &together);
	}
	output_close(stdout, options);
	together_release(&together);
	input_close(&input);
}

/* Those that can be packed are from here on known by their new names. */
static void pack_traces(const struct options *options, char **paths, size_t n)
{
	progress_show(!options->quiet);
	for (size_t i = 0; i < n; i++) {
		char *packed = packing_exchange(from_here(paths[i]), options->quiet);

		if (!packed)
			continue;
		free(paths[i]);
		paths[i] = packed;
	}
}

static int exit_status(const struct launch_end *end)
{
	return end->signalled ? 128 + end->status : end->status;
}

/* A pattern that the user's own shell already holds is as good as -o. */
static char *choose_pattern(const struct options *options)
{
	const char *set = getenv("VRAMTRACE_OUTPUT");

	if (options->output)
		return absolute(options->output);
	return absolute(set && *set ? set : DEFAULT_PATTERN);
}

int cmd_run(const struct options *options)
{
	char *pattern = choose_pattern(options), *library = NULL, **arguments, **paths, mark[64];
	struct launch_end end;
	size_t n;

	if (can_write(pattern))
		library = launch_find_library();
	if (!library) {
		free(pattern);
		return STATUS_USAGE;
	}
	make_mark(mark, sizeof(mark));
	set_environment(options, pattern, mark);
	arguments = memory_new(options->n_arguments + 1, sizeof(*arguments));
	memcpy(arguments, options->arguments, options->n_arguments * sizeof(*arguments));
	end = launch_run(arguments, library);
	if (!end.started) {
		fprintf(stderr, "vramtrace: %s: %s\n", arguments[0], strerror(end.error));
		end = (struct launch_end){.status = end.error == ENOENT ? 127 : 126};
	} else {
		n = launch_find_traces(pattern, mark, &paths);
		launch_note_end(paths, n, &end);
		if (options->pack)
			pack_traces(options, paths, n);
		if (!n)
			fprintf(stderr,
				"vramtrace: %s made no call to the CUDA driver: there is nothing "
				"to report\n",
				arguments[0]);
		else if (!options->quiet)
			print_report(options, paths, n);
		for (size_t i = 0; i < n; i++)
			free(paths[i]);
		free(paths);
	}
	free(arguments);
	free(library);
	free(pattern);
	return exit_status(&end);
}
