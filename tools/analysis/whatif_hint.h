/*
 * For reports: what expandable segments would have changed, found by replaying the recording
 * instead of by a rule of thumb. Said only when the replay equals the recording.
 */
#ifndef VRAMTRACE_ANALYSIS_WHATIF_HINT_H
#define VRAMTRACE_ANALYSIS_WHATIF_HINT_H

#include "analysis/whatif.h"
#include "model/replay.h"

#define WHATIF_HINT_SETTINGS "expandable_segments:True"

struct whatif_hint {
	int device; /* ordinal */
	uint64_t recorded_peak_bytes;
	struct whatif_prediction prediction;
};

/* Makes one or two passes over the trace, and a few replays. False when nothing can be said, or
 * when finding out would take more than about a second. */
bool whatif_hint_make(struct whatif_hint *hint, struct replay *replay, int device);

/* Whether every request up to the recorded refusal, and that one, would have been served. */
bool whatif_hint_serves(const struct whatif_hint *hint);

#endif
