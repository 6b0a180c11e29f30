/* Between transfers.c and transfer_findings.c. */
#ifndef VRAMTRACE_ANALYSIS_TRANSFER_RULES_H
#define VRAMTRACE_ANALYSIS_TRANSFER_RULES_H

#include "analysis/transfers.h"

/* The time that `bytes` take at the direction's rate of pinned memory, nanoseconds. */
uint64_t transfer_pinned_ns(const struct transfers *transfers, uint32_t direction, uint64_t bytes);

/* Of the host time of calls that waited until their copies were through: what the copying took. */
uint64_t transfer_copying_ns(const struct transfers *transfers, const struct model_copy *copy);

/* What moving so many bytes took, of this site's copies of this size. */
uint64_t transfer_moving_ns(
	const struct transfers *transfers, const struct model_copy *copy, uint64_t bytes);

/* part of whole in proportion: ns * bytes / of_bytes, capped. */
uint64_t transfer_share_ns(uint64_t ns, uint64_t bytes, uint64_t of_bytes);

/* Appends what is found; rows, pinnings, totals and rates are there. */
void transfer_find(struct transfers *transfers, const struct owner_source *owners);

#endif
