/*
 * sim.h: the inside of the simulated libcuda.so.1.
 *
 * A machine without a GPU runs programs, and tests of what they allocate, on this library. Device
 * memory is a set of 2 MiB physical pages per device with real bytes behind them; addresses are
 * reserved and inaccessible to the host, as on a real device. Requests up to 1 MiB are packed at
 * 512 bytes inside a page, larger ones take whole pages, which need not be neighbours. Work is done
 * at once: a stream is always idle when a call returns.
 *
 *   sim_core.c    settings, start, entering and leaving a call, faults, fork
 *   sim_ledger.c  what the program did; JSON at exit
 *   sim_index.c   sorted look-up by address
 *   sim_page.c    devices, physical pages, address space, the packer
 *   sim_device.c  device queries, error names          sim_ctx.c     contexts and their footprint
 *   sim_mem.c     linear, managed, host memory         sim_pool.c    stream-ordered memory
 *   sim_pending.c stream-ordered frees
 *   sim_vmm.c     virtual memory management            sim_array.c   arrays
 *   sim_share.c   memory shared with others            sim_ipc.c     IPC handles, pool pointers
 *   sim_external.c external memory, graphics           sim_code.c    modules, green contexts
 *   sim_graph.c   graphs and their nodes               sim_exec.c    executable graphs
 *   sim_stream.c  streams, events, captures            sim_set.c     memory sets
 *   sim_copy.c    linear copies                        sim_box.c     copies of boxes, of arrays
 *   sim_batch.c   batches of copies                    sim_migrate.c managed memory on the move
 *   sim_clock.c   how long copies take          sim_entry.c   cuGetProcAddress
 *
 * One lock, sim.lock, guards everything; SIM_CALL takes it, and functions declared here expect it
 * to be held. Exports never call each other, so a fault or a recorder sees each call of the program
 * once.
 */
#ifndef SIM_H
#define SIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h> /* cuda.h includes it, and it must not be protected */
#include <stdint.h>

/* Protected: the addresses that cuGetProcAddress returns are this library's, whoever else exports
 * the same name. */
#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(protected)
#include <cuda.h>
#include "cusim.h"
#pragma GCC visibility pop

typedef uint64_t u64;
typedef uint32_t u32;

#define SIM_PAGE_BYTES	(2ull << 20) /* physical granularity */
#define SIM_UNIT_BYTES	512ull	     /* packing granularity inside a page */
#define SIM_UNITS	(SIM_PAGE_BYTES / SIM_UNIT_BYTES)
#define SIM_SMALL_BYTES (1ull << 20)  /* the largest request that is packed */
#define SIM_WIDE_BYTES	(16ull << 20) /* from here on addresses are multiples of SIM_WIDE_ALIGN */
#define SIM_WIDE_ALIGN	(32ull << 20)
#define SIM_POOL_STEP	(32ull << 20) /* a pool's reserved memory grows by multiples of this */
#define SIM_CONTEXT_BYTES                                                                          \
	(64ull << 20) /* footprint of a device's first context (a real one: about 550 MB) */
#define SIM_MODULE_BYTES     (2ull << 20)  /* what a loaded module or library takes */
#define SIM_CODE_BYTES	     (2ull << 20)  /* what its functions take, from the first one on */
#define SIM_EXEC_BYTES	     (64ull << 10) /* what an executable graph takes */
#define SIM_GREEN_BYTES	     (4ull << 20)  /* what a green context takes */
#define SIM_N_SM	     4ull
#define SIM_THREADS_PER_SM   2048ull
#define SIM_STACK_BYTES	     1024ull /* stack limit that the footprint already contains */
#define SIM_HEAP_LIMIT_BYTES (8ull << 20)
#define SIM_PITCH_BYTES	     512ull
#define SIM_VERSION	     13000
#define SIM_MAX_CURRENT	     64 /* depth of a thread's context stack */

/* ---- sim_index.c: values sorted by a 64-bit key ---- */

struct sim_entry {
	u64 key;
	void *value;
};

struct sim_index {
	struct sim_entry *entries;
	size_t n_entries, capacity;
};

/* Adds a value (borrowed). False when there is no memory for it. */
bool sim_index_insert(struct sim_index *index, u64 key, void *value);
/* Removes the entry with this key and value, if it is there. */
void sim_index_remove(struct sim_index *index, u64 key, const void *value);
/* The value with exactly this key, or with the largest key not above it; NULL if there is none. */
void *sim_index_get(const struct sim_index *index, u64 key);
void *sim_index_floor(const struct sim_index *index, u64 key);

