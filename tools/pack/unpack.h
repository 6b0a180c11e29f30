/*
 * Packed traces: a trace with its symbols in it, as one zstd stream. Packing takes a snapshot of a
 * trace (snapshot.h), puts symbols before its chunks (symbols.h) and compresses both (pack.h);
 * unpacking makes a plain trace again, which the reader reads as any other. This one: opening a
 * trace by what is in it, not by its name.
 */
#ifndef VRAMTRACE_PACK_UNPACK_H
#define VRAMTRACE_PACK_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "vramtrace/error.h"

/* How the names of traces end; a packed one has both. */
#define PACK_PLAIN_ENDING ".vt"
#define PACK_ENDING	  ".zst"

struct unpacked {
	int fd;		       /* a plain trace, to be closed by the caller; -1: none */
	uint64_t packed_bytes; /* size of the file, if it was packed; 0: it was not */
	bool damaged;	       /* not all of it could be unpacked */
	char why[256];	       /* of an error that its own text says too little about; else empty */
};

/*
 * Opens the file at path for reading. What is packed is unpacked into a file without a name in
 * $TMPDIR (else /tmp), up to where its header says that the trace ends, and never more than a trace
 * of its size can hold. A file that is no trace is opened all the same: the reader refuses it.
 * Returns 0 or VT_E_OPEN, VT_E_IO (errno says more), VT_E_NO_SPACE, VT_E_DAMAGED, VT_E_NO_MEMORY.
 */
int unpack_open(struct unpacked *out, const char *path);

enum pack_content {
	PACK_NO_TRACE,
	PACK_PLAIN_TRACE,
	PACK_PACKED_TRACE,
};

/* What the file open as fd is, by its first bytes; its position stays. */
enum pack_content unpack_look(int fd);

#endif
