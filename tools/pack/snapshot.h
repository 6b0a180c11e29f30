/* A trace as it was at one moment, byte by byte, though its process may still write into it. */
#ifndef VRAMTRACE_PACK_SNAPSHOT_H
#define VRAMTRACE_PACK_SNAPSHOT_H

#include <stdint.h>
#include <sys/types.h>

#include "vramtrace/error.h"
#include "vramtrace/format.h"

struct snapshot {
	int fd; /* borrowed */
	struct vt_file_header header;
	char *schema;	    /* header.schema_bytes of text */
	uint64_t n_chunks;  /* that the file holds; the last one may be cut short */
	uint32_t *used;	    /* of each chunk that was not sealed; SNAPSHOT_ALL: taken as it is */
	uint32_t next_lane; /* a number that no chunk has */
};

#define SNAPSHOT_ALL UINT32_MAX

/* Takes a snapshot of the trace that is open as fd, which must outlive it. What is written later
 * is not part of it. Returns 0, to be ended with snapshot_release; or VT_E_* as vt_reader_open. */
int snapshot_take(struct snapshot *snapshot, int fd);
void snapshot_release(struct snapshot *snapshot);

/* Chunk i as of the snapshot into data, which has room for a whole one. Returns its bytes, less
 * than a whole chunk where the file ends, or -1 with errno set. */
ssize_t snapshot_read(const struct snapshot *snapshot, uint64_t i, uint8_t *data);

#endif
