/*
 * Totals of physical GPUs over several processes. A GPU is known by its UUID: its ordinal differs
 * from process to process. What a process sees of another one's memory is never added. A process
 * holds nothing behind its end, see processes.h, unless it still runs.
 */
#ifndef VRAMTRACE_ANALYSIS_GPUS_H
#define VRAMTRACE_ANALYSIS_GPUS_H

#include "analysis/processes.h"

/* One process on one GPU. */
struct gpu_share {
	size_t process;
	const struct model_device *device; /* as of its end */
	uint64_t tracked_bytes;		   /* while traces are replayed together, now */
	int64_t untracked_bytes;	   /* measured: contexts, code, ... */
	uint64_t peak_tracked_bytes;	   /* when the GPU was at its peak */
	int64_t peak_untracked_bytes;
};

struct gpu {
	struct vt_text uuid; /* empty: not known, such a GPU has one share */
	struct gpu_share *shares;
	size_t n_shares, room;
	struct held_sum tracked; /* of all shares */
	bool is_rising;		 /* it is at its peak, and the shares then are not noted yet */
};

/* All zero is an empty list; release it with gpu_list_release. */
struct gpu_list {
	struct gpu *items;
	size_t n_items, room;
	uint64_t kept_from_ns; /* peaks are known from here on: 0, or where bounded traces begin */
};

/* Adds a share for each device that the process has a context or memory on. */
void gpu_list_add(struct gpu_list *list, size_t process, const struct model *model);

/* What a share holds from time_ns on. Calls must come in the order of time, and gpu_note_peak after
 * the last of them. Returns how much more that is than before. */
int64_t gpu_take(struct gpu *gpu, struct gpu_share *share, uint64_t tracked_bytes,
	int64_t untracked_bytes, uint64_t time_ns);
void gpu_note_peak(struct gpu *gpu);

/* Of the device, by all causes, measured. */
int64_t gpu_untracked(const struct model_device *device);

void gpu_list_release(struct gpu_list *list);

#endif