/* Handles are addresses of our own objects; these say whether a program's handle is one. */
static inline bool sim_handle_insert(struct sim_index *index, void *handle)
{
	return sim_index_insert(index, (u64)(uintptr_t)handle, handle);
}

static inline void sim_handle_remove(struct sim_index *index, void *handle)
{
	sim_index_remove(index, (u64)(uintptr_t)handle, handle);
}

static inline bool sim_handle_known(const struct sim_index *index, const void *handle)
{
	return handle && sim_index_get(index, (u64)(uintptr_t)handle);
}

/* ---- sim_page.c: devices, pages, addresses, packing ---- */

struct sim_arena { /* a reserved piece of the address space */
	u64 base;
	u32 n_pages;
	u32 first_free; /* no free page lies before this one */
	unsigned char *used;
};

struct sim_heap { /* packs small requests; one per source of pages */
	struct sim_device *dev;
	enum cusim_owner owner;
	CUmemoryPool pool; /* pages come from this pool; NULL: from the device */
	struct sim_arena *arena;
	struct sim_small *smalls;
};

struct sim_device {
	CUdevice ordinal;
	u64 total_bytes;
	u32 n_pages, n_free;
	u32 *free_pages;
	unsigned char *dirty;	     /* page has been written since it was last given back */
	struct sim_chunk **chunk_of; /* the pool chunk a page belongs to */
	char *physical;
	struct sim_heap heap,
		low_heap; /* low: addresses of 32 bits, for the first version of the API */
	struct sim_heap array_heap, exec_heap;
	CUmemoryPool default_pool, pool, graph_pool;
	CUcontext primary;
	u64 busy_ns; /* its default streams are busy until then */
	u32 n_contexts;
	u32 *footprint_pages;
};

struct sim_place { /* where an allocation lies */
	struct sim_heap *heap;
	u64 address;		 /* 0: the addresses are somebody else's */
	struct sim_small *small; /* packed in this page, or NULL: */
	u32 first_unit, n_units;
	u32 *pages, n_pages;
};

/* The bytes of each device that this process can never have: those of others, in whole pages, and
 * what is less than a page. */
u64 sim_other_bytes(void);

/* Of all other processes, simulated ones, too. */
u64 sim_others_use(const struct sim_device *dev);
/* Memory for the devices that the settings ask for. */
CUresult sim_devices_init(void);
/* Takes n free pages, all or none. Gives pages back, discarding their bytes. */
bool sim_pages_take(struct sim_device *dev, enum cusim_owner owner, u32 n, u32 *pages);
void sim_pages_give(struct sim_device *dev, enum cusim_owner owner, const u32 *pages, u32 n);
/* Takes and gives n pages as a new array. NULL (with n > 0): no memory. */
u32 *sim_pages_new(struct sim_device *dev, enum cusim_owner owner, u32 n);
void sim_pages_free(struct sim_device *dev, enum cusim_owner owner, u32 *pages, u32 n);
/* Reserves addresses for n pages, aligned; 0 when the address space is used up. */
u64 sim_address_take(struct sim_arena *arena, u32 n_pages, u64 align);
void sim_address_give(struct sim_arena *arena, u64 address, u32 n_pages);
/* Does the address lie in an arena: a device address, valid or not. */
bool sim_address_is_device(u64 address);
/* Places a request by the rules above; no memory: CUDA_ERROR_OUT_OF_MEMORY, nothing taken. */
CUresult sim_place_take(struct sim_heap *heap, u64 bytes, struct sim_place *place);
void sim_place_give(struct sim_place *place);
/* The real bytes at an offset of the place, and how many of them are contiguous. */
char *sim_place_bytes(
	const struct sim_place *place, u64 offset, u64 *n_contiguous, unsigned char **dirty);

