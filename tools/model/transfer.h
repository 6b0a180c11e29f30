/*
 * What a model keeps of copies and of the host memory they touch: sums by call site, and small
 * tables of what was seen lately, none of which grows with the length of the trace. Which of it is
 * a loss is for analysis/transfers.h to say.
 */
#ifndef VRAMTRACE_MODEL_TRANSFER_H
#define VRAMTRACE_MODEL_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/hash.h"
#include "trace/tree.h"
#include "vramtrace/format.h"

/* What sort of host memory a copy touched. */
enum model_host_kind {
	MODEL_HOST_NONE, /* no host memory */
	MODEL_HOST_PAGEABLE,
	MODEL_HOST_PINNED,
	MODEL_HOST_REGISTERED,
	MODEL_HOST_MANAGED,
	MODEL_N_HOST_KINDS
};

/* Copies are told apart by how many bits their number of bytes needs: class 13 is 4 KiB up to 8. */
#define MODEL_N_SIZE_CLASSES 65

#define MODEL_SMALL_COPY_BYTES 65536u

struct model_copy_key {
	uint64_t stack_id;
	int32_t dst_device; /* ordinal or MODEL_DEVICE_* */
	int32_t src_device;
	uint32_t direction;  /* enum vt_direction, never VT_DIR_UNIFIED */
	uint16_t host_kind;  /* enum model_host_kind */
	uint16_t size_class; /* of each copy */
};

/* Some copies, or something about them. */
struct model_part {
	uint64_t n;
	uint64_t bytes;
	uint64_t ns;
};

/* Calls are booked where the first copy of their batch is. */
struct model_copy {
	struct model_copy_key key;
	uint64_t n_calls;  /* a batch is one call, booked where its first copy is */
	uint64_t n_copies; /* each one of a batch */
	uint64_t n_async;  /* calls */
	uint64_t n_small;  /* calls, of at most MODEL_SMALL_COPY_BYTES in all */
	uint64_t bytes;
	uint64_t host_time_ns;
	uint64_t first_ns, last_ns;
	/* Calls that return when they are through, synchronous or with pageable memory. */
	struct model_part through;
	uint64_t fastest_ps;	   /* per byte, of those, picoseconds; 0: there was none */
	struct model_part blocked; /* asynchronous calls that took far longer than to submit */
	struct model_part timed;   /* ns: on the device */
	struct model_part waited;  /* asynchronous ones that the host waited for in its next wait */
	struct model_part close;   /* small calls right behind another one of the thread */
	struct model_part repeats; /* of the same host memory as before, no copy into it between */
	uint64_t n_repeat_ranges;  /* of host memory, each uploaded three times at least */
	uint64_t repeat_bytes;	   /* of the first of them; */
	bool repeat_bytes_vary;	   /* of others, something else */
	struct model_part trips; /* to the host, which came back up from there unchanged in size */
	uint64_t n_trip_ranges;	 /* of host memory */
	uint64_t trip_stack_id;	 /* of the last one's way up */
	struct model_part pins;	 /* host memory locked for these copies and then unlocked; ns: in
				    those calls */
	struct model_part unpeered; /* between devices of which neither had access to the other */
	struct model_part serial; /* on the legacy default stream right behind ones on a stream that
				     it waits for */
	UT_hash_handle hh;
};

/* A copy that more may become known of. */
struct model_timed {
	uint64_t timed_id;
	struct model_copy *copy;
	uint64_t bytes; /* of the whole batch */
	UT_hash_handle hh;
};

/* What is known of a thread's last small calls. */
struct model_thread {
	uint32_t tid;
	uint64_t small_end_ns[VT_N_DIRECTIONS]; /* 0: none yet */
	UT_hash_handle hh;
};

/* Traffic over time, in stretches whose length doubles when the trace outgrows them. */
#define MODEL_N_STRETCHES 128u

struct model_stretch {
	uint64_t bytes[VT_N_DIRECTIONS]; /* submitted */
	uint64_t host_time_ns;		 /* in copies and in waits for them */
};

struct model_traffic {
	uint64_t start_ns;
	uint64_t stretch_ns; /* 0: no copy yet */
	struct model_stretch stretches[MODEL_N_STRETCHES];
};

/* Host memory that was copied from or to, by its first byte. */
struct model_host_range {
	struct tree_node node;
	struct model_host_range *newer, *older;
	uint64_t bytes;
	uint64_t n_up;		      /* by the same site, since something was copied into it */
	struct model_copy *up, *down; /* last in each direction; NULL: none */
	bool is_down;		      /* was copied to, and not from since */
	uint64_t n_trips;
};

struct model_host_ranges {
	struct tree tree;
	struct model_host_range *newest, *oldest;
};

/* What became of page-locked host memory. */
struct model_host_use {
	uint64_t made_ns;
	uint64_t lock_ns; /* inside the call */
	uint64_t n_copies;
	uint64_t touched_bytes; /* from its first byte to the last one that was copied */
	uint64_t first_copy_ns, last_copy_ns;
	uint64_t stream;	 /* of the last copy */
	struct model_copy *copy; /* site of the first one */
};

struct model_pinning_key {
	uint64_t stack_id;
	uint64_t kind; /* VT_KIND_PINNED, VT_KIND_REGISTERED */
};

/* Page-locked memory by where it was locked. */
struct model_pinning {
	struct model_pinning_key key;
	uint64_t n_locked; /* in all */
	uint64_t locked_bytes;
	uint64_t lock_ns;
	struct model_part used;	 /* those that copies touched; ns: not used */
	uint64_t touched_bytes;	 /* of those */
	struct model_part round; /* of a power of two of bytes, 1 MiB at least */
	struct model_part late;	 /* unlocked long after the last copy; ns: between the two */
	uint64_t first_ns, last_ns;
	UT_hash_handle hh;
};

/* Memory was to be registered that was registered already. */
struct model_clash {
	uint64_t stack_id;
	uint64_t earlier_stack_id;
	uint64_t n;
	uint64_t address; /* of the first one */
	uint64_t bytes;
	uint64_t first_ns;
};

#define MODEL_MAX_CLASHES 64u

/* Memory that was given back lately. */
struct model_freed {
	int device;
	uint32_t kind;
	uint64_t bytes;
	uint64_t end_ns;  /* of the free; 0: not to be found any more */
	uint64_t free_ns; /* inside it */
};

#define MODEL_N_FREED 64u

/* device may use the memory of peer. */
struct model_peer {
	int device;
	int peer;
};

#endif
