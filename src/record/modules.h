/* The objects mapped into the process, written to the trace when first seen: what turns addresses
 * into names later. */
#ifndef VRAMTRACE_RECORD_MODULES_H
#define VRAMTRACE_RECORD_MODULES_H

#include <stdatomic.h>
#include <stdint.h>

struct vt_lane;

/* Writes the modules that were loaded since the last call, as seen at time_ns (of the trace). Cheap
 * when nothing was. Takes the loader's lock: call it with no lock held. */
void modules_update(struct vt_lane *lane, uint64_t time_ns);

/* How often an object may have been loaded: what was found out about an address, or not found,
 * holds until this number changes. */
extern _Atomic unsigned int modules_n_opened;

/* In a forked child. */
void modules_forget(void);

#endif
