/*
 * How an allocator's memory is laid out: segments, and in each the ranges that are handed out,
 * given back but waiting for a stream, or free. Neighbouring pages of one expandable segment are
 * one segment here, as PyTorch's own snapshot has it.
 */
#ifndef VRAMTRACE_ANALYSIS_LAYOUT_H
#define VRAMTRACE_ANALYSIS_LAYOUT_H

#include "model/blocks.h"

enum layout_state {
	LAYOUT_ACTIVE,
	LAYOUT_PENDING,
	LAYOUT_INACTIVE,
};

struct layout_range {
	uint64_t address;
	uint64_t bytes;
	enum layout_state state;
	const struct model_piece *piece; /* NULL: inactive */
};

struct layout_segment {
	uint64_t address;
	uint64_t bytes;
	const struct model_device *device;
	uint32_t kind; /* enum vt_kind */
	bool mapped;   /* expandable */
	bool stream_known;
	int64_t stream;
	bool captured;
	size_t first_range; /* in ranges */
	size_t n_ranges;
};

/* All zero is an empty layout; release it with layout_release. Pieces are borrowed from the model.
 */
struct layout {
	struct layout_segment *segments; /* by address */
	size_t n_segments;
	size_t segments_room;
	struct layout_range *ranges; /* by address */
	size_t n_ranges;
	size_t ranges_room;
};

/* The layout of allocator as the model has it now. Pieces that lie outside of its segments are left
 * out, of overlapping ones all but the first. */
void layout_make(
	struct layout *layout, const struct model *model, const struct model_allocator *allocator);
void layout_release(struct layout *layout);

const char *layout_state_name(enum layout_state state);

#endif
