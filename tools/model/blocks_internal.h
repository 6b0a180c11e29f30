/* What the files about allocators share. */
#ifndef VRAMTRACE_MODEL_BLOCKS_INTERNAL_H
#define VRAMTRACE_MODEL_BLOCKS_INTERNAL_H

#include "model/blocks.h"
#include "model/internal.h"

struct model_segment *segment_from(struct tree_node *node);

/* The allocator's segment that holds address: memory of the driver in which it places a piece of
 * bytes becomes one. NULL: no such memory is known, or it is another allocator's. */
struct model_segment *segment_of(struct model *model, struct model_allocator *allocator,
	uint64_t address, uint64_t bytes, uint64_t time_ns);

/* A piece in it begins to be used, or stops. */
void segment_use(struct model_segment *segment, uint64_t bytes, bool add);

/* Ends every piece of the allocator that begins in the range: their memory has gone. */
void pieces_end_in(
	struct model *model, struct model_allocator *allocator, uint64_t address, uint64_t bytes);

/* The piece is free at last. */
void piece_settle(
	struct model *model, struct model_allocator *allocator, struct model_piece *piece);

/* A piece, or with NULL one that is not known, is given back by this thread: it waits for the
 * events that were recorded for it right before. Returns how many. */
size_t waits_attach(struct model *model, struct model_allocator *allocator,
	struct model_piece *piece, uint32_t tid);

/* A pending piece ends for another reason than its events. */
void waits_drop(struct model *model, const struct model_piece *piece);

void waits_apply(struct model *model, const struct vt_record *record);
void waits_release(struct model *model);

#endif
