/*
 * A model of PyTorch's caching allocator for one device: the same requests in the same order give
 * the same segments, splits, merges, releases and refusals. Rules are numbered as they are in the
 * comments of the functions that follow them; they were read in PyTorch's public sources of 1.13 to
 * 2.11 (c10/cuda/CUDACachingAllocator.cpp) and checked against real runs.
 *
 * Nothing here is thread-safe. Memory runs out as in model/memory.h.
 */
#ifndef VRAMTRACE_ANALYSIS_ALLOCATOR_H
#define VRAMTRACE_ANALYSIS_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/settings.h"

/* Where the driver puts a new segment, which decides between free blocks of one size. */
enum allocator_addresses {
	ALLOCATOR_DOWN,	    /* below all that came before */
	ALLOCATOR_UP,	    /* above all that came before */
	ALLOCATOR_ARENA,    /* in arenas of 32 MiB, best fit, the newest arena first */
	ALLOCATOR_ANYWHERE, /* at random, by options.seed */
	ALLOCATOR_GIVEN,    /* options.driver says */
};

/* What the driver is asked for. */
enum allocator_request {
	ALLOCATOR_SEGMENT, /* memory at an address of its choice */
	ALLOCATOR_RANGE,   /* addresses for an expandable segment */
	ALLOCATOR_MAP,	   /* memory behind a part of such a range */
};

struct allocator_options {
	struct settings settings;
	torch_release version;	 /* 0: as the newest one known */
	uint64_t device_bytes;	 /* of the device: its memory fraction is the cap */
	uint64_t cap_bytes;	 /* PyTorch refuses to reserve more; 0: only the memory fraction */
	uint64_t capacity_bytes; /* the driver has no more for PyTorch; 0: no limit */
	uint64_t range_bytes;	 /* addresses of an expandable segment; 0: by the device's size */
	enum allocator_addresses addresses;
	unsigned int seed; /* of ALLOCATOR_ANYWHERE */
	/* With ALLOCATOR_GIVEN: the address, for a map any number but 0; 0 refuses. What lies over
	 * other segments is as good as refused. */
	uint64_t (*driver)(void *arg, enum allocator_request request, uint64_t bytes);
	void *arg;
};

struct allocator_stats {
	uint64_t reserved_bytes, peak_reserved_bytes;
	uint64_t allocated_bytes, peak_allocated_bytes; /* blocks in use, pending ones too */
	uint64_t n_device_allocs, n_device_frees;	/* expandable: mapped and unmapped runs */
	uint64_t n_retries; /* full releases for the sake of a request */
	uint64_t n_refused;
};

struct allocator;
struct allocator_block;

/* A model with nothing in it; free it with allocator_free. */
struct allocator *allocator_new(const struct allocator_options *options);
void allocator_free(struct allocator *allocator);

/*
 * A block for a request of `bytes` on a stream, from the ordinary pools (pool 0) or those of a
 * graph. NULL when the request is refused. A pending block that became ready should be told of
 * before, with allocator_ready. The block is the model's, valid until it is released.
 */
struct allocator_block *allocator_get(
	struct allocator *allocator, uint64_t stream, uint64_t pool, uint64_t bytes);

/* Gives the block back. A pending one is still used by other streams: it stays out until
 * allocator_ready is called with the ticket returned, or a release waited for the device. 0 when it
 * is not pending. */
uint64_t allocator_put(struct allocator *allocator, struct allocator_block *block, bool pending);

/* The streams are done with the pending block of this ticket; nothing if a release had it returned
 * before. */
void allocator_ready(struct allocator *allocator, uint64_t ticket);

/* torch.cuda.empty_cache(). */
void allocator_empty_cache(struct allocator *allocator);

/* A capture or a scope of a memory pool begins or ends: full releases are left out meanwhile. */
void allocator_scope(struct allocator *allocator, bool begin);

/* The last graph of this pool is gone: its segments may be given back. */
void allocator_pool_unused(struct allocator *allocator, uint64_t pool);

/* Whether the last allocator_get took only the front of a free block. If not, the block may be
 * larger than the request: in the large pool by up to 1 MiB (rule 8). */
bool allocator_has_split(const struct allocator *allocator);

uint64_t allocator_block_address(const struct allocator_block *block);
uint64_t allocator_block_bytes(const struct allocator_block *block);

const struct allocator_stats *allocator_stats(const struct allocator *allocator);

/* What a request of `bytes` is rounded up to (rules 1 and 2). */
uint64_t allocator_round(const struct settings *settings, uint64_t bytes);

/* How much smaller than `bytes` a request can be that is rounded up to it because of
 * roundup_power2_divisions. */
uint64_t allocator_rounding(const struct settings *settings, uint64_t bytes);

/* How large an ordinary segment for a rounded request is (rule 4). */
uint64_t allocator_segment_bytes(const struct settings *settings, uint64_t bytes);

/* Calls see for each segment, or each mapped range of an expandable one, by address. */
struct allocator_segment {
	uint64_t address, bytes, stream, pool;
	bool is_small, expandable;
};
void allocator_segments(const struct allocator *allocator,
	void (*see)(void *arg, const struct allocator_segment *segment), void *arg);

#endif
