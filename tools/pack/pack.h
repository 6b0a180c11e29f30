/* Writing a packed trace. */
#ifndef VRAMTRACE_PACK_PACK_H
#define VRAMTRACE_PACK_PACK_H

#include <stdbool.h>

#include "pack/snapshot.h"
#include "pack/symbols.h"

struct pack {
	const struct snapshot *trace;
	const struct symbol_chunks *symbols; /* NULL: the trace has its own */
	uint32_t end; /* enum vt_end to note where the trace does not say; VT_END_UNKNOWN: none */
	const char *path;      /* for the progress display */
	uint64_t plain_bytes;  /* set by pack_write: of the trace, without the symbols */
	uint64_t packed_bytes; /* the same: written */
	bool unreadable;       /* the same: it failed for what it read, not for what it wrote */
};

/*
 * Writes the trace to fd as one zstd frame: its header, which then tells of the symbol chunks too;
 * these, so that they are there in a file that lost its end; and the chunks of the trace, damage
 * included: as they are, or in columns (columns.h) where there are many. Returns 0, or VT_E_IO with
 * errno set, VT_E_NO_MEMORY.
 */
int pack_write(struct pack *pack, int fd);

#endif
