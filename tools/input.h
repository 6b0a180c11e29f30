/* The traces a command was given, opened, with their symbols and overviews; and where its output
 * goes. */
#ifndef VRAMTRACE_INPUT_H
#define VRAMTRACE_INPUT_H

#include <stdio.h>

#include "analysis/overview.h"
#include "analysis/suppressions.h"
#include "analysis/together.h"
#include "cmd.h"
#include "output/report.h"
#include "symbol/symbol.h"

struct input_trace {
	struct replay *replay;
	struct symbol_table *symbols;
	struct watch *watch; /* of the first pass */
	struct overview overview;
};

struct input {
	struct input_trace *traces;
	size_t n_traces;
	size_t room;
	struct report_trace *shown; /* the same for the output functions; made by input_overview */
	struct show show;	    /* as options say */
	struct suppressions suppressions;
	int status; /* STATUS_UNREADABLE when one of them could not be read */
};

/* Calls `each` with every trace that options name; a folder stands for the *.vt in it, and the
 * *.vt.zst that have none beside them. Returns STATUS_OK, or STATUS_UNREADABLE after one line on
 * stderr for each folder that holds none. */
int input_each(const struct options *options,
	void (*each)(void *user, const char *path, bool in_folder), void *user);

/* Opens every trace that options name, as input_each finds them. What cannot be read is said on
 * stderr, one line each, and left out. Returns STATUS_OK when there is something to show, else the
 * exit status. */
int input_open(struct input *input, const struct options *options);

/* Opens one more trace, as input_open does. */
void input_add(struct input *input, const char *path);

/* What an overview is to hold. */
struct input_wants {
	const struct replay_moment *moments; /* n views; NULL: of the peaks */
	size_t n;
	bool owners;
	bool findings;	   /* post-mortems and fragmentation */
	bool leaks;	   /* verdicts about them */
	bool at_oom;	   /* instead of moments: when memory was refused */
	size_t oom_number; /* the one with this number, 0: all */
};

/* Reads the suppressions: the built-in ones, those of the file that VRAMTRACE_SUPPRESSIONS names
 * and those of --suppressions. Returns STATUS_OK, or STATUS_USAGE after one line on stderr. */
int input_suppress(struct input *input, const struct options *options);

/* Makes the overview of each trace. Returns STATUS_OK or the exit status. */
int input_overview(struct input *input, const struct input_wants *wants);

/* The same with views of the moment that --at says, else of the moment given here, and what `also`
 * says beside that; sites are filtered as options say. */
int input_overview_at(struct input *input, const struct options *options, enum replay_at at,
	const struct input_wants *also);

/* The overview of each trace for the commands that show findings: with post-mortems, and with
 * fragmentation at the moment that --at says, else at each peak, at the end and at each
 * post-mortem; filtered as options say. */
int input_findings(struct input *input, const struct options *options);

/* Looks at the traces together, with their overviews made: with findings and leaks. Returns
 * STATUS_OK, with *together to be freed by together_release before the input is closed, or the exit
 * status. */
int input_together(struct input *input, struct together *together);

/* Puts the traces that running processes write in the place of arguments that are process ids.
 * Returns STATUS_OK, or the exit status after one line on stderr; *paths is to be ended with
 * input_resolved_release either way. */
int input_resolve(struct options *options, char ***paths);
void input_resolved_release(struct options *options, char **paths);
/* The moments of a trace's out-of-memory episodes, at most EPISODES_MAX: of the one with this
 * number, 0: of all. Returns how many. */
size_t input_ooms(const struct input_trace *trace, size_t number, struct replay_moment *moments);

/* Whether there is such an episode in any trace; says so on stderr if there is none. */
bool input_has_ooms(const struct input *input, size_t number);

/* How the owners of the trace's stacks are told; of a model that has them. */
struct owner_source input_owners(const struct input_trace *trace);

void input_close(struct input *input);

/* Says on stderr what is wrong with file; error is VT_E_*, with errno for those that have one. */
void input_complain(const char *file, int error);

/* The same in the words of why. */
void input_complain_text(const char *file, const char *why);

/* Says on stderr which traces are damaged, for output that has no place to say so; unless told to
 * be quiet. */
void input_complain_damage(const struct input *input, const struct options *options);

/* Where output goes: standard output, or the file of -o, which must not be a trace. NULL after one
 * line on stderr. */
FILE *output_open(const struct options *options);

/* Ends the output. Returns STATUS_OK, or STATUS_USAGE after one line on stderr when not everything
 * could be written. */
int output_close(FILE *out, const struct options *options);

#endif
