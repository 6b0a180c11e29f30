/* Sites under one label: many stacks end in the same line of a user's code, and one screen has room
 * for a few lines. */
#ifndef VRAMTRACE_OUTPUT_GROUPS_H
#define VRAMTRACE_OUTPUT_GROUPS_H

#include "analysis/sites.h"
#include "output/stack.h"

struct site_group {
	char *label; /* as of stack_label */
	const char *owner;
	uint32_t kind;
	enum site_level level;
	uint64_t bytes;
	uint64_t count;
	bool grows; /* one of its sites does */
};

struct site_groups {
	struct site_group *items; /* most bytes first */
	size_t n_items;
	size_t room;
	uint64_t rest_bytes; /* of rows too small to be looked at */
	uint64_t rest_count;
};

/* Groups the live rows of a sorted list on `device` by owner, label and kind; release with
 * site_groups_release. */
void site_groups_make(struct site_groups *groups, const struct site_list *list, int device,
	const struct stack_source *source);
void site_groups_release(struct site_groups *groups);

#endif
