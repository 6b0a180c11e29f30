/* One page for a browser, with everything inside. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "input.h"
#include "model/memory.h"
#include "output/html.h"
#include "pack/unpack.h"

/* What keeps a page to some megabytes, shared by its traces; and what each has at least. */
#define MAX_BINS  8192u
#define MIN_BINS  512u
#define MAX_LIVE  240000u
#define MIN_LIVE  4000u
#define MAX_SITES 3000u
#define MIN_SITES 100u
#define MAX_OOMS  8u
#define MAX_TIMES 7u
/* Rows of each table; of what the page shows in another way, some. */
#define MAX_ROWS    100u
#define MAX_HOLDERS 20u
#define MAX_PINNERS 5u

/* What of a trace is drawn, beside its overview. */
struct drawn {
	struct roster roster;
	struct levels levels;
	struct scene_list scenes;
};

static size_t part_of(size_t most, size_t n, size_t least)
{
	return most / n > least ? most / n : least;
}

static size_t count_devices(const struct input *input)
{
	size_t n = 0;

	for (size_t i = 0; i < input->n_traces; i++)
		n += input->traces[i].replay->model->n_devices;
	return n ? n : 1;
}

static int draw(struct drawn *drawn, const struct input *input, const struct input_trace *trace)
{
	struct owner_source owners = input_owners(trace);
	size_t n = input->n_traces;
	struct levels_limits limits = {
		.n_bins = part_of(MAX_BINS, count_devices(input), MIN_BINS),
		.n_live = part_of(MAX_LIVE, n, MIN_LIVE),
	};
	int error;

	roster_make(&drawn->roster, trace->replay->model, &trace->watch->history, &owners,
		part_of(MAX_SITES, n, MIN_SITES));
	error = levels_make(&drawn->levels, trace->replay, &drawn->roster, &limits);
	if (!error)
		error = scenes_make(&drawn->scenes, trace->replay, &drawn->roster,
			&trace->watch->episodes, part_of(MAX_OOMS, n, 1), MAX_TIMES / n);
	return error;
}

static void release(struct drawn *drawn, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		scenes_release(&drawn[i].scenes);
		levels_release(&drawn[i].levels);
		roster_release(&drawn[i].roster);
	}
	free(drawn);
}

/* Each row brings its stack along. */
static void limit_tables(struct overview *overview)
{
	struct site_filter rows = {.limit = MAX_ROWS}, holders = {.limit = MAX_HOLDERS},
			   pinners = {.limit = MAX_PINNERS};

	leak_list_filter(&overview->leaks, &rows);
	transfers_filter(&overview->transfers, &rows);
	for (size_t i = 0; i < overview->n_views; i++)
		site_list_filter(&overview->views[i].sites, &holders);
	oom_list_filter(&overview->ooms, &holders, 0);
	fragmentation_filter(&overview->fragmentation, &pinners);
	for (size_t i = 0; i < overview->ooms.n_items; i++)
		fragmentation_filter(&overview->ooms.items[i].levels, &pinners);
}

static int make(struct drawn *drawn, struct together *together, struct input *input,
	const struct options *options)
{
	int status = input_suppress(input, options);

	if (!status)
		status = input_overview(input,
			&(struct input_wants){.owners = true, .findings = true, .leaks = true});
	if (!status)
		status = input_together(input, together);
	for (size_t i = 0; i < input->n_traces && !status; i++) {
		int error = draw(&drawn[i], input, &input->traces[i]);

		limit_tables(&input->traces[i].overview);
		if (!error)
			continue;
		input_complain(input->traces[i].replay->path, error);
		status = STATUS_UNREADABLE;
	}
	return status;
}

static void put(FILE *out, const struct drawn *drawn, const struct together *together,
	const struct input *input)
{
	struct html_trace *traces = memory_new(input->n_traces, sizeof(*traces));

	for (size_t i = 0; i < input->n_traces; i++)
		traces[i] = (struct html_trace){
			.shown = &input->shown[i],
			.roster = &drawn[i].roster,
			.levels = &drawn[i].levels,
			.scenes = &drawn[i].scenes,
		};
	html_put(out, traces, input->n_traces, together);
	free(traces);
}

static size_t without(const char *path, size_t bytes, const char *ending)
{
	size_t n = strlen(ending);

	return bytes > n && !memcmp(path + bytes - n, ending, n) ? bytes - n : bytes;
}

/* "train.html" for "train.vt", "traces/vramtrace.html" for a folder. To be freed. */
static char *default_name(const char *path)
{
	struct stat st;
	bool is_folder = !stat(path, &st) && S_ISDIR(st.st_mode);
	char *name = memory_new(strlen(path) + sizeof("/vramtrace.html"), 1);
	size_t bytes = strlen(path);

	if (is_folder) {
		sprintf(name, "%s/vramtrace.html", path);
		return name;
	}
	bytes = without(path, bytes, PACK_ENDING);
	bytes = without(path, bytes, PACK_PLAIN_ENDING);
	sprintf(name, "%.*s.html", (int)bytes, path);
	return name;
}

/* Nothing that is there is overwritten unasked; what is no file, like a pipe, is written to. */
static bool may_write(const struct options *options)
{
	struct stat st;

	if (options->force || stat(options->output, &st) || !S_ISREG(st.st_mode))
		return true;
	input_complain_text(options->output, "is there already: not overwritten without --force");
	return false;
}

static int write_page(const struct drawn *drawn, const struct together *together,
	const struct input *input, const struct options *options)
{
	FILE *out = output_open(options);
	int status;

	if (!out)
		return STATUS_USAGE;
	put(out, drawn, together, input);
	status = output_close(out, options);
	if (!status && !options->quiet)
		input_complain_text(options->output, "written; open it in a browser");
	return status;
}

int cmd_html(const struct options *given)
{
	struct options options = *given;
	char *name = options.output ? NULL : default_name(options.arguments[0]);
	struct together together = {0};
	struct drawn *drawn;
	struct input input;
	int status;

	if (name)
		options.output = name;
	status = may_write(&options) ? input_open(&input, &options) : STATUS_USAGE;
	if (status) {
		free(name);
		return status;
	}
	drawn = memory_new(input.n_traces, sizeof(*drawn));
	status = make(drawn, &together, &input, &options);
	if (!status) {
		input_complain_damage(&input, &options);
		status = write_page(drawn, &together, &input, &options);
	}
	release(drawn, input.n_traces);
	together_release(&together);
	input_close(&input);
	free(name);
	return status ? status : input.status;
}
