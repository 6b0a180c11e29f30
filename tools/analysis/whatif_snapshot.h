/*
 * The recording that whatif.h replays, from a memory snapshot of PyTorch's own with its history
 * (torch.cuda.memory._record_memory_history, then _dump_snapshot). It has the sizes that were asked
 * for, and lacks PyTorch's version, the size of the GPU, and what the driver refused.
 */
#ifndef VRAMTRACE_ANALYSIS_WHATIF_SNAPSHOT_H
#define VRAMTRACE_ANALYSIS_WHATIF_SNAPSHOT_H

#include "analysis/pickle.h"
#include "analysis/whatif_recording.h"

/* As whatif_build. The pickle must outlive built. */
void whatif_snapshot_build(
	struct whatif_built *built, const struct pickle_value *snapshot, int device);

/* "model.py:41 forward", where a step came from; "" when the history does not tell. */
void whatif_snapshot_where(
	const struct whatif_built *built, const struct whatif_step *step, char *text, size_t room);

#endif
