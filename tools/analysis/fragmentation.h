/*
 * Where memory is held and not in use, level by level, at one moment: pages of the driver that
 * small allocations share, pools of stream-ordered memory, and the segments of a framework's
 * allocator. Address gaps between large allocations are none of it: the driver puts a new one
 * together from any free pages.
 *
 * At every level  reserved = live + rounding + pending + idle.
 */
#ifndef VRAMTRACE_ANALYSIS_FRAGMENTATION_H
#define VRAMTRACE_ANALYSIS_FRAGMENTATION_H

#include "analysis/requests.h"
#include "analysis/sites.h"
#include "analysis/whatif_hint.h"
#include "model/model.h"

enum fragmentation_level {
	FRAGMENTATION_DRIVER, /* linear memory, in pages */
	FRAGMENTATION_POOL,   /* one pool, or the device's memory for graphs */
	FRAGMENTATION_FRAMEWORK,
};

/* What is the matter, if anything. */
enum fragmentation_verdict {
	FRAGMENTATION_NONE,
	FRAGMENTATION_PINNED,	/* pages or segments that a few live blocks keep from being given
				   back */
	FRAGMENTATION_DRIFT,	/* the same, because sizes grow a little each time */
	FRAGMENTATION_CACHED,	/* idle, and could be given back whole */
	FRAGMENTATION_PENDING,	/* freed, but waiting for streams */
	FRAGMENTATION_ROUNDING, /* requests take much more than they ask for */
};

/* What would help; only what the numbers support. */
enum fragmentation_advice {
	ADVICE_NONE,
	ADVICE_SHARE,	    /* take the small allocations out of one large one */
	ADVICE_WHOLE_PAGES, /* ask for whole pages, or put requests together */
	ADVICE_THRESHOLD,   /* of the pool: a lower one, or a trim */
	ADVICE_TRIM_GRAPHS,
	ADVICE_SYNCHRONISE, /* the streams that hold freed memory */
	ADVICE_EMPTY_CACHE, /* of the framework */
	ADVICE_EXPANDABLE,  /* segments that grow: expandable_segments:True */
};

struct fragmentation_hole {
	uint64_t bytes; /* of each */
	uint64_t count;
};

/* Live blocks of one site that keep idle memory from being given back. */
struct fragmentation_pinner {
	uint64_t stack_id;
	uint64_t address;  /* of the smallest of them */
	uint64_t bytes;	   /* of that one */
	uint64_t first_ns; /* when the oldest of them came */
	uint64_t count;
	uint64_t live_bytes;
	uint64_t pins_bytes;   /* idle beside none but them: free if they went */
	uint64_t shared_bytes; /* idle beside them and blocks of other sites */
};

#define FRAGMENTATION_N_HOLDERS 3u

struct fragmentation_holder {
	uint64_t stack_id;
	uint64_t address;
	uint64_t bytes;
	uint64_t time_ns; /* when it came */
};

/* A framework's segment with both live and idle bytes. */
struct fragmentation_segment {
	uint64_t address;
	uint64_t bytes;
	uint64_t live_bytes;
	uint64_t n_live;
	uint64_t idle_bytes;
	uint64_t largest_hole_bytes;
	struct fragmentation_holder holders[FRAGMENTATION_N_HOLDERS]; /* the smallest live blocks */
	size_t n_holders;
};

struct fragmentation_row {
	char at[16]; /* "peak", "end", "oom:1", ... */
	uint64_t time_ns;
	int device;
	uint64_t refused_bytes; /* asked for at this moment and refused; 0: nothing was */
	enum fragmentation_level level;
	uint64_t allocator_id; /* FRAGMENTATION_FRAMEWORK */
	uint32_t layer;	       /* enum vt_layer */
	struct vt_text name;   /* of the allocator; in the trace */
	uint64_t pool;	       /* handle; 0: the default one, which was never named */
	bool graphs;	       /* FRAGMENTATION_POOL: the memory for graphs */
	uint64_t page_bytes;

	uint64_t reserved_bytes;
	uint64_t live_bytes;
	uint64_t n_live;
	bool rounding_known;
	uint64_t rounding_bytes;
	uint64_t pending_bytes;
	uint64_t idle_bytes;
	uint64_t returnable_bytes; /* of idle: could be given back */
	uint64_t pinned_bytes;	   /* of idle: cannot, beside something live */
	uint64_t captured_bytes;   /* of pinned: in segments of graphs, which keep them */

	uint64_t n_containers;	/* pages that are shared, or segments */
	uint64_t n_pinned;	/* of them, with idle bytes that cannot be given back */
	uint64_t pinning_bytes; /* live in those */
	bool holes_known;
	uint64_t n_holes;
	uint64_t largest_hole_bytes;
	uint64_t largest_free_bytes;	  /* hole, or idle segment */
	struct fragmentation_hole *holes; /* most bytes in all first */
	size_t n_hole_sizes, hole_room;
	struct request_span requests; /* against the largest hole */
	uint64_t n_drifting;	      /* sites whose sizes drift */

	bool threshold_known; /* of a pool */
	uint64_t threshold_bytes;
	uint64_t most_bytes;	       /* that a pool may reserve, 0: no limit known */
	struct model_pending *pending; /* of a pool, by stream, most first; upper bounds */
	size_t n_pending;

	struct fragmentation_pinner *pinners; /* those that hold back most first */
	size_t n_pinners, pinner_room;
	size_t n_pinners_left_out;		/* by a filter */
	struct fragmentation_segment *segments; /* most held back for a live byte first */
	size_t n_segments, segment_room;
	size_t n_segments_left_out;

	enum fragmentation_verdict verdict;
	enum fragmentation_advice advice;
	uint64_t advice_bytes;		/* what it would give */
	const struct whatif_hint *hint; /* ADVICE_EXPANDABLE: what it would have given; NULL: that
					   is not known */
	uint64_t split_bytes; /* ADVICE_EXPANDABLE: 0, or the smallest of those large segments that
				 were cut up for small blocks, which max_split_size_mb prevents */
};

/* All zero is an empty list; release it with fragmentation_release. */
struct fragmentation {
	struct fragmentation_row *rows;
	size_t n_rows, room;
};

/* Appends a row for each level of one device (ordinal, or MODEL_DEVICE_UNKNOWN) that holds
 * something, as model is now. at is kept, cut to 15 characters. requests of the whole trace; NULL:
 * holes are not compared with them. refused_bytes was asked for at this moment and refused; 0:
 * nothing was. */
void fragmentation_add(struct fragmentation *list, const struct model *model, int device,
	const char *at, uint64_t time_ns, uint64_t refused_bytes, const struct requests *requests);

/* Keeps the rows of the filter's device, and of each those pinners and segments that hold back at
 * least min_bytes, at most limit of them. */
void fragmentation_filter(struct fragmentation *list, const struct site_filter *filter);

/* "pinned", "size_drift", "cached", "pending", "rounding"; NULL where nothing is the matter. */
const char *fragmentation_verdict_name(enum fragmentation_verdict verdict);

void fragmentation_release(struct fragmentation *list);

#endif
