#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/episodes.h"
#include "cmd.h"
#include "values.h"

#define MAX_POINTS 1000000u

/* Sets one option. value is NULL when it takes none. False: the value makes no sense. */
typedef bool option_set(struct options *options, const char *value);

static bool set_json(struct options *options, const char *value)
{
	(void)value;
	return options->json = true;
}

static bool set_quiet(struct options *options, const char *value)
{
	(void)value;
	return options->quiet = true;
}

static bool set_help(struct options *options, const char *value)
{
	(void)value;
	return options->help = true;
}

static bool set_force(struct options *options, const char *value)
{
	(void)value;
	return options->force = true;
}

static bool set_pack(struct options *options, const char *value)
{
	(void)value;
	return options->pack = true;
}

static bool set_once(struct options *options, const char *value)
{
	(void)value;
	return options->once = true;
}

static bool set_csv(struct options *options, const char *value)
{
	(void)value;
	return options->csv = true;
}

static bool set_svg(struct options *options, const char *value)
{
	options->output = value;
	return options->svg = *value;
}

static bool set_ascii(struct options *options, const char *value)
{
	(void)value;
	return options->ascii = true;
}

static bool set_all_frames(struct options *options, const char *value)
{
	(void)value;
	return options->show.all_frames = true;
}

static bool set_show_paths(struct options *options, const char *value)
{
	(void)value;
	options->show.paths = SHOW_WHOLE_PATHS;
	return options->show_paths = true;
}

static bool set_hide_paths(struct options *options, const char *value)
{
	(void)value;
	options->show.paths = SHOW_NO_PATHS;
	return options->hide_paths = true;
}

static bool set_output(struct options *options, const char *value)
{
	options->output = value;
	return *value;
}

static bool set_format(struct options *options, const char *value)
{
	options->format = value;
	return *value;
}

static bool set_device(struct options *options, const char *value)
{
	uint64_t number;

	if (!value_number(value, 1023, &number))
		return false;
	options->filter.one_device = true;
	options->filter.device = (int)number;
	return true;
}

static bool set_limit(struct options *options, const char *value)
{
	uint64_t number;

	if (!value_number(value, SIZE_MAX, &number))
		return false;
	options->filter.limit = number;
	return true;
}

static bool set_min_bytes(struct options *options, const char *value)
{
	return value_bytes(value, &options->filter.min_bytes);
}

static bool set_at(struct options *options, const char *value)
{
	uint64_t number = 0;

	options->at_given = true;
	if (!strcmp(value, "oom") ||
		(!strncmp(value, "oom:", 4) && value_number(value + 4, EPISODES_MAX, &number) &&
			number)) {
		options->at = REPLAY_AT_RECORD;
		options->oom_number = number;
		return true;
	}
	if (!strcmp(value, "peak"))
		options->at = REPLAY_AT_PEAK;
	else if (!strcmp(value, "end"))
		options->at = REPLAY_AT_END;
	else if (value_time(value, &options->at_ns))
		options->at = REPLAY_AT_TIME;
	else
		return false;
	return true;
}

/* KEY=VALUE; ':' is how PyTorch writes it. */
static bool set_setting(struct options *options, const char *value)
{
	size_t n_key = strcspn(value, ":=");

	if (!n_key || !value[n_key] || !value[n_key + 1] || options->n_settings == MAX_SETTINGS)
		return false;
	options->settings[options->n_settings++] = value;
	return true;
}

static bool set_sweep(struct options *options, const char *value)
{
	(void)value;
	return options->sweep = true;
}

static bool set_capacity(struct options *options, const char *value)
{
	return value_bytes(value, &options->capacity_bytes) && options->capacity_bytes;
}

static bool set_suppressions(struct options *options, const char *value)
{
	options->suppressions = value;
	return *value;
}

static bool set_style(struct options *options, const char *value)
{
	options->sanitizer = !strcmp(value, "sanitizer");
	return options->sanitizer;
}

static bool set_limit_of(struct limit *limit, bool is_valid)
{
	limit->given = is_valid;
	return is_valid;
}

static bool set_max_peak(struct options *options, const char *value)
{
	return set_limit_of(&options->max_peak, value_bytes(value, &options->max_peak.value));
}

static bool set_max_leak(struct options *options, const char *value)
{
	return set_limit_of(&options->max_leak, value_bytes(value, &options->max_leak.value));
}

