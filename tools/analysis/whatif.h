/*
 * What PyTorch's allocator would have done with the requests of a recording under other settings.
 * A recording is first replayed under its own settings; only when that gives the recorded segments
 * and block addresses is anything said of others.
 */
#ifndef VRAMTRACE_ANALYSIS_WHATIF_H
#define VRAMTRACE_ANALYSIS_WHATIF_H

#include "analysis/allocator.h"

enum whatif_kind {
	WHATIF_GET,
	WHATIF_PUT,
	WHATIF_PUT_PENDING, /* other streams still use the block */
	WHATIF_READY,	    /* they are done */
	WHATIF_EMPTY_CACHE,
	WHATIF_SCOPE_BEGIN, /* a capture, in which nothing is released */
	WHATIF_SCOPE_END,
	WHATIF_POOL_UNUSED,
	WHATIF_REFUSED, /* a request that the recorded run could not serve */
};

/* One step of the recorded program, in order. */
struct whatif_step {
	enum whatif_kind kind;
	uint32_t block;	       /* GET, PUT, READY: number of the block */
	uint64_t bytes;	       /* GET: as recorded; REFUSED: asked for */
	uint64_t likely_bytes; /* GET: what was asked for, as far as can be told; else as bytes */
	uint64_t spare_bytes; /* GET, by whatif_check: up to so much less may have been asked for */
	uint64_t address;     /* GET: as recorded */
	uint64_t stream, pool;
	uint64_t stack_id;
	uint64_t time_ns;
	bool is_fresh; /* GET: the driver gave memory for it */
};

/* What the driver was asked for in the recorded run, and gave. */
struct whatif_answer {
	enum allocator_request request;
	uint64_t bytes;	  /* a map: of one page or more */
	uint64_t address; /* 0: refused */
};

/* Everything is borrowed but for what whatif_check fills in. */
struct whatif_recording {
	struct whatif_step *steps;
	size_t n_steps;
	size_t n_blocks;		     /* highest block number + 1 */
	const struct whatif_answer *answers; /* in order */
	size_t n_answers;
	struct settings settings;
	torch_release version; /* 0 unknown */
	uint64_t device_bytes; /* 0 unknown */
	uint64_t cap_bytes;    /* reserved bytes that PyTorch was held to, 0 none */
	uint64_t driver_bytes; /* the most that the driver would have given it, 0 unknown */
	uint64_t range_bytes;  /* of addresses of expandable segments; 0: by device_bytes */
	bool sizes_exact;      /* step.bytes is what was asked for, not what it was rounded to */

	_Atomic size_t *n_replays; /* done so far, NULL: nobody asks */

	/* By whatif_check: */
	size_t n_unsure;	   /* blocks that may be larger than their requests */
	uint64_t most_spare_bytes; /* of a block */
	size_t n_pending;
	size_t n_gets;
	struct allocator_stats own; /* of the recorded run */
};

/* How far a replay came, and what it took. */
struct whatif_result {
	struct allocator_stats stats;
	size_t n_steps;	 /* replayed; all, unless refused or passed */
	bool is_refused; /* step n_steps got no memory, though the recorded run did */
	bool has_passed; /* step n_steps got memory, though the recorded run did not */
};

struct whatif_check {
	bool is_equal;
	size_t n_addresses; /* blocks at the recorded address */
	size_t n_gets;
	size_t n_answers; /* of the driver, that were asked for in the recorded order and size */
	struct whatif_result result;
	size_t first_different; /* step; SIZE_MAX: none */
};

/* Which size is asked for in a replay, where the recording cannot tell. */
enum whatif_sizes {
	WHATIF_RECORDED, /* the block's */
	WHATIF_LIKELY,
	WHATIF_LEAST,
	WHATIF_ANY, /* some of the three, or one between, by chance */
};

/* When pending blocks are ready, which would not be the same in another run. */
enum whatif_pending {
	WHATIF_AS_RECORDED,
	WHATIF_AT_ONCE, /* nothing is pending */
	WHATIF_LATE,	/* blocks are pending for twice as long */
};

/* What is not known, as it is taken in one replay. */
struct whatif_guess {
	enum whatif_sizes sizes;
	enum whatif_pending pending;
	unsigned int seed; /* of the sizes */
};

/* Replays the recording under its own settings. Fills in likely_bytes, spare_bytes and what
 * the recording has of the check. */
void whatif_check(struct whatif_recording *recording, struct whatif_check *check);

/* Replays under other options; options.version and device_bytes are the recording's. Counts in
 * *recording->n_replays, if it is not NULL. */
void whatif_replay(const struct whatif_recording *recording,
	const struct allocator_options *options, const struct whatif_guess *guess,
	struct whatif_result *result);

enum whatif_class {
	WHATIF_EXACT,
	WHATIF_ABOUT,	    /* within 1 % */
	WHATIF_RANGE,	    /* between low and high */
	WHATIF_LOWER_BOUND, /* at least this */
	WHATIF_NO_ANSWER,
};

/* So many replays are made for a prediction, more or less. */
#define WHATIF_REPLAYS 60u

/* Why a prediction is no better than its class: bits. */
#define WHATIF_WHY_SIZES     1u	  /* large requests are known to 1 MiB only */
#define WHATIF_WHY_ADDRESSES 2u	  /* equal-size blocks: depends on the driver's addresses */
#define WHATIF_WHY_PENDING   4u	  /* frees were pending on other streams */
#define WHATIF_WHY_VERSION   8u	  /* rules of this version were not tried against real runs */
#define WHATIF_WHY_REFUSED   16u  /* nothing is known after the first refusal */
#define WHATIF_WHY_PASSED    32u  /* nothing is known after a refusal that would not have been */
#define WHATIF_WHY_BACKEND   64u  /* the driver's pool decides */
#define WHATIF_WHY_SOME	     128u /* only some guesses lead to a refusal, or past one */
#define WHATIF_WHY_TIME	     256u /* how long frees were pending decides */
#define WHATIF_WHY_NEEDED    512u /* only what is needed depends on the guesses */

struct whatif_value {
	uint64_t value, low, high;
};

struct whatif_prediction {
	struct settings settings;
	enum whatif_class class;
	unsigned int why; /* WHATIF_WHY_* */
	struct whatif_value peak_reserved, n_device_allocs;
	struct whatif_value needed; /* least reserved bytes that suffice */
	enum whatif_class needed_class;
	bool has_needed;
	uint64_t n_refused; /* requests that the recorded run was refused as well */
	/* With a capacity: */
	bool fits;
	bool fits_unsure; /* within the range of `needed`: other guesses say otherwise */
	uint64_t n_retries;
	size_t refused_step; /* SIZE_MAX: none */
	size_t needed_step;  /* what is refused just below `needed`; SIZE_MAX: none */
};

/* Predicts the run under settings; capacity_bytes 0: no limit but that of the settings. The
 * recording must have been checked and found equal. Several threads may predict at a time. */
void whatif_predict(const struct whatif_recording *recording, const struct settings *settings,
	uint64_t capacity_bytes, struct whatif_prediction *prediction);

/* The same without what is needed and without a capacity: a few replays. */
void whatif_predict_peak(const struct whatif_recording *recording, const struct settings *settings,
	struct whatif_prediction *prediction);

#endif
