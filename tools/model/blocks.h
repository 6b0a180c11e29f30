/*
 * Allocators between the program and the driver, as they report themselves: PyTorch's, and those
 * that programs tell of. A segment is memory of the driver in which such an allocator was seen to
 * place something; a piece is a block that it handed out (the trace's `block`: the model's blocks
 * are the driver's). Their bytes lie over the driver's and are never added to them.
 */
#ifndef VRAMTRACE_MODEL_BLOCKS_H
#define VRAMTRACE_MODEL_BLOCKS_H

#include "model/model.h"

/* What an allocator has of one kind of memory of one device. */
struct model_holding {
	struct model_device *device;
	uint32_t kind; /* enum vt_kind */
	uint64_t segment_bytes;
	uint64_t n_segments;
	uint64_t live_bytes; /* of pieces in them */
};

/* Memory of the driver that an allocator fills: one allocation, or one mapping of physical memory
 * into a range that grows ("expandable segments"). */
struct model_segment {
	struct tree_node node; /* key: address; in allocator->segments */
	uint64_t bytes;
	struct model_allocator *allocator;
	struct model_site *site; /* who took it from the driver, NULL unknown */
	size_t holding;		 /* index */
	bool mapped;		 /* a mapping; used_bytes and split are not kept for it */
	uint64_t number;	 /* of the block or mapping */
	uint64_t used_bytes;	 /* of pieces that are live or pending */
	bool stream_known;
	int64_t stream;	  /* the framework's number */
	bool captured;	  /* obtained inside a capture */
	uint64_t time_ns; /* of the first piece in it */
};

struct model_piece {
	struct tree_node node; /* key: address; in allocator->live or allocator->pending */
	uint64_t bytes;
	uint64_t time_ns;
	uint32_t tid;			/* who got it */
	struct model_segment *segment;	/* in which it begins; NULL: not known, or another
					   allocator's */
	struct model_site *site;	/* NULL without a segment */
	size_t n_waits;			/* events that a pending one waits for */
	struct model_piece *next_spare; /* in model->spare_pieces */
};

/* The sums that came with the reports, against those of the replay. */
struct model_check {
	bool known;		  /* there were any */
	uint64_t allocated_bytes; /* as told with the last report */
	uint64_t reserved_bytes;
	bool restated; /* the next report comes with these: */
	uint64_t restated_allocated_bytes;
	uint64_t restated_reserved_bytes;
	uint64_t n_reports; /* that were compared */
	uint64_t n_allocated_differ;
	uint64_t n_reserved_differ;
	uint64_t first_ns; /* when they first differed */
};

struct model_peak {
	uint64_t bytes;
	uint64_t time_ns;
};

struct model_allocator {
	uint64_t allocator_id;
	uint32_t layer; /* enum vt_layer, 0 unknown */
	int device;	/* ordinal, MODEL_DEVICE_UNKNOWN: that of the memory */
	struct vt_text name, version, path;

	struct tree segments;			      /* struct model_segment, by address */
	struct tree live;			      /* struct model_piece, by address */
	struct tree pending;			      /* given back, and waiting for events */
	struct model_piece *near_pieces[HASH_N_NEAR]; /* of live, by the hash of their address */
	struct model_segment *near_segments[HASH_N_NEAR]; /* that hold a page of 2 MiB, by the hash
							     of its number */
	const struct model_piece *newest; /* valid right after the block_alloc that handed it out */
	struct model_holding *holdings;
	size_t n_holdings;
	size_t holdings_room;

	uint64_t live_bytes;
	uint64_t pending_bytes;
	uint64_t reserved_bytes; /* of segments */
	uint64_t split_bytes;	 /* free in segments that are in use and not mappings: what PyTorch
				    calls inactive split */
	uint64_t outside_bytes;	 /* live, but in no segment of its own */
	struct model_peak peak_live, peak_active, peak_reserved, peak_split;

	uint64_t n_allocs;
	uint64_t alloc_bytes;
	uint64_t n_frees;
	uint64_t n_failures; /* requests it refused */
	uint64_t n_unknown_frees;
	uint64_t n_missed_frees; /* a piece was handed out where another one was live */
	uint64_t n_lost_pieces;	 /* ended with their segment */
	uint64_t first_ns;
	uint64_t last_ns;
	struct model_check check;
	UT_hash_handle hh;
};

/* The allocator with this id; NULL when none was seen. Borrowed. */
const struct model_allocator *model_allocator_find(
	const struct model *model, uint64_t allocator_id);

/* The tree's first, and the next one; NULL behind the last. */
const struct model_segment *model_segment_first(const struct model_allocator *allocator);
const struct model_segment *model_segment_next(
	const struct model_allocator *allocator, const struct model_segment *segment);
const struct model_piece *model_piece_first(const struct tree *pieces);
const struct model_piece *model_piece_next(
	const struct tree *pieces, const struct model_piece *piece);

/* The first piece of a tree that begins at address or behind it, or NULL. */
const struct model_piece *model_piece_from(const struct tree *pieces, uint64_t address);

#endif