static inline u32 sim_n_pages(u64 bytes)
{
	return (u32)((bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES);
}

/* ---- sim_mem.c: ranges of addresses that mean something ---- */

enum sim_range_kind { /* the first ones are enum cusim_kind */
	SIM_RANGE_MAPPING = CUSIM_N_KINDS,
	SIM_RANGE_RESERVATION,
};

enum sim_share { SIM_SHARE_IPC, SIM_SHARE_POOL, SIM_SHARE_EXTERNAL, SIM_SHARE_GRAPHICS };

struct sim_range {
	u64 base, bytes; /* addresses a program may use: as many as it asked for */
	int kind;
	struct sim_device *dev;
	CUcontext ctx; /* ends with this context; NULL: does not */
	u64 id;
	char *host;	/* real memory, for what the host can read too */
	u64 host_bytes; /* mapped by us; 0 for registered memory */
	unsigned int flags;
	struct sim_place place;
	CUmemoryPool pool;
	struct sim_handle *handle;		 /* of a mapping */
	unsigned char access[CUSIM_MAX_DEVICES]; /* of a mapping: CUmemAccess_flags by device */
	enum sim_share share;			 /* of shared memory */
	u64 target,
		target_id; /* of an alias in this process: the address, and the range it is in */
	struct sim_arena *arena; /* n_addresses pages of this end with the range */
	u32 n_addresses;
	CUarray array; /* what is made of the range, and ends with it */
	CUmipmappedArray mipmap;
	void *object;
	void (*end)(struct sim_range *range); /* what else ends with it; sees object */
};

/* A new range, indexed and in the ledger if of one of its kinds; NULL: no memory. */
struct sim_range *sim_range_new(
	int kind, struct sim_device *dev, CUcontext ctx, u64 base, u64 bytes);
/* Ends a range: ledger, index, pages, host memory. */
void sim_range_free(struct sim_range *range, bool implicit);
/* The range that contains the address, or NULL. */
struct sim_range *sim_range_find(u64 address);
/* Ends everything that belongs to the context. */
void sim_ranges_end_with(CUcontext ctx);
/* Allocates from a heap as the given kind. */
CUresult sim_alloc(
	CUcontext ctx, struct sim_heap *heap, int kind, u64 bytes, struct sim_range **out);
/* Ends what cuMemFree can free; anything else is CUDA_ERROR_INVALID_VALUE. */
CUresult sim_free(u64 address);

/* ---- sim_array.c ---- */

struct CUarray_st { /* an array, or one level of a mipmapped one */
	struct sim_range *range;
	bool is_level;
	u64 offset;		       /* in the range */
	u64 element, width, row_bytes; /* bytes: of an element, used of a row, from row to row */
	u64 height, depth;	       /* rows, layers; 1 where the array has no such dimension */
	CUDA_ARRAY3D_DESCRIPTOR description;
};

/* Ends the handles of what was made of the range. */
void sim_arrays_end(struct sim_range *range);
/* A mipmapped array over memory that is there already. */
CUresult sim_mipmap_over(CUmipmappedArray *out, struct sim_range *range,
	const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int n_levels);
/* The bytes that such a mipmapped array needs; 0: the description is not valid. */
u64 sim_mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int n_levels);

/* ---- sim_share.c ---- */

/* What is written where memory is shared: into IPC handles, exported pointers, files. */
struct sim_token {
	u64 magic;
	int what, pid, device;
	u64 base, bytes, id;
};
enum sim_shared_what { SIM_TOKEN_RANGE = 1, SIM_TOKEN_POOL, SIM_TOKEN_PHYSICAL };

struct sim_external { /* memory that no device of ours has */
	char *host;
	u64 bytes;
	u32 n_refs;
};

struct sim_token sim_token_of(int what, const struct sim_device *dev, u64 base, u64 bytes, u64 id);
bool sim_token_valid(const struct sim_token *token, int what);
/* Is the token of this very process. */
bool sim_token_mine(const struct sim_token *token);
/* A new file with the token in it; -1: none. The program closes it. */
int sim_token_write(const struct sim_token *token);
bool sim_token_read(int fd, int what, struct sim_token *token);
/* Memory with one reference; NULL: none. Dropping the last reference ends it. */
struct sim_external *sim_external_new(u64 bytes);
void sim_external_drop(struct sim_external *external);
/* Shared memory of the context: bytes of external memory, with a reference of its own. */
struct sim_piece {
	struct sim_external *external;
	u64 offset, bytes;
	struct sim_arena *arena; /* where its addresses are to be */
};
/* Does the call that gives its address tell the size of this shared memory. False for other ranges.
 */
bool sim_share_is_told(const struct sim_range *range);
CUresult sim_share_external(
	CUcontext ctx, enum sim_share share, const struct sim_piece *piece, struct sim_range **out);
/* The same of what the token names: memory of this process under other addresses, or of another. */
CUresult sim_share_token(CUcontext ctx, struct sim_device *dev, enum sim_share share,
	const struct sim_token *token, struct sim_range **out);
/* Is what the alias stands for still there (true of what is no alias). */
bool sim_alias_valid(const struct sim_range *range);

/* ---- sim_pool.c ---- */

