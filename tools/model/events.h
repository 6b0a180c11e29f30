/*
 * What changes on a model's books, told one by one: for exports that follow every allocation to its
 * end, whatever ended it. Between the records of a trace a model can be looked at; these are told
 * while a record is applied.
 */
#ifndef VRAMTRACE_MODEL_EVENTS_H
#define VRAMTRACE_MODEL_EVENTS_H

#include "model/blocks.h"

enum model_event_kind {
	MODEL_BLOCK_BEGIN, /* memory of the driver was booked */
	MODEL_BLOCK_END,
	MODEL_MAPPING_BEGIN,
	MODEL_MAPPING_END,
	MODEL_SEGMENT_BEGIN, /* memory of the driver turns out to be an allocator's */
	MODEL_SEGMENT_END,   /* its pieces have ended before */
	MODEL_PIECE_BEGIN,
	MODEL_PIECE_PENDING, /* it was given back, and waits */
	MODEL_PIECE_END,
};

/* What has begun is on the books, what ends is so still. Those members are set that the kind is
 * about, borrowed for the call. */
struct model_event {
	enum model_event_kind kind;
	bool teardown;	  /* MODEL_BLOCK_END: with its context */
	bool was_pending; /* MODEL_PIECE_END */
	const struct model_block *block;
	const struct model_mapping *mapping;
	const struct model_segment *segment;
	const struct model_allocator *allocator; /* of a segment or piece */
	const struct model_piece *piece;
};

/* Tells the listener, if there is one. */
static inline void model_tell(const struct model *model, const struct model_event *change)
{
	if (model->listener)
		model->listener(model->listener_user, model, model->record, change);
}

#endif
