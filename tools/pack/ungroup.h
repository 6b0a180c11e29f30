/* A trace with chunks in columns (columns.h), as it comes out of a packed file piece by piece, made
 * into what it was. */
#ifndef VRAMTRACE_PACK_UNGROUP_H
#define VRAMTRACE_PACK_UNGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pack/columns.h"
#include "vramtrace/format.h"

/* Takes bytes of the plain trace. Returns 0 or an error, with which it is not called again. */
typedef int ungroup_writer(void *user, const uint8_t *data, size_t bytes);

/* All zero but writer and user is the beginning; release it with ungroup_release. */
struct ungroup {
	ungroup_writer *writer;
	void *user;
	struct columns *columns; /* NULL: the header is not there yet */
	uint64_t plain_left;	 /* bytes that come before the first group */
	uint8_t *data;		 /* the beginning of the header or of a group */
	size_t n_data;
	size_t room;
	bool damaged; /* what comes makes no sense */
};

/* Takes in what comes next. Returns 0, also where it is damaged, or what the writer returned. */
int ungroup_put(struct ungroup *ungroup, const uint8_t *data, size_t bytes);

/* Whether it may end here. */
bool ungroup_is_whole(const struct ungroup *ungroup);

void ungroup_release(struct ungroup *ungroup);

#endif
