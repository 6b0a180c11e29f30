/* What the files of the allocator model share. */
#ifndef VRAMTRACE_ANALYSIS_ALLOCATOR_INTERNAL_H
#define VRAMTRACE_ANALYSIS_ALLOCATOR_INTERNAL_H

#include "analysis/allocator.h"
#include "model/hash.h"
#include "trace/tree.h"

/* Constants of CUDACachingAllocator.cpp, the same since 1.13. */
#define MIN_BLOCK_BYTES	    512u
#define SMALL_BYTES	    SETTINGS_MIB /* requests up to this come from the small pool */
#define SMALL_SEGMENT_BYTES (2 * SETTINGS_MIB)
#define MIN_LARGE_BYTES	    (10 * SETTINGS_MIB) /* from here on a request has its own segment */
#define SEGMENT_STEP_BYTES  (2 * SETTINGS_MIB)

struct pool;

/* How many free blocks stand in one array. */
#define SET_LEAF_ROOM 64u

struct set_leaf;

/* What one stream has free in a pool. */
struct stream_set {
	uint64_t stream;
	struct pool *pool;
	struct set_leaf **leaves; /* free blocks by size, then address */
	size_t n_leaves, leaves_room;
	struct set_place {
		size_t leaf, i; /* before entry i of the leaf */
	} found;		/* by the last search */
	struct tree unmapped;	/* by address; expandable segments only */
	struct stream_set *next;
};

struct segment {
	struct tree_node node; /* by address */
	uint64_t bytes;	       /* address space */
	uint64_t page_bytes;   /* of an expandable one, else 0 */
	uint64_t mapped_bytes;
	struct stream_set *set;
	struct allocator_block *first;
};

struct allocator_block {
	struct tree_node node; /* among the unmapped ranges */
	uint64_t address, bytes;
	struct segment *segment;
	struct allocator_block *previous, *next; /* in the segment */
	uint64_t since;				 /* pool's clock when it became free */
	bool used, pending, mapped;
};

struct pool {
	bool is_small;
	uint64_t clock; /* searches so far */
	uint64_t n_segments;
	struct stream_set *sets; /* by stream, ascending */
	struct private_pool *owner;
};

struct private_pool {
	uint64_t id;
	struct pool small, large;
	bool unused;
	UT_hash_handle hh;
};

struct pending {
	uint64_t ticket;
	struct allocator_block *block;
	UT_hash_handle hh;
};

/* Blocks come and go by the million. */
#define SLAB_BLOCKS 256u

struct block_slab {
	struct block_slab *next;
	struct allocator_block blocks[SLAB_BLOCKS];
};

struct arena {
	uint64_t address, bytes;
	size_t n_segments;
	struct arena *next;
};

struct allocator {
	struct allocator_options options;
	struct allocator_stats stats;
	uint64_t cap_bytes; /* of all limits of PyTorch's own; UINT64_MAX none */
	struct pool small, large;
	struct private_pool *pools;
	struct tree segments;
	struct pending *pending;
	uint64_t n_tickets;
	unsigned int n_scopes;
	uint64_t lowest, highest; /* addresses handed out by the driver */
	uint64_t random;
	struct arena *arenas; /* newest first */
	struct block_slab *slabs;
	struct allocator_block *spare; /* linked by next */
	bool has_split;
};

/* allocator_set.c: free blocks and unmapped ranges, in PyTorch's order. */
struct stream_set *set_of(struct pool *pool, uint64_t stream);
void set_free(struct stream_set *set);
void set_insert(struct allocator_block *block);
void set_remove(struct allocator_block *block);
/* The first block in order of size, then address, of at least `bytes`; the one behind, before it.
 */
struct allocator_block *set_at_least(struct stream_set *set, uint64_t bytes);
struct allocator_block *set_next(struct stream_set *set, const struct allocator_block *block);
struct allocator_block *set_previous(
	const struct stream_set *set, const struct allocator_block *block);
struct allocator_block *set_largest(const struct stream_set *set);
void set_insert_unmapped(struct allocator_block *block);
void set_remove_unmapped(struct allocator_block *block);
struct allocator_block *set_unmapped_from(const struct stream_set *set, uint64_t address);

/* allocator_addresses.c: the driver; 0 refuses. */
uint64_t driver_ask(struct allocator *allocator, enum allocator_request request, uint64_t bytes);
void driver_give(struct allocator *allocator, uint64_t address);

/* allocator_release.c */
void release_old(struct allocator *allocator);
bool release_oversize(struct allocator *allocator, struct stream_set *set, uint64_t bytes);
void release_all(struct allocator *allocator);

/* allocator_expandable.c */
struct allocator_block *expandable_get(
	struct allocator *allocator, struct stream_set *set, uint64_t bytes);
void expandable_unmap(struct allocator *allocator, struct allocator_block *block);

/* allocator.c */
/* NULL when the driver refuses. */
struct segment *segment_new(
	struct allocator *allocator, struct stream_set *set, uint64_t bytes, uint64_t page_bytes);
void segment_free(struct allocator *allocator, struct segment *segment);
struct allocator_block *block_new(
	struct allocator *allocator, struct segment *segment, uint64_t address, uint64_t bytes);
void block_free(struct allocator *allocator, struct allocator_block *block);
/* A new block behind the first `bytes` of this one, which is in no set. */
struct allocator_block *block_split(
	struct allocator *allocator, struct allocator_block *block, uint64_t bytes);
/* Merges block, which is in no set, with its neighbours (rule 9) and makes it free. */
void block_release(struct allocator *allocator, struct allocator_block *block);
void block_merge(struct allocator *allocator, struct allocator_block *block);
bool block_is_split(const struct allocator_block *block);
void count_reserved(struct allocator *allocator, uint64_t bytes);

#endif
