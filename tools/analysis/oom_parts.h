/* What the files of the post-mortem share. */
#ifndef VRAMTRACE_ANALYSIS_OOM_PARTS_H
#define VRAMTRACE_ANALYSIS_OOM_PARTS_H

#include "analysis/oom.h"

/* Decides the class and lists what would have sufficed, from what oom holds. device is the
 * episode's. */
void oom_classify(struct oom *oom, const struct model *model, const struct model_device *device);

#endif
