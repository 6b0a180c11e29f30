/*
 * What became of each call site over the time of a trace, gathered in one pass: the curve of what
 * it held, what came and went and how long it lived, bursts; the curves of what allocators kept and
 * of what nobody allocated; threads that ended and calls that failed. Its size follows the number
 * of sites, not the length of the trace.
 */
#ifndef VRAMTRACE_ANALYSIS_HISTORY_H
#define VRAMTRACE_ANALYSIS_HISTORY_H

#include "analysis/curve.h"
#include "model/model.h"

/* Failures and ended threads beyond this many: only the last ones are kept. */
#define HISTORY_MAX_FAILURES 1024u

/* What each event of a site changes comes first. */
struct history_site {
	struct curve by_time;
	uint64_t n_births, n_deaths; /* not with a context */
	uint64_t lifetime_sum_ns;    /* of those that ended */
	uint64_t longest_lifetime_ns;
	/* Deaths between two births are a run; one of many in a short time is a burst, if what died
	 * had come one after the other while other memory came and went. */
	uint64_t run_deaths, run_first_ns, run_last_ns;
	uint64_t run_before_ns;			  /* end of the run before; 0: there was none */
	uint64_t births_first_ns, births_last_ns; /* of those since the last run */
	uint64_t n_apart;			  /* of those: not right behind the one before */
	uint64_t n_ends_before;			  /* of the process, at the last birth */
	uint64_t ended_ns; /* when a context took the rest along; 0: it did not, or more came since
			    */
	uint64_t ended_address; /* of one that it took along */
	struct curve by_mark;
	uint64_t n_bursts, burst_deaths;
};

/* What an allocator keeps of one holding, beside blocks. */
struct history_idle {
	uint64_t allocator_id;
	int device;
	uint32_t kind;
	struct curve by_time;
};

/* Memory of a device that nobody allocated. */
struct history_device {
	int device;
	struct curve rest;		  /* all that no ledger has: measured, and unexplained */
	struct curve causes[VT_N_CAUSES]; /* of that, measured */
};

struct history_object_key {
	uint64_t stack_id;
	int32_t device;
	uint32_t cause; /* enum vt_cause */
};

/* Objects that take such memory, by where they were made. */
struct history_object {
	struct history_object_key key;
	uint64_t n_made;     /* executable graphs: made; others: calls that took memory */
	int64_t taken_bytes; /* as measured */
	UT_hash_handle hh;
};

/* Objects of one sort of the whole process. */
struct history_count {
	uint64_t n_created, n_destroyed;
	struct curve by_time; /* of those that are there: their number, as bytes */
};

/* An attempt ended in an error. */
struct history_failure {
	uint64_t time_ns;
	uint32_t tid;
};

/* A capture that ended in an error. */
struct history_capture {
	uint64_t begin_ns, end_ns;
};

#define HISTORY_MAX_CAPTURES 64u

struct history_thread {
	uint32_t tid;
	UT_hash_handle hh;
};

/* All zero is empty; release it with history_release. */
struct history {
	struct curve_axis time, marks;
	uint64_t n_marks;
	uint64_t first_mark_ns, last_mark_ns;
	const struct model_phase *step; /* the marks that count, or phases; of the pass's model */
	bool step_is_mark;
	struct history_site *sites; /* by the model's index */
	size_t n_sites, sites_room;
	struct history_idle *idle;
	size_t n_idle, idle_room;
	struct history_device *devices;
	size_t n_devices, devices_room;
	struct history_object *objects;
	uint64_t n_execs_made, n_execs_destroyed;
	uint64_t n_modules_loaded, n_modules_unloaded; /* by calls that changed free memory */
	struct history_count counts[VT_N_OBJECTS];
	struct history_failure failures[HISTORY_MAX_FAILURES]; /* a ring, by time */
	uint64_t n_failures;
	struct history_capture captures[HISTORY_MAX_CAPTURES]; /* a ring, of those that failed */
	uint64_t n_captures;
	uint64_t capture_begin_ns;    /* of the last one that began */
	struct history_thread *ended; /* threads */
	uint32_t *lane_tids;	      /* whose lane it is, 0: nobody's yet */
	size_t n_lanes;
	uint64_t last_event_ns;
	uint64_t n_ends; /* of allocations */
	bool is_running; /* the process, still; set by the caller */
};

/* Takes in the next record of a pass; model is as it is after that record. */
void history_observe(
	struct history *history, const struct model *model, const struct vt_record *record);

/* The site's history, or NULL. Borrowed. */
struct history_site *history_site(const struct history *history, const struct model_site *site);
struct history_idle *history_idle(
	const struct history *history, uint64_t allocator_id, int device, uint32_t kind);

/* Whether time_ns was in a capture that then failed. */
bool history_capture_failed(const struct history *history, uint64_t time_ns);

bool history_thread_ended(const struct history *history, uint32_t tid);

/* When the first failure of the thread at or after time_ns was; UINT64_MAX: there was none, or it
 * is not kept. */
uint64_t history_next_failure(const struct history *history, uint32_t tid, uint64_t time_ns);

void history_release(struct history *history);

#endif
