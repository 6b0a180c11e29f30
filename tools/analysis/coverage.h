/* What of the allocators between program and driver a trace cannot show, and why. */
#ifndef VRAMTRACE_ANALYSIS_COVERAGE_H
#define VRAMTRACE_ANALYSIS_COVERAGE_H

#include "model/blocks.h"

#define COVERAGE_MAX_LIMITS 4u

struct torch_coverage {
	bool loaded; /* PyTorch's CUDA libraries were mapped, or it reported */
	bool blocks; /* blocks were reported */
	const char *limits[COVERAGE_MAX_LIMITS]; /* in words; constants */
	size_t n_limits;
};

void torch_coverage_get(struct torch_coverage *coverage, const struct model *model);

/* Version of PyTorch, as its own files have it; .bytes 0: not known. */
struct vt_text torch_version(const struct model *model);

#endif
