/* What is gathered during the first pass over a trace, for the analyses that need the whole of it.
 */
#ifndef VRAMTRACE_ANALYSIS_WATCH_H
#define VRAMTRACE_ANALYSIS_WATCH_H

#include "analysis/episodes.h"
#include "analysis/history.h"
#include "analysis/requests.h"

/* All zero is empty; release it with watch_release. */
struct watch {
	struct requests requests;
	struct episodes episodes;
	struct history history;
};

/* Takes in the next record; model is as it is after that record. */
static inline void watch_observe(
	struct watch *watch, const struct model *model, const struct vt_record *record)
{
	requests_observe(&watch->requests, model, record);
	episodes_observe(&watch->episodes, model, record);
	history_observe(&watch->history, model, record);
}

/* After the last record, and before an analysis uses it. */
static inline void watch_finish(struct watch *watch)
{
	requests_finish(&watch->requests);
}

static inline void watch_release(struct watch *watch)
{
	requests_release(&watch->requests);
	episodes_release(&watch->episodes);
	history_release(&watch->history);
}

#endif
