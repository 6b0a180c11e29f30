/*
 * How to step out of one frame, in 32 bits. One row per address of code: a return address less one,
 * or the interrupted instruction. The return address is always the word below the CFA.
 */
#ifndef VRAMTRACE_RECORD_UNWIND_ROW_H
#define VRAMTRACE_RECORD_UNWIND_ROW_H

#include <stdint.h>

enum row_kind {
	ROW_BAD,       /* cannot be said here: libunwind decides */
	ROW_NONE,      /* no unwind information */
	ROW_LAST,      /* outermost frame */
	ROW_RSP,       /* CFA = rsp + cfa */
	ROW_RBP,       /* CFA = rbp + cfa */
	ROW_REALIGNED, /* CFA = the word at rbp + cfa; the caller's rbp is the word at rbp */
	ROW_GUESSED,   /* no unwind information, and libunwind has an opinion of its own */
	ROW_SIGNAL,    /* the kernel's frame: registers are in a ucontext at rsp */
};

/* Where the kernel puts the interrupted code's registers, from the signal frame's rsp. */
#define ROW_SIGNAL_RBP 120
#define ROW_SIGNAL_RSP 160
#define ROW_SIGNAL_RIP 168

#define ROW_KIND_BITS 3
#define ROW_SLOT_BITS 10
#define ROW_CFA_BITS  19

/* slot_bytes: where the caller's rbp is, from the CFA; 0: still in rbp. ROW_BAD when a number is
 * odd or too big. */
static inline uint32_t row_make(enum row_kind kind, int64_t cfa_bytes, int64_t slot_bytes)
{
	const int64_t cfa_limit = 8LL << (ROW_CFA_BITS - 1);
	const int64_t slot_limit = 8LL << (ROW_SLOT_BITS - 1);

	if ((cfa_bytes | slot_bytes) & 7 || cfa_bytes < -cfa_limit || cfa_bytes >= cfa_limit ||
		slot_bytes < -slot_limit || slot_bytes >= slot_limit)
		return ROW_BAD;
	return (uint32_t)kind |
	       ((uint32_t)(slot_bytes / 8) & ((1u << ROW_SLOT_BITS) - 1)) << ROW_KIND_BITS |
	       (uint32_t)(cfa_bytes / 8) << (ROW_KIND_BITS + ROW_SLOT_BITS);
}

static inline enum row_kind row_kind(uint32_t row)
{
	return (enum row_kind)(row & ((1u << ROW_KIND_BITS) - 1));
}

static inline int64_t row_cfa_bytes(uint32_t row)
{
	return (int64_t)((int32_t)row >> (ROW_KIND_BITS + ROW_SLOT_BITS)) * 8;
}

static inline int64_t row_slot_bytes(uint32_t row)
{
	return (int64_t)((int32_t)(row << ROW_CFA_BITS) >> (ROW_KIND_BITS + ROW_CFA_BITS)) * 8;
}

#endif
