/*
 * What the driver that answers row by row (rows_driver.h) and the program that calls it
 * (rows_caller.h) share. Both are completed by rows_generate.py, from the vendor's declarations and
 * the rows of driver.def.
 */
#ifndef VRAMTRACE_ROWS_H
#define VRAMTRACE_ROWS_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ROWS_N_VARIANTS 16u
#define ROWS_SLOT_BYTES 2048u /* behind each pointer argument */
#define ROWS_MAX_PARAMS 12u
#define ROWS_MAX_OWN	32u

/* What the driver tells the recorder, which asks for itself. */
#define ROWS_CONTEXT	    ((uintptr_t)0x5c0de0000000)
#define ROWS_CURRENT_POOL   ((uintptr_t)0x5c0de1000000)
#define ROWS_TOTAL_BYTES    ((uint64_t)1 << 40)
#define ROWS_ARRAY_BYTES    ((uint64_t)0x123450000)
#define ROWS_GRAPH	    ((uintptr_t)0x9a9b9c00)
#define ROWS_RESERVED_BYTES ((uint64_t)0x77000000)
#define ROWS_USED_BYTES	    ((uint64_t)0x55000000)
#define ROWS_OWN_ERRNO	    77

/* Which context is current to the caller. */
enum rows_context {
	ROWS_DEVICE_0,
	ROWS_NO_CONTEXT,
	ROWS_NOT_TOLD, /* the driver refuses to say */
};

/* One call of the program: what the driver is to do, and what it saw. */
struct rows_call {
	int row; /* -1: every call is the recorder's own */
	unsigned int variant;
	int result;
	int errno_left;
	enum rows_context context;
	bool capturing;
	uint64_t free_bytes;
	uint64_t taken_bytes;			/* by this call, if it succeeds */
	const unsigned char *memory, *pristine; /* behind the arguments, and what must be there */
	size_t memory_bytes;

	unsigned int n_seen;
	int errno_seen;
	bool memory_kept;
	unsigned char args[512];
	size_t args_bytes;
	const char *own[ROWS_MAX_OWN]; /* calls of the recorder's own */
	unsigned int n_own;
	unsigned int n_own_before; /* of these, before the program's call came through */
};

extern struct rows_call rows_log;

/* The address of the export that a look-up should find, NULL if there is none. */
void *rows_look_up(const char *name, int version, cuuint64_t flags);

/* Tells row, parameter and variant from all others, also when only the low 32 bits are kept. */
static inline uint64_t rows_value(unsigned int row, unsigned int param, unsigned int variant)
{
	return 0x7a5a00000000 | (uint64_t)row << 20 | param << 16 | variant << 8 | (0x11 + param);
}

/* Handles that several rows share: what one makes another takes. */
static inline uint64_t rows_handle(unsigned int family, unsigned int variant, unsigned int nth)
{
	return 0x510000000000 | (uint64_t)family << 32 | (variant & 3) << 12 | nth << 8;
}

static inline void rows_append(unsigned char *to, size_t *bytes, const void *from, size_t n)
{
	memcpy(to + *bytes, from, n);
	*bytes += n;
}

#endif
