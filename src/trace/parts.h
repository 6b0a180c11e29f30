/* Finding the parts of a bounded trace that belong together: those from one with a complete
 * checkpoint on, with nothing missing up to the newest. */
#ifndef VRAMTRACE_TRACE_PARTS_H
#define VRAMTRACE_TRACE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vramtrace/format.h"

struct vt_part {
	uint64_t number;
	int fd;
	uint64_t first_chunk;	/* of those that count */
	uint64_t n_chunks;	/* that count, and that the file holds */
	uint64_t missing_bytes; /* of chunks that were handed out, and that it does not hold */
};

/* In order of their numbers. */
struct vt_parts {
	struct vt_part *items;
	size_t n_items;
};

enum vt_parts_which {
	VT_PARTS_ALL,
	VT_PARTS_NEWEST, /* of those the last one alone: the state, and the last events */
};

/* Opens the parts of the trace at path whose header is given. Parts may come and go meanwhile.
 * Returns 0, to be ended with vt_parts_close; or VT_E_NO_PARTS when there is none, VT_E_EMPTY when
 * none is complete, VT_E_OPEN, VT_E_IO with errno set, VT_E_NO_MEMORY. */
int vt_parts_open(struct vt_parts *parts, const char *path, const struct vt_file_header *header,
	enum vt_parts_which which);
void vt_parts_close(struct vt_parts *parts);

/* Removes the files of all parts of the trace at path. False when not all could be. */
bool vt_parts_remove(const char *path);

#endif
