#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "input.h"
#include "model/memory.h"
#include "model/progress.h"
#include "pack/unpack.h"
#include "packing.h"

struct packer {
	const struct options *options;
	bool into_folder; /* that -o names */
	size_t n_packed;
	int status; /* the worst of all */
};

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool is_packed_name(const char *path)
{
	size_t bytes = strlen(path), ending = strlen(PACK_ENDING);

	return bytes > ending && !strcmp(path + bytes - ending, PACK_ENDING);
}

/* What the packed trace is to be called. To be freed. */
static char *output_of(const struct packer *packer, const char *path)
{
	const char *given = packer->options->output;
	char *output;

	if (given && !packer->into_folder)
		return memory_text(given);
	output = memory_new((given ? strlen(given) : 0) + strlen(path) + 16, 1);
	if (given)
		sprintf(output, "%s/%s" PACK_ENDING, given, last_part(path));
	else
		sprintf(output, "%s" PACK_ENDING, path);
	return output;
}

static void pack_each(void *user, const char *path, bool in_folder)
{
	struct packer *packer = user;
	struct packing_options options = {
		.replace = packer->options->force, .quiet = packer->options->quiet};
	char *output;
	int status;

	/* A folder may be packed again and again, as traces come to it. */
	if (in_folder && is_packed_name(path))
		return;
	output = output_of(packer, path);
	status = packing_pack(path, output, &options);
	if (status > packer->status)
		packer->status = status;
	packer->n_packed++;
	free(output);
}

int cmd_pack(const struct options *options)
{
	struct packer packer = {.options = options};
	bool several = options->n_arguments > 1 || is_folder(options->arguments[0]);
	int status;

	packer.into_folder = options->output && is_folder(options->output);
	if (several && options->output && !packer.into_folder) {
		input_complain_text(
			options->output, "is no folder: several traces do not go into one file");
		return STATUS_USAGE;
	}
	progress_show(!options->quiet);
	status = input_each(options, pack_each, &packer);
	if (!status && !packer.n_packed && !options->quiet)
		input_complain_text(options->arguments[0], "all its traces are packed already");
	return status > packer.status ? status : packer.status;
}
