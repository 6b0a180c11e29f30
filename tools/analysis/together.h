/* Several traces as one: the tree of processes, totals of each GPU, ranks of each launch. */
#ifndef VRAMTRACE_ANALYSIS_TOGETHER_H
#define VRAMTRACE_ANALYSIS_TOGETHER_H

#include "analysis/gpus.h"
#include "analysis/overview.h"
#include "analysis/processes.h"
#include "analysis/ranks.h"

/* One of the traces. */
struct together_trace {
	const struct overview *overview; /* with leaks and findings; settled */
	struct replay *replay;
	struct owner_source owners;
};

/* Release with together_release. */
struct together {
	struct process_list processes; /* in the order of the traces */
	struct gpu_list gpus;
	struct job_list jobs;
	bool merged; /* more than one trace: peaks of processes, GPUs and ranks are known */
};

/* Looks at all of them together; of several, by one more pass over each. The traces must outlive
 * it. Returns 0 or VT_E_NO_MEMORY. */
int together_make(struct together *together, const struct together_trace *traces, size_t n);

void together_release(struct together *together);

#endif
