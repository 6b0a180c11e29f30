/*
 * Where the program says it is: phases that are open, and what happened in those of one name. Names
 * that differ only in numbers share one: "step 1" and "step 2" are "step *", so that a model does
 * not grow with the number of steps.
 *
 * What a thread does counts for each phase that it has open; if it has none, for those of the
 * thread that has the newest one.
 */
#ifndef VRAMTRACE_MODEL_PHASES_H
#define VRAMTRACE_MODEL_PHASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/hash.h"
#include "model/transfer.h"
#include "vramtrace/format.h"

/* More names than this, or more phases open at once, are only counted. */
#define MODEL_MAX_PHASES      1024u
#define MODEL_MAX_OPEN_PHASES 256u

/* A name as the program gave it. Texts point into the trace. */
struct model_place_name {
	struct vt_text name;
	struct vt_text domain; /* .bytes 0: none */
	bool is_mark;	       /* the newest mark, where no phase was open */
};

/* The most that a device held while a phase was open. */
struct model_phase_peak {
	int device;
	uint64_t tracked_bytes;
	uint64_t tracked_ns;
	uint64_t block_bytes; /* handed out by allocators; may be of another moment */
	uint64_t block_ns;
};

/* Phases, or marks, of one name. */
struct model_phase {
	char *name; /* with the domain before it: "NCCL:ncclAllReduce"; numbers are "*" */
	uint64_t n; /* begun */
	uint64_t n_open;
	uint64_t total_ns; /* of those that have ended */
	uint64_t longest_ns;
	uint64_t first_ns;	  /* begin of the first one */
	uint64_t last_ns;	  /* begin or end of the last one */
	struct model_part copies; /* calls; ns: host time inside them */
	struct model_part waits;  /* for copies to the host; no bytes */
	struct model_phase_peak *peaks;
	size_t n_peaks;
	size_t peaks_room;
	uint64_t stamp; /* the last record that was booked here */
	UT_hash_handle hh;
};

struct model_open_phase {
	struct model_place_name place;
	struct model_phase *phase;
	uint64_t told; /* enum vt_told */
	uint64_t thread_id;
	uint64_t range_id;
	uint64_t begin_ns;
};

struct model_phases {
	struct model_phase *by_name; /* uthash heads: walk them with hh.next */
	struct model_phase *marks;
	struct model_open_phase open[MODEL_MAX_OPEN_PHASES]; /* oldest first */
	size_t n_open;
	struct model_open_phase ended; /* by the last record of a phase; .phase NULL: none was */
	struct model_place_name last_mark; /* .name.data NULL: there was none */
	uint64_t n_left_out;		   /* phases and marks of too many names */
	uint64_t n_unmatched;		   /* ends without a begin */
	uint64_t n_records;
};

struct model;

/* Where the thread is, as above; .name.data NULL: not known. */
struct model_place_name model_place_at(const struct model *model, uint64_t thread_id);

/* "NCCL:ncclAllReduce", into size bytes; cut when it is longer. Returns out. */
const char *model_place_text(const struct model_place_name *place, char *out, size_t size);

#endif