static bool set_max_live(struct options *options, const char *value)
{
	return set_limit_of(&options->max_live, value_bytes(value, &options->max_live.value));
}

static bool set_max_growth(struct options *options, const char *value)
{
	return set_limit_of(&options->max_growth, value_rate(value, &options->max_growth.value));
}

static bool set_no_oom(struct options *options, const char *value)
{
	(void)value;
	return options->no_oom = true;
}

static bool set_moment(struct moment *moment, const char *value)
{
	moment->given = true;
	if (!strcmp(value, "peak"))
		moment->at = REPLAY_AT_PEAK;
	else if (!strcmp(value, "end"))
		moment->at = REPLAY_AT_END;
	else if (value_time(value, &moment->ns))
		moment->at = REPLAY_AT_TIME;
	else
		return false;
	return true;
}

static bool set_from(struct options *options, const char *value)
{
	return set_moment(&options->from, value);
}

static bool set_to(struct options *options, const char *value)
{
	return set_moment(&options->to, value);
}

static bool set_points(struct options *options, const char *value)
{
	uint64_t number;

	if (!value_number(value, MAX_POINTS, &number) || !number)
		return false;
	options->n_points = number;
	return true;
}

static bool add_variable(struct options *options, const char *name, const char *value)
{
	/* Given again, the last one holds. */
	for (size_t i = 0; i < options->n_variables; i++)
		if (!strcmp(options->variables[i].name, name))
			options->variables[i].value = value;
	if (options->n_variables < MAX_VARIABLES)
		options->variables[options->n_variables++] = (struct variable){name, value};
	return true;
}

static bool is_one_of(const char *value, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(value, words[i]))
			return true;
	return false;
}

