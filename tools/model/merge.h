/* Several traces replayed together, event by event in the order of a clock they share. */
#ifndef VRAMTRACE_MODEL_MERGE_H
#define VRAMTRACE_MODEL_MERGE_H

#include "model/replay.h"

struct merge_source {
	struct replay *replay;
	uint64_t start_ns; /* its time 0 on the common clock */
	uint64_t end_ns;   /* on that, too: not behind its last one before this */
};

/* Called after each event of each source, with a model of that source as it is then; and once with
 * record NULL behind its last one, when others have come to .end_ns, too. time_ns is on the common
 * clock. Both are lent for the call. */
typedef void merge_visitor(void *user, size_t source, const struct model *model,
	const struct vt_record *record, uint64_t time_ns);

/* Replays all n sources into models of their own; what replay->model holds stays. Returns 0 or
 * VT_E_NO_MEMORY. */
int replay_merge(const struct merge_source *sources, size_t n, merge_visitor *visitor, void *user);

#endif
