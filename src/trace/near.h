/*
 * Blocks of allocators in few bytes. Most events of a training are blocks that come and go, at
 * addresses that were used shortly before, in units of 512 bytes and with sums that say nothing
 * new. The records block_alloc_at, block_alloc_near, block_free_near and block_free_at stand for
 * such a block_alloc or block_free; a reader hands out what they stand for.
 *
 * Writer and reader number the places that the chunk names: a block_alloc_at, a block_free_at and a
 * block_alloc_near with a length name one. The others tell how long ago theirs was named.
 */
#ifndef VRAMTRACE_TRACE_NEAR_H
#define VRAMTRACE_TRACE_NEAR_H

#include <stdbool.h>

#include "trace/codec.h"
#include "vramtrace/format.h"

struct vt_lane;

#define VT_NEAR_GRAIN_BYTES 512u
#define VT_NEAR_N_PLACES    1024u /* so many are remembered: ages are below */

/* Appends the record, in the shorter form where there is one. As vt_put_block_alloc and
 * vt_put_block_free. */
int vt_near_put_alloc(struct vt_lane *lane, const struct vt_rec_block_alloc *record);
int vt_near_put_free(struct vt_lane *lane, const struct vt_rec_block_free *record);

/* What a reader remembers of one chunk; all zero at its start. */
struct vt_near_places {
	uint64_t allocator_id;
	uint64_t n; /* places named so far */
	struct {
		uint64_t address;
		uint64_t bytes;
	} items[VT_NEAR_N_PLACES]; /* a ring */
};

/* Whether a record of this kind stands for another one. */
static inline bool vt_near_is(enum vt_record_kind kind)
{
	return kind >= VT_REC_block_alloc_at && kind <= VT_REC_block_free_at;
}

/* Turns such a record, just decoded, into the one it stands for; delta is that of the chunk. False:
 * it makes no sense. */
bool vt_near_expand(
	struct vt_near_places *places, struct vt_record *record, struct vt_delta *delta);

#endif
