/* What the dynamic loader would load for a program, asked of the loader itself: it lists the files
 * without running any of them. */
#ifndef VRAMTRACE_DOCTOR_LOADER_H
#define VRAMTRACE_DOCTOR_LOADER_H

#include <stddef.h>

struct loaded {
	char *name; /* as it is asked for */
	char *path; /* NULL: not found */
};

struct loaded_list {
	struct loaded *items;
	size_t n_items;
	size_t room;
};

/* Lists them for program, by the loader at path loader. preload: names for LD_PRELOAD instead of
 * those in the environment, NULL: those. An empty list when the loader cannot be asked. To be
 * released. */
struct loaded_list loader_list(const char *loader, const char *program, const char *preload);

void loader_release(struct loaded_list *list);

/* The entry whose name, or whose path's last part, starts so; NULL none. */
const struct loaded *loader_find(const struct loaded_list *list, const char *start);

#endif
