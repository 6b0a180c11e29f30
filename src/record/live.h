/*
 * What is allocated now, by address, and the totals behind the line at exit. Sharded by address; a
 * shard's lock is a leaf.
 */
#ifndef VRAMTRACE_RECORD_LIVE_H
#define VRAMTRACE_RECORD_LIVE_H

#include <stddef.h>
#include <stdint.h>

#include "vramtrace/format.h"

/* Two name spaces: addresses, and handles of physical memory, which may have equal values. */
enum live_space { LIVE_MEMORY, LIVE_HANDLES, LIVE_N_SPACES };

struct live_summary {
	uint64_t live_bytes; /* device memory asked for and not given back */
	uint64_t peak_bytes; /* highest it was */
	uint64_t n_live;
};

/* Notes an allocation that returned at time_ns. Out of memory: it is left out of the totals too. */
void live_add(enum live_space space, uint64_t key, uint64_t bytes, enum vt_kind kind,
	uint64_t stack_id, uint64_t time_ns);

/* Forgets one that was given back by a call begun at time_ns. Unknown keys are ignored, and so is
 * an entry added since: then another thread has been given the same address before this one came to
 * say that it was free. */
void live_remove(enum live_space space, uint64_t key, uint64_t time_ns);

void live_summarise(struct live_summary *out);

/* Empty, with fresh locks: in a forked child. */
void live_forget(void);

/* "3.2 GiB" and the like. */
void live_format_bytes(char *out, size_t size, uint64_t bytes);

#endif
