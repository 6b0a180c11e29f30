/* What the user asked for through VRAMTRACE_* variables. Read once, when the library is loaded;
 * never changes after. */
#ifndef VRAMTRACE_RECORD_OPTIONS_H
#define VRAMTRACE_RECORD_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum options_unwinder {
	OPTIONS_UNWINDER_FAST,	    /* the recorder's own, libunwind where it has to */
	OPTIONS_UNWINDER_LIBUNWIND, /* libunwind alone */
	OPTIONS_UNWINDER_CHECK,	    /* the recorder's own, each stack compared with libunwind's */
};

struct options {
	bool enabled;			/* VRAMTRACE_ENABLED: false starts paused */
	bool quiet;			/* VRAMTRACE_QUIET: nothing on stderr */
	bool native_stacks;		/* VRAMTRACE_STACK: both, native */
	bool python_stacks;		/* VRAMTRACE_STACK: both, python */
	bool copies;			/* VRAMTRACE_COPIES */
	bool torch;			/* VRAMTRACE_LAYERS: driver,torch */
	bool copy_timing;		/* VRAMTRACE_COPY_TIMING */
	bool memory_samples;		/* VRAMTRACE_MEMINFO */
	bool keep_deepbind;		/* VRAMTRACE_DEEPBIND: clear, keep */
	enum options_unwinder unwinder; /* VRAMTRACE_UNWINDER */
	unsigned int depth;		/* VRAMTRACE_STACK_DEPTH: frames kept of each sort */
	uint64_t max_bytes;		/* VRAMTRACE_MAX_SIZE, 0: no limit */
	char output[PATH_MAX];		/* VRAMTRACE_OUTPUT: pattern of the trace's path */
	char complaints[2048]; /* lines for stderr about values that cannot be used; "" if none */
};

/* Most frames of a sort that a stack can keep. */
#define OPTIONS_MAX_DEPTH 256u

/* Least size of a bounded trace. */
#define OPTIONS_MIN_SIZE (1u << 20)

/* The options of this process. */
extern struct options options;

/* Fills options from environ. No allocation, no output. Wrong values leave the default and a line
 * in complaints. */
void options_read(char **environ_list);

/* Parses a size such as 512M: bytes with an optional K, M, G or T. False when it is none or does
 * not fit. */
bool options_parse_size(const char *text, uint64_t *bytes);

#endif
