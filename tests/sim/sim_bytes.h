/* sim_bytes.h: from addresses to real bytes, for copies and sets (in sim_copy.c), and copies of
 * boxes of them (in sim_box.c). */
#ifndef SIM_BYTES_H
#define SIM_BYTES_H

#include "sim.h"

/* Are all n bytes at the address in one allocation, or in mappings that the accessing device may
 * use. *dev: the device they are on, NULL for host memory. CUDA_ERROR_INVALID_VALUE if not. */
CUresult sim_range_check(
	u64 address, u64 n, const struct sim_device *accessor, bool write, struct sim_device **dev);

/* The real bytes at a checked address; lowers *n_contiguous to how many of them are in a row. */
char *sim_bytes_at(u64 address, u64 *n_contiguous, bool write);

struct sim_end {
	u64 address;
	struct sim_device *dev; /* NULL: host memory */
};

/* What lies at an end of a copy of n bytes: known memory, or pageable host memory where the call
 * allows it. Sets end->dev. */
CUresult sim_end_check(struct sim_end *end, u64 n, CUcontext ctx, bool write, bool may_be_host);

/* The host memory of a copy between these addresses. */
enum cusim_host sim_host_of(u64 dst, u64 src);

/* Moves n bytes between checked addresses. */
void sim_move(u64 dst, u64 src, u64 n);

/* One side of a copy of a box: bytes at an address, rows and layers apart, or part of an array. */
struct sim_side {
	CUmemorytype type;
	u64 address;
	CUarray array;
	u64 x, y, z;	   /* where the box begins, x in bytes */
	u64 pitch, height; /* of an address: bytes from row to row, rows from layer to layer; 0:
			      close */
};

struct sim_box {
	struct sim_side dst, src;
	u64 width, height, depth; /* width in bytes */
	bool peer;		  /* the call names two devices */
};

struct sim_plan { /* a checked box */
	struct {
		struct sim_end end; /* at its first byte */
		u64 pitch, layer;   /* bytes */
	} dst, src;
	u64 width, height, depth;
	enum cusim_direction direction;
	enum cusim_host host;
	struct sim_device *dev; /* to charge */
};

/* Checks a box, and says how it will be copied. */
CUresult sim_box_check(CUcontext ctx, const struct sim_box *box, struct sim_plan *plan);
/* Copies and counts it. The bytes copied. */
u64 sim_box_copy(const struct sim_plan *plan);

#endif
