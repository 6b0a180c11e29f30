/* What is shown of stacks, and of what a report says about people's machines: folders, hosts,
 * command lines. */
#ifndef VRAMTRACE_OUTPUT_SHOW_H
#define VRAMTRACE_OUTPUT_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "vramtrace/format.h"

enum show_paths {
	SHOW_SHORT_PATHS, /* text: names without folders; JSON: whole */
	SHOW_WHOLE_PATHS,
	SHOW_NO_PATHS, /* neither folders nor hosts nor arguments, in text and JSON alike */
};

/* All zero is the default. */
struct show {
	bool all_frames; /* the interpreter's own, and long stacks unfolded */
	enum show_paths paths;
};

/* path as it is to be printed in stacks of text, and anywhere else; a part of it. NULL gives NULL.
 */
const char *show_frame_path(const struct show *show, const char *path);
const char *show_path(const struct show *show, const char *path);

/* The same of text that may be a path. */
struct vt_text show_path_text(const struct show *show, struct vt_text text);

/* A sentence, with the paths in it without their folders when they are to be hidden. To be freed.
 */
char *show_sentence(const struct show *show, struct vt_text text);

/* Prints it, safe for a terminal. */
void show_put_sentence(FILE *out, const struct show *show, struct vt_text text);

/* Whether hosts and whole command lines are to be shown. */
bool show_is_open(const struct show *show);

/* What is left of arguments, each ended by a zero byte: calls put for each; when hiding, only for
 * the names of the program and of the first Python script. Returns how many were left out. */
size_t show_arguments(const struct show *show, struct vt_text arguments,
	void (*put)(void *user, struct vt_text argument), void *user);

#endif
