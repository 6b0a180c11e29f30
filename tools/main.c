#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof(*(array)))

static const struct cmd commands[] = {
	{"run", cmd_run, NEED_COMMAND, OPTION_TRACE | OPTION_RECORDER | OPTION_PACK | OPTION_ASCII,
		"-- PROGRAM [ARGUMENT...]",
		"Runs a program, records its GPU memory, then reports on it. The exit status is "
		"the program's.",
		"vramtrace run -o train.vt -- python train.py"},
	{"report", cmd_report, NEED_TRACES,
		OPTION_SUPPRESS | OPTION_STACKS | OPTION_HIDE | OPTION_JSON | OPTION_OUTPUT |
			OPTION_ASCII,
		"TRACE...",
		"One screen: what ran, the peak, what is live at the end, leaks, copies, what was "
		"not seen; of several traces, the processes, GPUs and ranks together.",
		"vramtrace report train.vt"},
	{"peak", cmd_peak, NEED_TRACES,
		OPTION_AT | OPTION_DEVICE | OPTION_LIMIT | OPTION_MIN_BYTES | OPTION_STACKS |
			OPTION_HIDE | OPTION_JSON | OPTION_OUTPUT | OPTION_ASCII,
		"TRACE...",
		"Who held the memory when each GPU's peak was reached, with call stacks.",
		"vramtrace peak --device 0 --limit 5 train.vt"},
	{"leaks", cmd_leaks, NEED_TRACES,
		OPTION_AT | OPTION_DEVICE | OPTION_LIMIT | OPTION_MIN_BYTES | OPTION_SUPPRESS |
			OPTION_STYLE | OPTION_STACKS | OPTION_HIDE | OPTION_JSON | OPTION_OUTPUT |
			OPTION_ASCII,
		"TRACE...",
		"What grows, and what else is live at the end (or at another moment), with call "
		"stacks.",
		"vramtrace leaks --min-bytes 1M train.vt"},
	{"diff", cmd_diff, NEED_TWO_TRACES,
		OPTION_FROM_TO | OPTION_DEVICE | OPTION_LIMIT | OPTION_MIN_BYTES | OPTION_STACKS |
			OPTION_HIDE | OPTION_JSON | OPTION_OUTPUT | OPTION_ASCII,
		"TRACE [TRACE]",
		"What became more and what less, by owner and call stack: from one trace to "
		"another, or between two moments.",
		"vramtrace diff --from 1:00 --to 5:00 serve.vt"},
	{"check", cmd_check, NEED_TRACES,
		OPTION_LIMITS | OPTION_SUPPRESS | OPTION_STACKS | OPTION_HIDE | OPTION_OUTPUT,
		"TRACE...",
		"For tests: one line for each limit that was exceeded, and exit status 1 if any "
		"was.",
		"vramtrace check --max-peak 20G --max-growth 1M/min --no-oom serve.vt"},
	{"oom", cmd_oom, NEED_TRACES,
		OPTION_AT | OPTION_DEVICE | OPTION_LIMIT | OPTION_MIN_BYTES | OPTION_STACKS |
			OPTION_HIDE | OPTION_JSON | OPTION_OUTPUT | OPTION_ASCII,
		"TRACE...",
		"Why memory was refused, each time: the state then, who held what, what would have "
		"sufficed.",
		"vramtrace oom --at oom:1 train.vt"},
	{"fragmentation", cmd_fragmentation, NEED_TRACES,
		OPTION_AT | OPTION_DEVICE | OPTION_LIMIT | OPTION_MIN_BYTES | OPTION_STACKS |
			OPTION_HIDE | OPTION_JSON | OPTION_OUTPUT | OPTION_ASCII,
		"TRACE...",
		"What is held and not in use, level by level, and which blocks keep it from being "
		"given back.",
		"vramtrace fragmentation --at peak train.vt"},
	{"transfers", cmd_transfers, NEED_TRACES,
		OPTION_DEVICE | OPTION_LIMIT | OPTION_MIN_BYTES | OPTION_STACKS | OPTION_HIDE |
			OPTION_JSON | OPTION_OUTPUT | OPTION_ASCII,
		"TRACE...",
		"What copies cost: by direction, host memory and size, and what to do about it.",
		"vramtrace transfers --limit 5 train.vt"},
	{"whatif", cmd_whatif, NEED_ONE_TRACE,
		OPTION_WHATIF | OPTION_DEVICE | OPTION_STACKS | OPTION_HIDE | OPTION_JSON |
			OPTION_OUTPUT | OPTION_ASCII,
		"TRACE | SNAPSHOT.pickle",
		"What PyTorch's allocator would have taken for this recording under other "
		"settings. A memory snapshot of PyTorch's own, with its history, is read, too.",
		"vramtrace whatif --set expandable_segments=True --capacity 20G train.vt"},
	{"snapshot", cmd_snapshot, NEED_TRACES,
		OPTION_STACKS | OPTION_HIDE | OPTION_JSON | OPTION_OUTPUT | OPTION_ASCII,
		"PID|TRACE...", "The report of a running process as of now.",
		"vramtrace snapshot 4242"},
	{"top", cmd_top, NEED_ONE_TRACE,
		OPTION_ONCE | OPTION_LIMIT | OPTION_STACKS | OPTION_OUTPUT | OPTION_ASCII,
		"PID|TRACE",
		"Watches a running process: who holds the memory, what grows, how fast.",
		"vramtrace top 4242"},
	{"metrics", cmd_metrics, NEED_TRACES, OPTION_OUTPUT, "PID|TRACE...",
		"Gauges and counters for a monitoring system, as OpenMetrics text.",
		"vramtrace metrics -o /var/lib/node_exporter/vramtrace.prom traces/"},
	{"timeline", cmd_timeline, NEED_ONE_TRACE,
		OPTION_CSV | OPTION_POINTS | OPTION_JSON | OPTION_OUTPUT | OPTION_ASCII, "TRACE",
		"Memory over time, drawn in the terminal or as CSV.",
		"vramtrace timeline --csv -o memory.csv train.vt"},
	{"html", cmd_html, NEED_TRACES,
		OPTION_PAGE | OPTION_FORCE | OPTION_SUPPRESS | OPTION_STACKS | OPTION_HIDE,
		"TRACE...",
		"One page for a browser, with everything inside: memory over time, flame graph, "
		"address map, leaks, refusals, copies.",
		"vramtrace html train.vt"},
	{"export", cmd_export, NEED_TRACES,
		OPTION_FORMAT | OPTION_AT | OPTION_DEVICE | OPTION_STACKS | OPTION_HIDE |
			OPTION_OUTPUT,
		"TRACE...", "Writes a trace in the format of another viewer.",
		"vramtrace export --format pprof -o train.pb.gz train.vt"},
	{"dump", cmd_dump, NEED_ONE_TRACE, OPTION_JSON | OPTION_OUTPUT, "TRACE",
		"Every record in the order of time, one a line.",
		"vramtrace dump train.vt | grep failure"},
	{"info", cmd_info, NEED_TRACES, OPTION_HIDE | OPTION_JSON | OPTION_OUTPUT | OPTION_ASCII,
		"TRACE...", "What a trace is: process, devices, environment, counts, coverage.",
		"vramtrace info train.vt"},
	{"pack", cmd_pack, NEED_TRACES, OPTION_PACKED | OPTION_FORCE, "TRACE...",
		"Makes a small file of a trace, with its names inside, to be read on any other "
		"host.",
		"vramtrace pack -o train.vt.zst train.vt"},
	{"pause", cmd_pause, NEED_PROCESSES, 0, "PID|TRACE...",
		"Has a running process recorded without call stacks, copies and samples, until it "
		"is resumed.",
		"vramtrace pause 4242"},
	{"resume", cmd_resume, NEED_PROCESSES, 0, "PID|TRACE...",
		"Has a paused process recorded in full again.", "vramtrace resume 4242"},
	{"doctor", cmd_doctor, MAY_COMMAND, OPTION_JSON | OPTION_OUTPUT | OPTION_ASCII,
		"[-- PROGRAM [ARGUMENT...]]",
		"Says what would keep a program from being traced, without running it.",
		"vramtrace doctor -- python train.py"},
};

