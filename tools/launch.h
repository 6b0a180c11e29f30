/* Starting a program with the recorder in it, and finding the traces it left. */
#ifndef VRAMTRACE_LAUNCH_H
#define VRAMTRACE_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* In the environment of everything that one `run` starts; the recorder keeps it in each trace. */
#define LAUNCH_MARK "VRAMTRACE_RUN"

struct launch_end {
	pid_t pid;
	bool started;	/* false: the program could not be executed, and error says why */
	int error;	/* errno */
	bool signalled; /* ended by a signal */
	int status;	/* of its exit, or the signal's number */
};

/* Path of libvramtrace.so beside this command: the same folder, ../lib, ../lib64. To be freed. NULL
 * after one line on stderr when there is none, or none that can be preloaded. */
char *launch_find_library(void);

/* Runs arguments (ended by NULL) with library preloaded, and waits. While it runs, signals that ask
 * this command to end go to the program instead. */
struct launch_end launch_run(char **arguments, const char *library);

/* Traces that were made from the path pattern (as in VRAMTRACE_OUTPUT) and hold mark, in the order
 * they were begun: *paths is to be freed, with its items. Returns how many. */
size_t launch_find_traces(const char *pattern, const char *mark, char ***paths);

/* Writes how the program ended into the newest of its own traces among paths. */
void launch_note_end(char *const *paths, size_t n, const struct launch_end *end);

#endif
