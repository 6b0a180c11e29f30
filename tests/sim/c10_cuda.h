/* c10_cuda.h: the inside of libc10_cuda.so. One lock for each device guards its blocks. */
#ifndef C10_CUDA_H
#define C10_CUDA_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>

#include "c10_report.h"
#include "c10sim.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

#define MIN_BLOCK     512u
#define SMALL_MOST    MIB	 /* largest request of the small pool */
#define SMALL_SEGMENT (2 * MIB)	 /* what it takes segments of, and pages of expandable ones */
#define LARGE_SEGMENT (20 * MIB) /* the same of the large pool, for requests below LARGE_LEAST */
#define LARGE_LEAST   (10 * MIB)
#define SEGMENT_ROUND (2 * MIB)

typedef uint64_t u64;

struct c10_pool;
struct c10_expandable;

struct c10_block {
	struct c10_pool *pool;
	int64_t stream;
	char *pointer;
	u64 bytes;
	struct c10_block *prev, *next;		 /* in the segment */
	struct c10_block *free_prev, *free_next; /* in the pool's set of free or unmapped ones */
	struct c10_expandable *expandable;	 /* NULL: a segment of cudaMalloc */
	bool mapped;
	bool allocated;
	unsigned int n_events; /* it waits for */
	uint32_t uses;	       /* bits of streams, beside its own */
};

/* Free blocks, and unmapped ranges, of one size class. */
struct c10_pool {
	struct c10_device_state *device;
	u64 private_id; /* 0: an ordinary pool */
	bool small;
	struct c10_block *free;
	struct c10_block *unmapped;
};

struct c10_private {
	u64 id;
	bool open, released;
	int64_t stream;
	struct c10_pool pools[2]; /* small, large */
	struct c10_private *next;
};

struct c10_wait {
	cudaEvent_t event;
	int64_t stream;
	struct c10_block *block;
	struct c10_wait *next;
};

struct c10_stat {
	u64 current, peak;
};

struct c10_device_state {
	pthread_mutex_t lock;
	int ordinal;
	u64 limit_bytes;
	struct c10_pool pools[2]; /* small, large */
	struct c10_private *privates;
	struct c10_wait *waits, **last_wait; /* in order of recording */
	cudaEvent_t spare_events[64];
	unsigned int n_spare_events;
	struct c10_block **active; /* allocated or pending, by address of the block */
	size_t n_active, active_room;
	struct c10_stat allocated, reserved, live, inactive_split;
	u64 pending_bytes, n_allocations, n_frees, n_device_allocations, n_device_frees, n_retries,
		n_ooms;
};

struct c10_settings {
	bool expandable;
	bool async; /* backend:cudaMallocAsync */
	bool uncached;
	u64 max_split_bytes;
	enum { NAMES_2, NAMES_1_13, NAMES_NEXT } names;
};

#pragma GCC visibility push(hidden)

extern struct c10_device_state c10_devices[C10SIM_MAX_DEVICES];

/* Read at the first call. */
const struct c10_settings *c10_settings(void);

/* c10_stream.c */
cudaStream_t c10_stream_handle(int device, int64_t stream);
int64_t c10_stream_current(int device);
void c10_device_use(int device);

/* c10_block.c. All with the device's lock held. */
void c10_stat_add(struct c10_stat *stat, u64 bytes);
struct c10_block *c10_block_new(struct c10_pool *pool, int64_t stream, char *pointer, u64 bytes);
void c10_free_insert(struct c10_block *block);
void c10_free_remove(struct c10_block *block);
void c10_unmapped_insert(struct c10_block *block);
void c10_unmapped_remove(struct c10_block *block);
bool c10_is_split(const struct c10_block *block);
/* Takes the neighbour into block if both are free and of one state. Returns its bytes, or 0. */
u64 c10_merge(struct c10_block *block, struct c10_block *neighbour);
struct c10_block *c10_find_free(struct c10_pool *pool, int64_t stream, u64 bytes);
/* Makes of block, which is in no set, one of bytes that is handed out. */
struct c10_block *c10_hand_out(struct c10_block *block, u64 bytes);
/* The user gave it back. */
void c10_give_back(struct c10_block *block);
/* Blocks whose events are done are free; wait: for all of them. */
void c10_process_events(struct c10_device_state *device, bool wait);
bool c10_captures_open(const struct c10_device_state *device);
struct c10_block *c10_active_find(struct c10_device_state *device, const void *pointer, size_t *at);

/* c10_expand.c */
struct c10_block *c10_expand(struct c10_pool *pool, int64_t stream, u64 bytes);
/* Gives back the whole pages of a free block; the segment too, if it is empty then. */
void c10_unmap(struct c10_block *block);

/* c10_alloc.c */
bool c10_within_limit(const struct c10_device_state *device, u64 bytes);

#pragma GCC visibility pop

#endif