static const struct cmd *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static void print_usage(FILE *out)
{
	fputs("usage: vramtrace COMMAND [options] ...\n\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-14s %s\n", commands[i].name, commands[i].summary);
	fputs("\nEvery command: --help. To record without vramtrace run:\n"
	      "  LD_PRELOAD=/path/libvramtrace.so PROGRAM\n",
		out);
}

static int unknown_command(const char *name)
{
	fprintf(stderr, "vramtrace: there is no command '%s'; there are:", name);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(stderr, " %s", commands[i].name);
	fputc('\n', stderr);
	return STATUS_USAGE;
}

int main(int argc, char **argv)
{
	const struct cmd *cmd;
	struct options options;
	int status;

	setlocale(LC_CTYPE, "");
	if (argc < 2) {
		print_usage(stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		cmd = argc > 2 ? find_command(argv[2]) : NULL;
		if (cmd)
			options_print_help(cmd);
		else
			print_usage(stdout);
		return STATUS_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("vramtrace %s\n", VT_VERSION);
		return STATUS_OK;
	}
	cmd = find_command(argv[1]);
	if (!cmd)
		return unknown_command(argv[1]);
	status = options_parse(&options, cmd, argv + 2, (size_t)(argc - 2));
	if (status)
		return status;
	if (options.help) {
		options_print_help(cmd);
		return STATUS_OK;
	}
	return cmd->run(&options);
}