struct CUmemPoolHandle_st {
	struct sim_device *dev;
	struct sim_heap heap;
	struct sim_chunk *chunks;
	u64 reserved_bytes, reserved_high, used_bytes, used_high, threshold;
	u64 most_bytes; /* to be reserved; 0: no limit */
	struct sim_pending *pending;
	u64 n_live, id;
	int reuse[3]; /* the reuse switches, which change nothing here */
	int handle_types;
	bool destroyed, imported;
};

/* A pool whose pages are for this owner. A program can name it if that is CUSIM_BY_POOLS. NULL: no
 * memory. */
CUmemoryPool sim_pool_new(struct sim_device *dev, enum cusim_owner owner);
/* Returns whole unused chunks, while at least keep_bytes stay reserved. */
void sim_pool_trim(CUmemoryPool pool, u64 keep_bytes);
/* Can so many pages be taken. */
bool sim_pool_has(CUmemoryPool pool, u32 n);
/* The device has no context any more: its pools reserve nothing. */
void sim_pools_end(struct sim_device *dev);

/* Every device gets its default pool. */
CUresult sim_pools_init(void);
bool sim_pool_take(CUmemoryPool pool, u32 n, u32 *pages);
void sim_pool_give(CUmemoryPool pool, const u32 *pages, u32 n);
/* Accounts bytes used in a pool; a destroyed pool ends with its last allocation. */
void sim_pool_used(CUmemoryPool pool, u64 bytes, bool more);
/* A synchronisation: what waited for streams is free, and the device's pools return unused memory
 * above their threshold. */
void sim_pools_settle(const struct sim_device *dev);

/* ---- sim_pending.c ---- */

/* What was freed on this stream, or (any) on all of them, is free now: their work is done. */
void sim_pending_end(CUmemoryPool pool, CUstream stream, bool any);

/* ---- sim_vmm.c ---- */
void sim_vmm_unmap(struct sim_range *mapping);
/* Is there memory behind it: not behind a multicast object. */
bool sim_vmm_has_memory(const struct sim_range *mapping);
char *sim_vmm_bytes(
	const struct sim_range *mapping, u64 offset, u64 *n_contiguous, unsigned char **dirty);

/* ---- sim_graph.c, sim_exec.c ---- */

struct sim_block { /* the address of a graph's allocation; its memory comes and goes */
	struct sim_device *dev;
	u64 address, bytes;
	u32 n_pages;
	u32 n_refs;  /* by nodes, executables, and itself while live */
	u32 n_execs; /* executables that allocate it */
	CUgraph graph;
	CUgraph freed_in;	/* the graph that has a free node for it */
	struct sim_range *live; /* while there is memory */
	bool soon;		/* for sim_exec.c: live at this step of a launch */
};

struct CUgraphNode_st {
	CUgraphNodeType type;
	struct sim_block *block; /* of an allocation or a free */
};

struct CUgraph_st {
	CUgraphNode *nodes;
	size_t n_nodes, capacity;
};

CUgraph sim_graph_new(void);
void sim_graph_free(CUgraph graph);
CUresult sim_graph_add_alloc(
	CUgraph graph, struct sim_device *dev, u64 bytes, CUgraphNode *node, u64 *address);
CUresult sim_graph_add_free(CUgraph graph, u64 address, CUgraphNode *node);
void sim_block_drop(struct sim_block *block);
/* May a call free this graph memory: not if its own graph does. */
bool sim_block_may_free(const struct sim_range *range);
/* Ends the executables of a context. */
void sim_execs_end_with(CUcontext ctx);

/* ---- sim_code.c ---- */

/* Returns the memory of the context's modules; of the device's green contexts if it is primary. */
void sim_code_end_with(CUcontext ctx);

/* ---- sim_ctx.c ---- */

struct CUctx_st {
	struct sim_device *dev;
	bool live, primary;
	u32 n_retained;
	unsigned int flags, version;
	u64 stack_bytes, heap_bytes;
	u32 *stack_pages, n_stack_pages;
	u32 *heap_pages, n_heap_pages;
};

/* The calling thread's current context, or NULL. */
CUcontext sim_ctx_current(void);
/* As cuDevicePrimaryCtxRetain and cuDevicePrimaryCtxRelease. */
CUresult sim_primary_retain(CUcontext *out, CUdevice ordinal);
CUresult sim_primary_release(CUdevice ordinal);

/* ---- sim_stream.c ---- */

/* Is the handle a stream (or one of the special values). */
bool sim_stream_known(CUstream stream);
/* Does work on streams not come to an end (cusim_hold_events). */
bool sim_work_is_held(void);
/* Is the stream recording. */
bool sim_stream_capturing(CUstream stream);
/* May the calling thread make a call that is unsafe during captures? If not, the captures are
 * invalid from now on. */