#define IS_ONE_OF(value, ...)                                                                      \
	is_one_of(value, (const char *const[]){__VA_ARGS__},                                       \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static bool set_max_size(struct options *options, const char *value)
{
	uint64_t bytes;

	return value_bytes(value, &bytes) && add_variable(options, "VRAMTRACE_MAX_SIZE", value);
}

static bool set_stack(struct options *options, const char *value)
{
	return IS_ONE_OF(value, "both", "python", "native", "none") &&
	       add_variable(options, "VRAMTRACE_STACK", value);
}

static bool set_depth(struct options *options, const char *value)
{
	uint64_t number;

	return value_number(value, 4096, &number) && number &&
	       add_variable(options, "VRAMTRACE_STACK_DEPTH", value);
}

static bool set_layers(struct options *options, const char *value)
{
	return IS_ONE_OF(value, "driver", "driver,torch") &&
	       add_variable(options, "VRAMTRACE_LAYERS", value);
}

static bool set_copies(struct options *options, const char *value)
{
	return IS_ONE_OF(value, "all", "none") && add_variable(options, "VRAMTRACE_COPIES", value);
}

static bool set_copy_timing(struct options *options, const char *value)
{
	(void)value;
	return add_variable(options, "VRAMTRACE_COPY_TIMING", "1");
}

/* One row an option; value NULL: it takes none. Of two with the same name, a command takes one. */
static const struct row {
	unsigned int bit;
	char letter; /* 0: none */
	const char *name;
	const char *value;
	const char *help;
	option_set *set;
} rows[] = {
	{OPTION_TRACE, 'o', "output", "TRACE",
		"where to record; %e executable, %p pid, %h host, %r rank, %t start time",
		set_output},
	{OPTION_RECORDER, 0, "max-size", "BYTES", "most bytes on disk, such as 512M", set_max_size},
	{OPTION_RECORDER, 0, "stack", "SORT", "call stacks: both, python, native, none", set_stack},
	{OPTION_RECORDER, 0, "depth", "N", "frames kept of a stack", set_depth},
	{OPTION_RECORDER, 0, "layers", "LAYERS", "driver; or driver,torch", set_layers},
	{OPTION_RECORDER, 0, "copies", "WHICH", "record copies: all, none", set_copies},
	{OPTION_RECORDER, 0, "copy-timing", NULL, "time copies on the device, at a cost",
		set_copy_timing},
	{OPTION_PACK, 0, "pack", NULL, "pack the trace when the program has ended", set_pack},
	{OPTION_PACKED, 'o', "output", "FILE",
		"the packed trace, or a folder for it (default: TRACE.zst beside each)",
		set_output},
	{OPTION_ONCE, 0, "once", NULL, "print it once, as text", set_once},
	{OPTION_PAGE, 'o', "output", "FILE", "the page (default: TRACE.html beside the trace)",
		set_output},
	{OPTION_FORCE, 0, "force", NULL, "overwrite a file that is there already", set_force},
	{OPTION_FORMAT, 0, "format", "FORMAT",
		"pprof, perfetto, speedscope, collapsed, torch-snapshot, csv or jsonl", set_format},
	{OPTION_AT, 0, "at", "MOMENT",
		"peak, end, oom, oom:N, or a time since the start: 12.5, 300ms, 2:41", set_at},
	{OPTION_WHATIF, 0, "set", "KEY=VALUE",
		"a setting of PyTorch's allocator to try; repeated: all of them together",
		set_setting},
	{OPTION_WHATIF, 0, "sweep", NULL, "try the common settings, one after the other",
		set_sweep},
	{OPTION_WHATIF, 0, "capacity", "BYTES",
		"the most that PyTorch may have from the driver, such as 20G", set_capacity},
	{OPTION_DEVICE, 0, "device", "N", "only the GPU with this ordinal", set_device},
	{OPTION_LIMIT, 0, "limit", "N", "at most N entries; 0: all (default 10, with --json all)",
		set_limit},
	{OPTION_MIN_BYTES, 0, "min-bytes", "BYTES", "only entries of at least so much, such as 1M",
		set_min_bytes},
	{OPTION_SUPPRESS, 0, "suppressions", "FILE",
		"leave out what matches a line leak:PATTERN of this file", set_suppressions},
	{OPTION_STYLE, 0, "style", "STYLE", "sanitizer: as compute-sanitizer prints leaks",
		set_style},
	{OPTION_LIMITS, 0, "max-peak", "BYTES", "most that a GPU may have held, such as 20G",
		set_max_peak},
	{OPTION_LIMITS, 0, "max-leak", "BYTES", "most that may be called a leak at the end",
		set_max_leak},
	{OPTION_LIMITS, 0, "max-live", "BYTES", "most that may be live at the end, leak or not",
		set_max_live},
	{OPTION_LIMITS, 0, "max-growth", "RATE", "most that may be gained, such as 1M/min or 2G/h",
		set_max_growth},
	{OPTION_LIMITS, 0, "no-oom", NULL, "no request may have been refused for lack of memory",
		set_no_oom},
	{OPTION_FROM_TO, 0, "from", "MOMENT",
		"peak, end (default), or a time since the start: of the first trace", set_from},
	{OPTION_FROM_TO, 0, "to", "MOMENT", "the same of the second one, or of the only one",
		set_to},
	{OPTION_CSV, 0, "csv", NULL, "as comma-separated values", set_csv},
	{OPTION_CSV, 0, "svg", "FILE", "as a picture, written to FILE", set_svg},
	{OPTION_POINTS, 0, "points", "N", "so many points in time (default 1000; drawn: the width)",
		set_points},
	{OPTION_ASCII, 0, "ascii", NULL, "only ASCII characters", set_ascii},
	{OPTION_STACKS, 0, "all-frames", NULL,
		"stacks in whole, with the Python interpreter's own frames", set_all_frames},
	{OPTION_STACKS, 0, "show-paths", NULL, "files of stacks with their folders",
		set_show_paths},
	{OPTION_HIDE, 0, "hide-paths", NULL,
		"no folders, host names or arguments: for reports that leave the house",
		set_hide_paths},
	{OPTION_JSON, 0, "json", NULL, "as JSON", set_json},
	{OPTION_OUTPUT, 'o', "output", "FILE", "write to FILE instead of standard output",
		set_output},
	{OPTION_QUIET, 'q', "quiet", NULL, "nothing but results and errors", set_quiet},
	{OPTION_HELP, 'h', "help", NULL, "this text", set_help},
};

#define N_ROWS (sizeof(rows) / sizeof(*rows))

static bool takes(const struct cmd *cmd, const struct row *row)
{
	return (cmd->options | OPTION_HELP | OPTION_QUIET) & row->bit;
}

static int complain(const struct cmd *cmd, const char *what, const char *about)
{
	fprintf(stderr, "vramtrace: %s: %s%s%s; see vramtrace %s --help\n", cmd->name, what,
		about ? " " : "", about ? about : "", cmd->name);
	return STATUS_USAGE;
}

/* The row that argument names, and the value that is glued to it, if any. */
static const struct row *find_row(const struct cmd *cmd, const char *argument, const char **glued)
{
	size_t bytes = strcspn(argument, "=");

	*glued = NULL;
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct row *row = &rows[i];

		if (!takes(cmd, row))
			continue;
		if (argument[1] == '-') {
			if (strlen(row->name) != bytes - 2 ||
				strncmp(argument + 2, row->name, bytes - 2))
				continue;
			if (argument[bytes])
				*glued = argument + bytes + 1;
			return row;
		}
		if (row->letter && argument[1] == row->letter) {
			if (argument[2])
				*glued = argument + 2;
			return row;
		}
	}
	return NULL;
}

