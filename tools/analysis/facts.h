/*
 * Analyses of a replayed trace. Each turns a model into a plain result struct; none prints. This
 * one: what ran, when, how it ended, and how much of it the trace holds.
 */
#ifndef VRAMTRACE_ANALYSIS_FACTS_H
#define VRAMTRACE_ANALYSIS_FACTS_H

#include "model/replay.h"

enum trace_end {
	TRACE_END_EXIT,
	TRACE_END_SIGNAL,
	TRACE_END_KILLED, /* nothing says how: SIGKILL, _exit, a crash without a launcher */
	TRACE_END_EXEC,
	TRACE_END_RUNNING,
};

struct trace_facts {
	const char *file;
	uint64_t pid;
	uint64_t ppid;
	struct vt_text exe;
	struct vt_text cmdline; /* arguments, each ended by a zero byte */
	struct vt_text host;
	struct vt_text boot_id;
	uint64_t start_ticks; /* of the process, in ticks since the boot; 0 not known */
	int64_t rank, local_rank, world_size; /* -1: none was set */
	uint64_t start_realtime_ns;
	uint64_t start_monotonic_ns; /* the clock that all processes of one boot share */
	uint64_t duration_ns;	     /* up to the last thing recorded */
	enum trace_end end;
	bool end_told; /* its last record is the end of the process, not just what came last */
	int status;    /* of an exit, number of a signal; -1 unknown */
	uint64_t n_events;
	uint64_t n_lost;
	int stopped; /* VT_E_*: why recording stopped early; 0: it did not */
	struct vt_damage damage;
	bool pack_damaged; /* not all of the packed file could be unpacked */
	bool damaged;
	bool complete; /* nothing lost, damaged or stopped, and the process has ended */
};

/* The facts of replay, which must outlive them. */
void trace_facts_get(struct trace_facts *facts, const struct replay *replay);

/* Of traces that are looked at together: one that ends unseen while the same process wrote a later
 * one ended with exec. */
void trace_facts_settle(struct trace_facts *const *facts, size_t n);

/* "exit", "signal", "killed", "exec", "running". */
const char *trace_end_name(enum trace_end end);

#endif
