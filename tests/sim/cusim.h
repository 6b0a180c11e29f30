/*
 * cusim.h: what tests can ask of the simulated CUDA (libcuda.so.1 of this folder).
 *
 * The simulator keeps its own ledger of what a program did, the truth that traces are compared
 * with. A test reads it through dlsym(RTLD_DEFAULT, "cusim_ledger_get"), or lets the program write
 * it as JSON at exit.
 *
 * Settings, read at the first call. A bad value costs one line on stderr and leaves the default.
 *
 *   CUSIM_DEVICES      number of devices, 0 to 16 (default 1); CUDA_VISIBLE_DEVICES chooses from
 * them by number, as with the real driver CUSIM_MEMORY       bytes of each device, suffixes K M G
 * (default 8G) CUSIM_OTHER        bytes of each device held by another process (default 0)
 *   CUSIM_MACHINE      a file: processes with the same one take from the same devices, as free
 * memory and NVML tell; what one is refused still depends on its own memory alone CUSIM_AWAIT
 * export:file[,...]: each call of that export makes file.at, waits for file CUSIM_FAIL
 * export:n:code[,...]: the nth call of that export returns code, does nothing CUSIM_SLOW
 * export:microseconds[,...]: each call of that export takes so much longer CUSIM_LINK         bytes
 * a second, suffixes K M G, that a copy moves, and a fifth of it from and to pageable memory:
 * synchronous copies and those with pageable memory take that long, others are under way, as
 * events, queries and waits then show (default 0: everything is done at once) CUSIM_LEDGER path to
 * write the ledger to when the process exits normally after a cuInit; %p is the process id
 *   CUSIM_IPC_SELF     1: a process may open its own IPC handles, which the real driver refuses
 *   CUSIM_ARRAY_QUERY  0: the memory requirements of arrays are refused, as the documentation says
 *                      of arrays without deferred mapping (default 1: they are told)
 *
 * JSON written to CUSIM_LEDGER: one object
 *   pid             process id
 *   devices         array, one object per device, in order of ordinal:
 *     machine_number   which device of the machine it is
 *     linear managed pool vmm array pinned registered graph shared   one object per kind of memory:
 *       live_bytes       bytes the program asked for and has not freed (pitched: pitch * height;
 *                        arrays: what cuArrayGetMemoryRequirements says)
 *       live_count       number of such allocations
 *       peak_live_bytes  the largest live_bytes ever
 *       allocations      successful allocation (vmm: cuMemCreate; registered: register) calls
 *       frees            ended by a call on the allocation itself (vmm: the last release or unmap)
 *       implicit_frees   ended with their context
 *       failed           allocation calls that returned an error
 *     page_bytes           device memory taken by this process now, in whole 2 MiB pages
 *     peak_page_bytes      the largest page_bytes ever
 *     footprint_bytes      of which context and stack limit (context + local_memory of untracked)
 *     pool_reserved_bytes  of which reserved by memory pools
 *     total_bytes other_bytes free_bytes  of the device: all, of another process, free
 *     pages           object: page_bytes by what the pages hold, linear array vmm pool graph
 *     untracked       object: the rest of page_bytes, by the cause of it: context local_memory
 *                     device_heap modules graph_exec green
 *     graph_reserved_bytes graph_used_bytes  of the pool of graph memory
 *     graph_launches  launches of executable graphs on a context of the device
 *     copies          object h2d d2h d2d p2p h2h, each with calls and bytes
 *     sets            memory set calls and bytes
 *     shared_told_bytes  live_bytes of shared, but only of mapped buffers and graphics resources:
 *                        of these the call that gives the address tells the size
 *   copies          the copies of all devices together
 *   copies_by       array, the same copies by direction, host_kind (pageable registered pinned
 *                   managed, or null: no host memory) and size_class (bits of the number of bytes)
 *   sets            the sets of all devices together
 *   batches         batch copies: calls that submitted one, and their bytes
 *   migrations      object prefetch advise discard, each with calls (or parts of a batch) and bytes
 *   failed_frees      free calls (device, pool, host, array, unregister, release, IPC close,
 *                     graphics unmap) that returned an error
 *   failed_copies     copy calls that returned an error (a batch is one call)
 *   failed_sets       memory set calls that returned an error
 *   failed_migrations prefetch, advise and discard calls that returned an error
 *   failed_launches   graph launches that returned an error
 *   failed_elsewhere  allocation calls that failed with no device to charge (no current context)
 *
 * At any time  total_bytes = other_bytes + page_bytes + free_bytes  and  page_bytes = the sum of
 * pages and untracked, to the byte.
 *
 * Which device: that of the memory, of the named pool or of the location asked for; for pinned and
 * registered host memory, for IPC, external and graphics memory and for other failed calls that of
 * the calling thread's context; a copy counts for the device of its destination, or of its source
 * when only that is a device, or (h2h) of the context. Managed memory belongs to the device of its
 * context, takes none of its pages, and is device memory to a copy. Which direction: what the entry
 * point is named after, but a DtoD between two devices is p2p; for cuMemcpy, cuMemcpyAsync and
 * batches what the simulator knows of both addresses (pinned, registered, pageable: host); for
 * descriptors what their memory types say, arrays being device memory, where unified ends are
 * looked up, two devices are p2p, and so is a 3DPeer copy from device to device. Each copy of a
 * batch counts as one, a box without bytes as none. What a stream capture records is not executed,
 * hence not counted, and what a graph launch copies is not either.
 *
 * Graph memory is live from the launch that allocates it to a launch or call that frees it.
 * Shared memory is what others own, mapped here: IPC, pointers of imported pools, mapped buffers
 * and arrays of external memory, graphics resources from the first look-up of their pointer to
 * their unmapping, and handles of imported physical memory while held or mapped (these count for
 * the device of that memory). It takes no pages here. What cuMemCreate made counts as vmm while its
 * own handle is held or mapped; its pages stay as long as imports of it do. Multicast objects have
 * no memory and are not counted.
 */