/* One option at arguments[*at], with its value; moves *at to the last argument used. */
static int parse_option(
	struct options *options, const struct cmd *cmd, char **arguments, size_t n, size_t *at)
{
	const char *argument = arguments[*at], *value;
	const struct row *row = find_row(cmd, argument, &value);

	if (!row)
		return complain(cmd, "unknown option", argument);
	if (row->value && !value) {
		if (*at + 1 == n)
			return complain(cmd, "a value is missing behind", argument);
		value = arguments[++*at];
	} else if (!row->value && value) {
		return complain(cmd, "no value is taken by", argument);
	}
	if (!row->set(options, value)) {
		fprintf(stderr, "vramtrace: %s: --%s: '%s' is not %s: %s\n", cmd->name, row->name,
			value, row->value, row->help);
		return STATUS_USAGE;
	}
	return STATUS_OK;
}

static int check_arguments(const struct options *options, const struct cmd *cmd)
{
	if (options->help)
		return STATUS_OK;
	if (!options->n_arguments && cmd->need != MAY_COMMAND)
		return complain(cmd,
			cmd->need == NEED_COMMAND     ? "no command to run is given"
			: cmd->need == NEED_PROCESSES ? "no process is given"
						      : "no trace is given",
			NULL);
	if (cmd->need == NEED_TWO_TRACES && options->n_arguments > 2)
		return complain(cmd, "takes two traces, not also", options->arguments[2]);
	if (cmd->need == NEED_ONE_TRACE && options->n_arguments > 1)
		return complain(cmd, "takes one trace, not also", options->arguments[1]);
	if (options->show_paths && options->hide_paths)
		return complain(cmd, "--show-paths and --hide-paths exclude one another", NULL);
	if (options->csv + options->json + options->svg > 1)
		return complain(cmd, "--csv, --json and --svg exclude one another", NULL);
	return STATUS_OK;
}

int options_parse(struct options *options, const struct cmd *cmd, char **arguments, size_t n)
{
	bool is_command = cmd->need == NEED_COMMAND || cmd->need == MAY_COMMAND;

	*options = (struct options){.filter.limit = SIZE_MAX};
	/* What is no option moves to the front of the array. */
	options->arguments = arguments;
	for (size_t i = 0; i < n; i++) {
		bool ended = !strcmp(arguments[i], "--");
		int status;

		if (ended || (arguments[i][0] != '-' && is_command)) {
			for (i += ended; i < n; i++)
				options->arguments[options->n_arguments++] = arguments[i];
			break;
		}
		if (arguments[i][0] != '-' || !arguments[i][1]) {
			options->arguments[options->n_arguments++] = arguments[i];
			continue;
		}
		status = parse_option(options, cmd, arguments, n, &i);
		if (status)
			return status;
	}
	/* One screen is enough to begin with. */
	if (options->filter.limit == SIZE_MAX)
		options->filter.limit = options->json ? 0 : 10;
	return check_arguments(options, cmd);
}

void options_print_help(const struct cmd *cmd)
{
	printf("usage: vramtrace %s [options] %s\n\n%s\n\n", cmd->name, cmd->arguments,
		cmd->summary);
	for (size_t i = 0; i < N_ROWS; i++) {
		char left[64];

		if (!takes(cmd, &rows[i]))
			continue;
		snprintf(left, sizeof(left), "%c%c%s --%s%s%s", rows[i].letter ? '-' : ' ',
			rows[i].letter ? rows[i].letter : ' ', rows[i].letter ? "," : " ",
			rows[i].name, rows[i].value ? " " : "", rows[i].value ? rows[i].value : "");
		printf("  %-24s %s\n", left, rows[i].help);
	}
	printf("\nexample: %s\n", cmd->example);
}
