/* PyTorch's memory snapshot, as its viewer reads it: a pickle of protocol 2. */
#ifndef VRAMTRACE_OUTPUT_TORCH_SNAPSHOT_H
#define VRAMTRACE_OUTPUT_TORCH_SNAPSHOT_H

#include "analysis/export_snapshot.h"
#include "output/export.h"

struct torch_snapshot;

/* Begins a document of trace, which is borrowed; torch_snapshot_free ends it. */
struct torch_snapshot *torch_snapshot_new(FILE *out, const struct export_trace *trace);
void torch_snapshot_free(struct torch_snapshot *snapshot);

/* First the events: between the two, those of the next device, beginning with device 0. */
void torch_snapshot_open_device(struct torch_snapshot *snapshot);
void torch_snapshot_put_event(struct torch_snapshot *snapshot, const struct snapshot_event *event);
void torch_snapshot_close_device(struct torch_snapshot *snapshot);

/* Then, once, the segments of the n devices. */
void torch_snapshot_put_segments(
	struct torch_snapshot *snapshot, const struct snapshot_layout *layouts, size_t n);

#endif
