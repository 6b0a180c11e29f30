/*
 * One walk over the stack by rows, and what it read. A walk depends on nothing but its start, the
 * rows and the words of its trail: where all of these are the same again, so are the frames.
 */
#ifndef VRAMTRACE_RECORD_UNWIND_WALK_H
#define VRAMTRACE_RECORD_UNWIND_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "record/unwind/area.h"
#include "record/unwind/rows.h"

#define WALK_MAX_FRAMES 260u
#define WALK_MAX_STEPS	330u /* frames, and the recorder's own between them */
#define WALK_MAX_LOADS	(3 * WALK_MAX_STEPS)

/* Registers of the function whose stack it is. */
struct walk_start {
	uint64_t ip;  /* where it goes on */
	uint64_t cfa; /* its rsp then */
	uint64_t rbp;
};

/* A word that was read. */
struct walk_load {
	uint64_t value;
	int64_t place; /* its offset from the start's cfa, a multiple of 8, and WALK_NEEDED */
};

/* Something came of the word: one that was only carried along in rbp is not needed. */
#define WALK_NEEDED 1

/* What a walk found. Loads are in the order in which they were made. */
struct trail {
	uint64_t frames[WALK_MAX_FRAMES]; /* addresses of code, innermost (the start's) first */
	struct walk_load loads[WALK_MAX_LOADS];
	uint32_t n_frames;
	uint32_t n_loads;
	bool rbp_matters; /* the start's */
	bool has_gap;	  /* there was code without unwind information */
};

/* Which frames are wanted: the first max_frames (at most WALK_MAX_FRAMES) that do not lie in
 * [own_start, own_end). */
struct walk_limits {
	uint32_t max_frames;
	uint64_t own_start, own_end;
};

/* Walks from start. False: there is something that only libunwind can decide; the trail is then
 * worth nothing. rows must be prepared. */
bool walk_stack(struct trail *trail, struct rows *rows, struct area *area,
	const struct walk_limits *limits, const struct walk_start *start);

/* A hash of the start and of the words that were needed. */
uint64_t trail_hash(const struct trail *trail, const struct walk_start *start);

#endif
