/* Packing one trace, with what there is to say about it. */
#ifndef VRAMTRACE_PACKING_H
#define VRAMTRACE_PACKING_H

#include <stdbool.h>

struct packing_options {
	bool replace; /* a packed trace that is there already */
	bool quiet;
};

/*
 * Packs the trace at path into a new file at output. Its names are looked up here and now; what is
 * damaged stays so and is said; of a running process, what it has written up to now is packed.
 * Returns STATUS_OK; STATUS_UNREADABLE when path is no trace; STATUS_USAGE when it is a packed one
 * or output cannot be written; after one line on stderr. output then is as it was.
 */
int packing_pack(const char *path, const char *output, const struct packing_options *options);

/*
 * Packs the trace at path into a new file beside it, reads that back, and removes path. Returns
 * the new file's path, to be freed; NULL after one line on stderr when path is still there: nobody
 * may be writing into it any more, and nothing may have gone wrong.
 */
char *packing_exchange(const char *path, bool quiet);

#endif
