/*
 * Ranks of one launch, side by side, and which of them is not like the others.
 *
 * Processes are of one launch when they agree on the world size, the rendezvous port, the restart
 * and Slurm's job, and their traces overlap in time. A rank is its first process and those that
 * have its rank from it.
 *
 * Of three ranks or more, one stands out in a number of bytes when it is away from the median by
 * more than RANK_MADS times the median absolute deviation (times 1.4826, as of a normal
 * distribution), and by more than RANK_PERCENT of the median and RANK_MIN_BYTES. Of two, when they
 * are apart by more than the last two, with the smaller one as the median. In a count, when it has
 * any and it is the only one, or at most a third of the ranks have.
 */
#ifndef VRAMTRACE_ANALYSIS_RANKS_H
#define VRAMTRACE_ANALYSIS_RANKS_H

#include "analysis/overview.h"
#include "analysis/processes.h"

#define RANK_MADS      3.5
#define RANK_PERCENT   5u
#define RANK_MIN_BYTES ((uint64_t)32 << 20)

/* What ranks are compared by. */
enum rank_metric {
	RANK_OOMS,
	RANK_PEAK,
	RANK_LIVE,
	RANK_RESERVED,
	RANK_LEAK_BYTES,
	RANK_N_METRICS,
};

struct rank {
	int64_t rank, local_rank; /* local: -1 not known */
	size_t first_process;
	size_t n_processes;
	struct held_sum tracked; /* of all its processes, on all GPUs */
	uint64_t live_bytes;	 /* in use on GPUs at the end, without what allocators keep */
	bool reserved_known;	 /* PyTorch's allocator reported */
	uint64_t reserved_bytes; /* by it, the most, and at the end */
	uint64_t reserved_at_end_bytes;
	const char *owner; /* who held most at the peaks of its GPUs; NULL: not known */
	uint64_t owner_bytes;
	uint64_t n_ooms;  /* refusals that no retry overcame */
	uint64_t n_leaks; /* call sites that grow; what else is live may be meant to be */
	uint64_t leak_bytes;
};

struct rank_outlier {
	size_t rank; /* place in the list */
	enum rank_metric metric;
	uint64_t value, median;
	double score; /* how many times the limit it is away */
};

struct job {
	size_t first_process;
	int64_t world_size; /* -1 not known */
	struct rank *ranks; /* in order */
	size_t n_ranks, room;
	struct rank_outlier *outliers; /* by metric, then furthest first */
	size_t n_outliers, outliers_room;
	uint64_t start_ns, last_ns; /* of its traces, on the common clock */
};

/* All zero is an empty list; release it with job_list_release. */
struct job_list {
	struct job *items;
	size_t n_items, room;
	struct rank **of_process; /* NULL: has no rank */
	size_t n_processes;
};

/* The launches that the processes are of, with nothing in their ranks yet but who they are.
 * models: of the processes. */
void job_list_make(struct job_list *list, const struct process_list *processes,
	const struct model *const *models);

/* Adds what a process of the rank did, but for .tracked. owners: as its stacks are told. */
void rank_add(
	struct rank *rank, const struct overview *overview, const struct owner_source *owners);

/* Finds the outliers of each job; the ranks are complete. */
void job_list_judge(struct job_list *list);

/* A rank that the world size promises, and that left no trace: the first one from `from` on; -1:
 * there is none. */
int64_t job_next_missing(const struct job *job, int64_t from);

uint64_t rank_value(const struct rank *rank, enum rank_metric metric);

/* "peak", "live", "reserved", "leak_bytes", "ooms". */
const char *rank_metric_name(enum rank_metric metric);

void job_list_release(struct job_list *list);

#endif
