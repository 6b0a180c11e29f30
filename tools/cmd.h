/*
 * The command line. main.c has the table of commands; each command is one file, cmd_<name>.c, with
 * its options and its flow and no analysis of its own.
 */
#ifndef VRAMTRACE_CMD_H
#define VRAMTRACE_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/sites.h"
#include "model/replay.h"
#include "output/show.h"

/* Exit statuses. */
enum {
	STATUS_OK = 0,
	STATUS_OVER_LIMIT = 1,
	STATUS_USAGE = 2,
	STATUS_UNREADABLE = 3,
};

/* What the arguments of a command must be. */
enum cmd_need {
	NEED_TRACES,	 /* one or more traces or folders of traces */
	NEED_ONE_TRACE,	 /* exactly one trace */
	NEED_PROCESSES,	 /* one or more process ids, or traces of running ones */
	NEED_TWO_TRACES, /* two, or one to compare with itself */
	NEED_COMMAND,	 /* a program and its arguments */
	MAY_COMMAND,	 /* the same, or nothing */
};

/* Options a command takes; the rows are in options.c. --help and -q are everybody's. */
enum {
	OPTION_JSON = 1 << 0,
	OPTION_OUTPUT = 1 << 1, /* -o FILE: the document */
	OPTION_TRACE = 1 << 2,	/* -o TRACE: where to record to */
	OPTION_DEVICE = 1 << 3,
	OPTION_LIMIT = 1 << 4,
	OPTION_MIN_BYTES = 1 << 5,
	OPTION_AT = 1 << 6,
	OPTION_CSV = 1 << 7, /* --csv, --svg */
	OPTION_ASCII = 1 << 8,
	OPTION_POINTS = 1 << 9,
	OPTION_RECORDER = 1 << 10, /* --max-size, --stack, ... */
	OPTION_HELP = 1 << 11,
	OPTION_QUIET = 1 << 12,
	OPTION_STACKS = 1 << 13, /* --all-frames, --show-paths */
	OPTION_HIDE = 1 << 14,	 /* --hide-paths */
	OPTION_PACKED = 1 << 15, /* -o FILE: the packed trace, or a folder for several */
	OPTION_FORCE = 1 << 16,
	OPTION_PACK = 1 << 17,	 /* of run: pack what was recorded */
	OPTION_WHATIF = 1 << 18, /* --set, --sweep, --capacity */
	OPTION_SUPPRESS = 1 << 19,
	OPTION_STYLE = 1 << 20,
	OPTION_LIMITS = 1 << 21, /* --max-peak, --no-oom, ... */
	OPTION_FROM_TO = 1 << 22,
	OPTION_FORMAT = 1 << 23,
	OPTION_ONCE = 1 << 24, /* of top */
	OPTION_PAGE = 1 << 25, /* -o FILE: the page */
};

/* Settings of PyTorch's allocator that can be tried together. */
#define MAX_SETTINGS 16u

/* Options that are passed to the recorder as environment variables. */
#define MAX_VARIABLES 8u

struct variable {
	const char *name;
	const char *value;
};

/* Most that something may be. */
struct limit {
	bool given;
	uint64_t value;
};

/* Of --from and --to. */
struct moment {
	bool given;
	enum replay_at at;
	uint64_t ns;
};

struct options {
	bool json;
	bool quiet;
	bool csv;
	bool svg; /* output is given */
	bool ascii;
	bool help;
	struct show show;
	bool show_paths;
	bool hide_paths;
	bool force;
	bool pack;
	bool once;
	const char *output; /* of OPTION_OUTPUT, _TRACE, _PACKED or _PAGE; NULL: not given */
	const char *format; /* NULL: not given */
	struct site_filter filter;
	bool at_given;
	enum replay_at at;
	uint64_t at_ns;
	size_t oom_number; /* of --at oom:N, which is REPLAY_AT_RECORD; 0: all of them */
	size_t n_points;   /* 0: not given */
	const char *settings[MAX_SETTINGS];
	size_t n_settings;
	bool sweep;
	uint64_t capacity_bytes;		   /* 0: not given */
	const char *suppressions;		   /* file, NULL: none given */
	bool sanitizer;				   /* --style=sanitizer */
	struct limit max_peak, max_leak, max_live; /* bytes */
	struct limit max_growth;		   /* bytes a second */
	bool no_oom;
	struct moment from, to;
	struct variable variables[MAX_VARIABLES];
	size_t n_variables;
	char **arguments;
	size_t n_arguments;
};

struct cmd {
	const char *name;
	int (*run)(const struct options *options); /* returns the exit status */
	enum cmd_need need;
	unsigned int options;  /* OPTION_* it takes */
	const char *arguments; /* for the usage line */
	const char *summary;
	const char *example;
};

/* Reads the n arguments behind the command's name. Returns STATUS_OK, or STATUS_USAGE after one
 * line on stderr. */
int options_parse(struct options *options, const struct cmd *cmd, char **arguments, size_t n);

/* Prints usage, options and an example of cmd on stdout. */
void options_print_help(const struct cmd *cmd);

int cmd_run(const struct options *options);
int cmd_report(const struct options *options);
int cmd_leaks(const struct options *options);
int cmd_diff(const struct options *options);
int cmd_check(const struct options *options);
int cmd_peak(const struct options *options);
int cmd_fragmentation(const struct options *options);
int cmd_oom(const struct options *options);
int cmd_transfers(const struct options *options);
int cmd_whatif(const struct options *options);
int cmd_timeline(const struct options *options);
int cmd_html(const struct options *options);
int cmd_export(const struct options *options);
int cmd_dump(const struct options *options);
int cmd_info(const struct options *options);
int cmd_snapshot(const struct options *options);
int cmd_top(const struct options *options);
int cmd_metrics(const struct options *options);
int cmd_pack(const struct options *options);
int cmd_pause(const struct options *options);
int cmd_resume(const struct options *options);
int cmd_doctor(const struct options *options);

#endif