#ifndef CUSIM_H
#define CUSIM_H

#include <stdbool.h>
#include <stddef.h>
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
	CUSIM_GRAPH,
	CUSIM_SHARED,
	CUSIM_N_KINDS
};

enum cusim_direction { CUSIM_H2D, CUSIM_D2H, CUSIM_D2D, CUSIM_P2P, CUSIM_H2H, CUSIM_N_DIRECTIONS };

enum cusim_migration { CUSIM_PREFETCH, CUSIM_ADVISE, CUSIM_DISCARD, CUSIM_N_MIGRATIONS };

enum cusim_owner { /* what a physical page is for */
	CUSIM_BY_LINEAR,
	CUSIM_BY_ARRAYS,
	CUSIM_BY_VMM,
	CUSIM_BY_POOLS,
	CUSIM_BY_GRAPHS,
	CUSIM_BY_CONTEXT, /* from here on nobody asked for the memory */
	CUSIM_BY_LOCAL_MEMORY,
	CUSIM_BY_DEVICE_HEAP,
	CUSIM_BY_MODULES,
	CUSIM_BY_GRAPH_EXECS,
	CUSIM_BY_GREEN_CONTEXTS,
	CUSIM_N_OWNERS
};

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

/* The host memory of a copy: of its two ends the one that is named first here. */
enum cusim_host {
	CUSIM_HOST_PAGEABLE,
	CUSIM_HOST_REGISTERED,
	CUSIM_HOST_PINNED,
	CUSIM_HOST_MANAGED,
	CUSIM_HOST_NONE,
	CUSIM_N_HOSTS
};

#define CUSIM_N_SIZES 65 /* by the number of bits that the bytes of a copy need as a number */

struct cusim_device_ledger {
	struct cusim_kind_ledger kinds[CUSIM_N_KINDS];
	uint64_t page_bytes;
	uint64_t peak_page_bytes;
	uint64_t owned_bytes[CUSIM_N_OWNERS];
	uint64_t footprint_bytes;
	uint64_t pool_reserved_bytes;
	uint64_t total_bytes;
	uint64_t other_bytes;
	uint64_t free_bytes;
	uint64_t graph_reserved_bytes;
	uint64_t graph_used_bytes;
	uint64_t graph_launches;
	struct cusim_traffic copies[CUSIM_N_DIRECTIONS];
	struct cusim_traffic sets;
	uint64_t shared_told_bytes;
};

struct cusim_ledger {
	uint64_t n_devices;
	struct cusim_device_ledger devices[CUSIM_MAX_DEVICES];
	struct cusim_traffic copies[CUSIM_N_DIRECTIONS][CUSIM_N_HOSTS][CUSIM_N_SIZES];
	struct cusim_traffic batches;
	struct cusim_traffic migrations[CUSIM_N_MIGRATIONS];
	uint64_t failed_frees;
	uint64_t failed_copies;
	uint64_t failed_sets;
	uint64_t failed_migrations;
	uint64_t failed_launches;
	uint64_t failed_elsewhere;
};

/* Copies the ledger as it is now into *out (owned by the caller). Never fails; all zero before the
 * first cuInit. */
void cusim_ledger_get(struct cusim_ledger *out);

struct cusim_memory {
	unsigned char uuid[16];
	uint64_t total_bytes;
	uint64_t free_bytes;
	uint64_t other_bytes; /* of another process */
	uint64_t own_bytes;   /* of this one */
};

/* The memory of a device as the machine sees it, cuInit or not. False: there is no such device. */
bool cusim_device_memory(int ordinal, struct cusim_memory *out);

/* A resource of a graphics API (a CUgraphicsResource) of so many bytes, registered with CUDA. It
 * lives as long as the process, on no device. NULL: no memory, or no bytes. */
void *cusim_graphics_resource(size_t bytes);

/* From now on, events that are recorded do not happen, or happen at once again, and with them those
 * that were held. An event that is waited for happens. At the start they happen at once. Pool
 * memory that is freed on a stream meanwhile stays in use for all others until something is waited
 * for. */
void cusim_hold_events(bool hold);

/* A kernel of the calling thread's context uses the device heap: the first one costs as much device
 * memory as its limit. No call of CUDA says so. False: no context, or not so much memory. */
bool cusim_device_heap_use(void);

#endif
