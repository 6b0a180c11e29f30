/*
 * Everything one trace has to say in a report: its facts, views of the model at the moments asked
 * for, what is live in the end, copies and refusals, each sorted worst first.
 */
#ifndef VRAMTRACE_ANALYSIS_OVERVIEW_H
#define VRAMTRACE_ANALYSIS_OVERVIEW_H

#include "analysis/facts.h"
#include "analysis/idle.h"
#include "analysis/leaks.h"
#include "analysis/oom.h"
#include "analysis/owners.h"
#include "analysis/sites.h"
#include "analysis/transfers.h"
#include "analysis/untracked.h"
#include "analysis/watch.h"
#include "model/replay.h"

/* What a device holds beyond the bytes that were asked for and are live. */
struct device_spare {
	uint64_t page_bytes;  /* linear memory and arrays, because they take whole pages */
	uint64_t pool_bytes;  /* reserved by pools */
	uint64_t graph_bytes; /* reserved for graphs */
};

struct device_spare device_spare_get(const struct model_device *device);

/* One device at one moment. */
struct view_device {
	int ordinal;
	uint64_t tracked_bytes;
	struct device_spare spare;
};

/* Who holds what at one moment. */
struct view {
	struct replay_moment moment;
	uint64_t time_ns;
	struct view_device *devices; /* those of the model at that moment; the unknown one last, if
					it holds anything */
	size_t n_devices;
	char at[16];		/* "peak", "end", "time", "oom:1" */
	struct site_list sites; /* live ones; of a peak only the device's own, tracked kinds */
};

struct overview {
	const struct replay *replay;
	struct trace_facts facts;
	struct view *views;
	size_t n_views;
	struct site_list end;		 /* live at the end, then what contexts took with them */
	struct leak_list leaks;		 /* the same, with verdicts where they were asked for */
	struct untracked_list untracked; /* likewise */
	struct idle_list idle;
	struct transfers transfers;
	const struct model_failure **failures; /* most calls first */
	size_t n_failures;
	bool owners_known; /* they were asked for */
	struct owner_list owners;
	bool watched; /* the two below were asked for */
	struct oom_list ooms;
	struct fragmentation fragmentation; /* of the views, and at the end */
	struct whatif_hint *hints;	    /* of devices for which settings may be the remedy */
	size_t n_hints;
};

struct overview_request {
	const struct replay_moment *moments; /* n of them, with a view for each; NULL: the peak of
						each device that has one */
	size_t n;
	const struct owner_source *owners; /* NULL: they are not asked for, which may save most of a
					      pass over the trace */
	const struct watch *watch;	   /* of the first pass; NULL: neither post-mortems nor
					      fragmentation */
	struct history *history;	   /* of the first pass; NULL: no verdicts about leaks */
	const struct leak_suppressor *suppressor; /* NULL: nothing is suppressed */
	const struct owner_source *leak_owners;	  /* NULL: leaks are not grouped by owner */
};

/* Makes the overview of replay, which must outlive it and stay at rest. Returns 0, with *overview
 * to be freed by overview_release, or VT_E_NO_MEMORY. */
int overview_make(
	struct overview *overview, struct replay *replay, const struct overview_request *request);

/* Puts the sites of the views, in their order, in the place of those at the end; no verdicts. */
void overview_end_from_views(struct overview *overview);

void overview_release(struct overview *overview);

#endif
