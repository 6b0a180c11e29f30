/* sim_bytes.h: from addresses to real bytes, for copies and sets (in sim_copy.c). */
#ifndef SIM_BYTES_H
#define SIM_BYTES_H

#include "sim.h"

/* Are all n bytes at the address in one allocation, or in mappings that the accessing device may
 * use. *dev: the device they are on, NULL for host memory. CUDA_ERROR_INVALID_VALUE if not. */
CUresult sim_range_check(
	u64 address, u64 n, const struct sim_device *accessor, bool write, struct sim_device **dev);

/* The real bytes at a checked address; lowers *n_contiguous to how many of them are in a row. */
char *sim_bytes_at(u64 address, u64 *n_contiguous, bool write);

#endif
