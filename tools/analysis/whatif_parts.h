/* What the files that make a whatif_recording share. */
#ifndef VRAMTRACE_ANALYSIS_WHATIF_PARTS_H
#define VRAMTRACE_ANALYSIS_WHATIF_PARTS_H

#include "analysis/whatif_recording.h"
#include "model/blocks.h"

/* The allocator whose blocks are to be replayed, as replay->model has it, and what is known of it
 * in built. NULL: built says why not. */
const struct model_allocator *whatif_source(
	struct whatif_built *built, const struct replay *replay, int device);
/* Parts of whatif_snapshot_build. The first reason stays. */
void whatif_snapshot_settings(struct whatif_built *built, const struct pickle_value *snapshot);
void whatif_snapshot_refuse(
	struct whatif_built *built, enum whatif_refusal refusal, const char *reason);
void whatif_snapshot_late(struct whatif_built *built);

/* Counts the streams of the steps. */
void whatif_note_streams(struct whatif_built *built);
void whatif_refuse_outside(struct whatif_built *built);

/* Memory that the driver gave, or a range of addresses, as long as it lives. */
struct whatif_region {
	struct tree_node node; /* key: address */
	uint64_t bytes;
	size_t entry;		/* that it came with */
	size_t n_maps, n_known; /* pages mapped so far; when the last block was seen in it */
	bool is_range;
	bool is_torch; /* a block of PyTorch was seen in it */
	bool stream_known;
	uint64_t stream, pool;
};

/* Something the driver was asked for, by whomever. */
struct whatif_entry {
	struct whatif_answer answer;
	size_t range; /* the entry of the range that a page is in, or was to be; SIZE_MAX: none */
	bool is_torch;
};

#define WHATIF_MAX_OPEN 16u

/* All zero is empty; release it with whatif_driver_release. */
struct whatif_driver {
	int device;
	struct tree regions;
	struct whatif_entry *entries;
	size_t n_entries, room;
	/* Refusals whose meaning the next report of PyTorch tells. */
	struct {
		size_t entry;
		uint32_t tid;
	} open[WHATIF_MAX_OPEN];
	size_t n_open;
	/* A page that is refused has no address: it was to be where its thread mapped last. */
	size_t last_range; /* entry */
	uint32_t last_range_tid;
	size_t n_torch_frees; /* of segments or pages, so far */
	size_t n_segment_frees;
};

/* Takes in the next record. */
void whatif_driver_observe(struct whatif_driver *driver, const struct vt_record *record);

/* The region that holds address, or NULL. */
struct whatif_region *whatif_driver_find(const struct whatif_driver *driver, uint64_t address);

/* PyTorch placed a block in the region. True: in memory that is new since the block before. */
bool whatif_driver_use(struct whatif_driver *driver, struct whatif_region *region);

/* Refusals that came before a report of thread `tid` were PyTorch's, or were not. */
void whatif_driver_settle(struct whatif_driver *driver, uint32_t tid, bool is_torch);

/* What PyTorch was answered, in order; to be freed. */
struct whatif_answer *whatif_driver_answers(const struct whatif_driver *driver, size_t *n);
void whatif_driver_release(struct whatif_driver *driver);

/* Pools of graphs, numbered from 1. All zero is empty; release it with whatif_pools_release. */
struct whatif_pools {
	struct whatif_graph {
		uint64_t object;
		uint64_t pool;
		int64_t stream;
		uint32_t tid;
		bool begun;	/* capture_begin was called, capture_end not yet */
		bool capturing; /* and the driver began: what PyTorch wants before is ordinary */
	} * graphs;
	size_t n_graphs, graphs_room;
	struct whatif_pool {
		uint64_t first, second; /* 0 and 0: not named */
	} * pools;
	size_t n_pools, pools_room;
};

/* Takes in a record graph_pool or capture. Returns how many steps it wrote, at most 2. */
size_t whatif_pools_observe(
	struct whatif_pools *pools, const struct vt_record *record, struct whatif_step steps[2]);

/* The pool of the capture on this stream, 0: none. is_captured: the memory is known to be of a
 * capture, perhaps on a stream that joined it. */
uint64_t whatif_pools_on(const struct whatif_pools *pools, int64_t stream, bool is_captured);
void whatif_pools_release(struct whatif_pools *pools);

#endif