bool sim_capture_allows_unsafe(void);
/* The same for a synchronous call on the legacy stream. */
bool sim_capture_allows_implicit(void);
/* A call that the stream cannot record invalidates its capture. */
void sim_capture_invalidate(CUstream stream);
/* The graph a capturing stream records into; NULL: the capture is invalid. */
CUgraph sim_capture_graph(CUstream stream);

/* When the stream's last copy is through, by sim_clock_now. */
u64 *sim_stream_clock(CUcontext ctx, CUstream stream);

/* ---- sim_clock.c ---- */

/* Nanoseconds. */
u64 sim_clock_now(void);
/* The call that is being made returns no sooner than that; sim_clock_return, without the lock, sees
 * to it. */
void sim_clock_wait(u64 until_ns);
void sim_clock_return(void);
/* A copy of bytes is put into the stream; the call waits for it if it is synchronous, or if the
 * host memory is pageable. */
void sim_clock_copy(CUcontext ctx, CUstream stream, bool sync, enum cusim_host host, u64 bytes);

/* ---- sim_ledger.c ---- */
void sim_ledger_alloc(const struct sim_device *dev, int kind, u64 bytes);
void sim_ledger_free(const struct sim_device *dev, int kind, u64 bytes, bool implicit);
void sim_ledger_failed(CUcontext ctx, int kind);
void sim_ledger_traffic(struct cusim_traffic *traffic, u64 bytes);
/* A copy, charged to dev. */
void sim_ledger_copy(const struct sim_device *dev, enum cusim_direction direction,
	enum cusim_host host, u64 bytes);

/* ---- sim_core.c ---- */

struct sim_fault {
	char name[64];
	u64 nth, n_calls;
	int code;
};

struct sim_slow {
	char name[64];
	unsigned int us;
};

struct sim_await {
	char name[64], path[64];
};

struct sim_state {
	pthread_mutex_t lock;
	bool initialised, forked;
	u32 n_devices;
	unsigned char machine_number[CUSIM_MAX_DEVICES]; /* of each device that is visible */
	u64 memory_bytes, other_bytes, link_bytes;
	bool ipc_self, array_query;
	struct sim_fault faults[32];
	u32 n_faults;
	struct sim_slow slows[32];
	u32 n_slows;
	struct sim_await awaits[4];
	u32 n_awaits;
	u64 *machine_bytes; /* in use by all processes, by machine number; NULL: there is one */
	struct sim_device devices[CUSIM_MAX_DEVICES];
	struct sim_arena arena, low_arena;
	struct sim_index ranges, reservations, handles, contexts, streams, events, graphs, pools;
	struct sim_index arrays, mipmaps, blocks, execs, modules, externals, graphics, greens;
	struct sim_index physicals; /* by id: what was exported */
	u64 last_id;
	struct cusim_ledger ledger;
};
extern struct sim_state sim;

/* Reads the settings, once. Call without the lock. */
void sim_configure(void);

enum sim_need { NEED_NOTHING, NEED_INIT, NEED_CONTEXT };

/* Enters an export: waits if it is to be slow, takes the lock, and says what stands in the way of
 * the call: a scripted fault, no cuInit yet, no context. sim_leave must follow in any case. *ctx is
 * the current context, or NULL. */
CUresult sim_enter(const char *name, enum sim_need need, CUcontext *ctx);
void sim_leave(void);
struct sim_device *sim_device_get(CUdevice ordinal);

/* The body of an export: expr, with `ctx` the current context, under the lock; then `after`, which
 * sees `result`. */
#define SIM_CALL_THEN(need, expr, after)                                                           \
	({                                                                                         \
		CUcontext ctx;                                                                     \
		CUresult result = sim_enter(__func__, need, &ctx);                                 \
		if (result == CUDA_SUCCESS)                                                        \
			result = (expr);                                                           \
		after;                                                                             \
		sim_leave();                                                                       \
		result;                                                                            \
	})
#define SIM_CALL(need, expr) SIM_CALL_THEN(need, expr, (void)ctx)
#define SIM_ALLOC(kind, expr)                                                                      \
	SIM_CALL_THEN(NEED_CONTEXT, expr, if (result != CUDA_SUCCESS) sim_ledger_failed(ctx, kind))
#define SIM_FREE(need, expr)                                                                       \
	SIM_CALL_THEN(                                                                             \
		need, expr, if (result != CUDA_SUCCESS) {                                          \
			sim.ledger.failed_frees++;                                                 \
			(void)ctx;                                                                 \
		})

#endif
