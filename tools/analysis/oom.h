/*
 * The post-mortem of each out-of-memory episode: what the device's memory was at that moment, why
 * the request could not be served, and what would have been enough.
 */
#ifndef VRAMTRACE_ANALYSIS_OOM_H
#define VRAMTRACE_ANALYSIS_OOM_H

#include "analysis/episodes.h"
#include "analysis/fragmentation.h"
#include "analysis/sites.h"

/* Decided in this order. */
enum oom_class {
	OOM_IMPOSSIBLE,	     /* more than the device has */
	OOM_ADDRESS_SPACE,   /* not memory: addresses to map it at */
	OOM_LIMIT,	     /* a cap; the driver had room */
	OOM_OTHER_PROCESS,   /* other processes hold what is missing */
	OOM_OTHER_ALLOCATOR, /* another allocator of this process holds it, idle */
	OOM_PENDING,	     /* it was freed, but waits for a stream */
	OOM_FRAGMENTATION,   /* idle bytes are enough, but in pieces that are not */
	OOM_EXHAUSTED,	     /* what is live leaves too little room */
	OOM_UNEXPLAINED,
};

/* What would have been enough, by itself. */
enum oom_action {
	OOM_RELEASE_CACHE, /* of a framework's allocator */
	OOM_RETRY,	   /* what fits came free while the call was refused */
	OOM_TRIM_POOL,
	OOM_TRIM_GRAPHS,
	OOM_WAIT_FOR_STREAMS,
	OOM_MOVE_PINNING, /* live blocks that pin pages or segments */
	OOM_END_OTHERS,	  /* other processes */
	OOM_RAISE_LIMIT,
	OOM_FREE_SITE,	       /* what one call site holds */
	OOM_RELEASE_ADDRESSES, /* reserved and not mapped */
};

struct oom_remedy {
	enum oom_action action;
	uint64_t bytes;	   /* what it gives */
	uint64_t stack_id; /* OOM_FREE_SITE; of OOM_MOVE_PINNING the first of those that pin; else 0
			    */
	uint64_t pool;	   /* OOM_TRIM_POOL, and OOM_WAIT_FOR_STREAMS of a pool: its handle */
};

struct oom {
	struct episode episode;
	size_t number; /* 1, 2, ... in the order of time */
	enum oom_class class;
	uint64_t need_bytes; /* what the request takes, in the driver's pages */
	bool is_past;	     /* the state then is no longer in the trace: nothing else is known */
	bool free_known;     /* at that moment */
	bool free_measured;  /* by the driver, at the refusal; else worked out from what it said
				last */
	uint64_t free_bytes;
	uint64_t total_bytes;		       /* of the device, 0 not known */
	bool others_known;		       /* what other processes used is more than a guess */
	uint64_t others_bytes;		       /* 0 where nothing is known */
	struct model_listed listed;	       /* if NVML listed them then */
	struct model_account account;	       /* of the last sample up to then */
	struct model_totals kinds[VT_N_KINDS]; /* of the device */
	struct model_totals host_kinds[VT_N_KINDS];
	uint64_t tracked_bytes;
	uint64_t reserved_address_bytes; /* address space of the process */
	uint64_t mapped_bytes;		 /* of that */
	struct site_list holders;    /* of the device's tracked memory, or of OOM_ADDRESS_SPACE of
					address space; most bytes first */
	struct fragmentation levels; /* of the device */
	bool capped;		     /* by a limit of the allocator or pool; the driver had room */
	uint64_t limit_bytes;	     /* OOM_LIMIT: of a pool, where it was told; else 0 */
	const struct whatif_hint *hint; /* of a framework's refusal; NULL: not known */
	struct oom_remedy *remedies;
	size_t n_remedies, remedy_room;
};

struct oom_list {
	struct oom *items;
	size_t n_items;
	uint64_t n_left_out; /* beyond EPISODES_MAX */
};

/* Makes a list with an entry for each episode, in the order of time, of which oom_judge has to be
 * called; release it with oom_list_release. */
void oom_list_make(struct oom_list *list, const struct episodes *episodes);

/* Looks at model, as it was at the moment of the episode, and decides. */
void oom_judge(struct oom *oom, const struct model *model, const struct requests *requests);

/* Keeps what filter says: episodes of its device, at most limit of them, and so many of each one's
 * holders. number: only the one with this number, 0: all. */
void oom_list_filter(struct oom_list *list, const struct site_filter *filter, size_t number);

/* "fragmentation", as in the JSON. */
const char *oom_class_name(enum oom_class class);

void oom_list_release(struct oom_list *list);

#endif
