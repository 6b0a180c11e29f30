/*
 * Totals of physical GPUs over several processes. A GPU is known by its UUID: its ordinal differs
 * from process to process. What a process sees of another one's memory is never added. A process
 * holds nothing behind its end, see processes.h, unless it still runs.
 *
 * Untracked memory is measured by each process as the change of what is in use on the GPU, and what
 * others took meanwhile is in it. So at each sample, of any process, what all of them measured is
 * cut to what is in use beyond tracked memory: the largest are cut to one level, which stays when
 * others end. What others use
 * that left no trace is within that, too.
 */
#ifndef VRAMTRACE_ANALYSIS_GPUS_H
#define VRAMTRACE_ANALYSIS_GPUS_H

#include "analysis/processes.h"

/* One process on one GPU. */
struct gpu_share {
	size_t process;
	const struct model_device *device; /* as of its end */
	uint64_t tracked_bytes;		   /* while traces are replayed together, now */
	uint64_t before_bytes, changed_ns; /* before the last change of that, and when it was */
	int64_t measured_bytes;		   /* untracked: contexts, code, ... */
	int64_t excess_bytes;		   /* of that, more than can be, at the last sample */
	uint64_t peak_tracked_bytes;	   /* when the GPU was at its peak */
	int64_t peak_untracked_bytes;	   /* likewise, without the excess */
	int64_t end_untracked_bytes;	   /* when the process ended */
};

struct gpu {
	struct vt_text uuid; /* empty: not known, such a GPU has one share */
	struct gpu_share *shares;
	size_t n_shares, room;
	struct held_sum tracked; /* of all shares */
	bool is_rising;		 /* it is at its peak, and the shares then are not noted yet */
	size_t n_measured;	 /* shares with untracked memory, at most, when it was cut */
	bool is_at_peak;	 /* since it was reached nothing tracked changed */
};

/* All zero is an empty list; release it with gpu_list_release. */
struct gpu_list {
	struct gpu *items;
	size_t n_items, room;
	uint64_t kept_from_ns; /* peaks are known from here on: 0, or where bounded traces begin */
};

/* Adds a share for each device that the process has a context or memory on. */
void gpu_list_add(struct gpu_list *list, size_t process, const struct model *model);

/* What a share holds from time_ns on, untracked as measured. Calls, and those of the next two, must
 * come in the order of time, and gpu_note_peak after the last of them. Returns how much more that
 * is than before. */
int64_t gpu_take(struct gpu *gpu, struct gpu_share *share, uint64_t tracked_bytes,
	int64_t untracked_bytes, uint64_t time_ns);
void gpu_note_peak(struct gpu *gpu);

/* What was in use on the GPU, by all, as the process of a share saw it. */
void gpu_sample(
	struct gpu *gpu, const struct gpu_share *share, uint64_t used_bytes, uint64_t time_ns);

/* The process of the share ends; gpu_take says what that leaves. */
void gpu_share_end(struct gpu_share *share);

/* Of the device, by all causes, measured. */
int64_t gpu_untracked(const struct model_device *device);

void gpu_list_release(struct gpu_list *list);

#endif
