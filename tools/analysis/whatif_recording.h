/*
 * What a trace shows of the requests that PyTorch's caching allocator served on one device, in the
 * form that whatif.h replays. A trace that does not show all of them is refused.
 */
#ifndef VRAMTRACE_ANALYSIS_WHATIF_RECORDING_H
#define VRAMTRACE_ANALYSIS_WHATIF_RECORDING_H

#include "analysis/whatif.h"
#include "model/replay.h"

enum whatif_refusal {
	WHATIF_FINE,
	WHATIF_NO_BLOCKS,    /* PyTorch reported none on the device */
	WHATIF_ASYNC,	     /* backend:cudaMallocAsync */
	WHATIF_SETTINGS,     /* PyTorch would have refused them, or they are not known here */
	WHATIF_BEGAN_LATE,   /* blocks were there before the recording */
	WHATIF_LOST,	     /* records are missing */
	WHATIF_SUMS,	     /* PyTorch's own sums differ from those of its blocks */
	WHATIF_OUTSIDE,	     /* blocks lie in memory that was not seen to be taken */
	WHATIF_SEVERAL,	     /* several allocators on the device */
	WHATIF_UNKNOWN_SIZE, /* of the device */
};

/* Release it with whatif_built_release. */
struct pickle_value;

struct whatif_built {
	struct whatif_recording recording; /* points into what follows */
	struct whatif_step *steps;
	struct whatif_answer *answers;
	enum whatif_refusal refusal;
	char reason[200]; /* of the refusal, a sentence without a stop; else "" */
	int device;	  /* ordinal */
	char settings_text[512];
	char version_text[64];
	uint64_t peak_reserved_bytes; /* as the trace has it */
	uint64_t n_device_frees;      /* of segments; pages of expandable ones are not counted */
	size_t n_streams;
	bool cap_is_guessed; /* PyTorch refused requests that the driver was not asked for */
	bool streams_known;
	const struct pickle_value *entries; /* of a snapshot's history: a step's stack_id is 1 more
					       than its entry's number; NULL: it is of a trace */
	bool has_user_pools; /* pools that the program made: their segments look ordinary */
};

/* Makes one or more passes over the trace, with models of their own.
 * device: ordinal, or -1 for the first one with blocks of PyTorch. Returns 0 or VT_E_*. */
int whatif_build(struct whatif_built *built, struct replay *replay, int device);
void whatif_built_release(struct whatif_built *built);

#endif
