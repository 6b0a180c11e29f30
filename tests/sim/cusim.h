/*
 * cusim.h: what tests can ask of the simulated CUDA (libcuda.so.1 of this folder).
 *
 * The simulator keeps its own ledger of what a program did, the truth that traces are compared
 * with. A test reads it through dlsym(RTLD_DEFAULT, "cusim_ledger_get"), or lets the program write
 * it as JSON at exit.
 *
 * Settings, read at the first CUDA call. A bad value costs one line on stderr and leaves the
 * default. CUSIM_DEVICES   number of devices, 0 to 16 (default 1) CUSIM_MEMORY    bytes of each
 * device, suffixes K M G (default 8G) CUSIM_OTHER     bytes of each device held by another process
 * (default 0) CUSIM_FAIL      export:n:code[,...]: the nth call of that export returns code and
 * does nothing CUSIM_SLOW      export:microseconds[,...]: each call of that export takes so much
 * longer CUSIM_LEDGER    path to write the ledger to when the process exits normally after a
 * cuInit; %p is the process id
 *
 * JSON written to CUSIM_LEDGER: one object
 *   pid             process id
 *   devices         array, one object per device, in order of ordinal:
 *     linear managed pool vmm array pinned registered    one object per kind of memory:
 *       live_bytes       bytes the program asked for and has not freed (pitched: pitch * height)
 *       live_count       number of such allocations
 *       peak_live_bytes  the largest live_bytes ever
 *       allocations      successful allocation (vmm: cuMemCreate; registered: register) calls
 *       frees            ended by a call on the allocation itself (vmm: by the last release or
 * unmap) implicit_frees   ended with their context failed           allocation calls that returned
 * an error page_bytes       device memory taken by this process now, in whole 2 MiB pages,
 * footprint included peak_page_bytes  the largest page_bytes ever footprint_bytes  of which context
 * footprint and stack limit pool_reserved_bytes  of which reserved by memory pools copies object
 * h2d d2h d2d p2p h2h, each with calls and bytes sets             memory set calls and bytes copies
 * the copies of all devices together sets              the sets of all devices together
 *   failed_frees      free calls (device, pool, host, unregister, release) that returned an error
 *   failed_copies     copy calls that returned an error
 *   failed_sets       memory set calls that returned an error
 *   failed_elsewhere  allocation calls that failed with no device to charge (no current context)
 *
 * Which device: that of the memory, of the named pool or of the location asked for; for pinned and
 * registered host memory and for other failed calls that of the calling thread's context; a copy
 * counts for the device of its destination, or of its source when only that is a device, or (h2h)
 * of the context. Managed memory belongs to the device of its context, takes none of its pages, and
 * is device memory to a copy. Which direction: what the entry point is named after, but a DtoD
 * between two devices is p2p; for cuMemcpy and cuMemcpyAsync what the simulator knows of both
 * addresses (pinned, registered, pageable: host). What a stream capture records is not executed,
 * hence not counted.
 */
#ifndef CUSIM_H
#define CUSIM_H

#include <stdint.h>

#define CUSIM_MAX_DEVICES 16

enum cusim_kind {
	CUSIM_LINEAR,
	CUSIM_MANAGED,
	CUSIM_POOL,
	CUSIM_VMM,
	CUSIM_ARRAY,
	CUSIM_PINNED,
	CUSIM_REGISTERED,
	CUSIM_N_KINDS
};

enum cusim_direction { CUSIM_H2D, CUSIM_D2H, CUSIM_D2D, CUSIM_P2P, CUSIM_H2H, CUSIM_N_DIRECTIONS };

struct cusim_kind_ledger {
	uint64_t live_bytes;
	uint64_t live_count;
	uint64_t peak_live_bytes;
	uint64_t allocations;
	uint64_t frees;
	uint64_t implicit_frees;
	uint64_t failed;
};

struct cusim_traffic {
	uint64_t calls;
	uint64_t bytes;
};

struct cusim_device_ledger {
	struct cusim_kind_ledger kinds[CUSIM_N_KINDS];
	uint64_t page_bytes;
	uint64_t peak_page_bytes;
	uint64_t footprint_bytes;
	uint64_t pool_reserved_bytes;
	struct cusim_traffic copies[CUSIM_N_DIRECTIONS];
	struct cusim_traffic sets;
};

struct cusim_ledger {
	uint64_t n_devices;
	struct cusim_device_ledger devices[CUSIM_MAX_DEVICES];
	uint64_t failed_frees;
	uint64_t failed_copies;
	uint64_t failed_sets;
	uint64_t failed_elsewhere;
};

/* Copies the ledger as it is now into *out (owned by the caller). Never fails; all zero before the
 * first cuInit. */
void cusim_ledger_get(struct cusim_ledger *out);

#endif
