/*
 * The trace file. One per process: a header, then chunks of equal size.
 *
 *   header   struct vt_file_header, then the schema text up to header_bytes
 *   chunk i  at header_bytes + i * chunk_bytes: struct vt_chunk_header, then records
 *
 * A chunk is written by one lane (a thread, or threads that follow one another). Its `used` word
 * grows with a release store after each whole record, so the file is readable at any moment, also
 * after SIGKILL. Numbers are in the byte order of the writer. A record is its number (one byte) and
 * its fields in the order of records.def; numbers are LEB128, signed ones zigzag first; differences
 * start from base_time_ns and from address 0 at the head of each chunk, so each chunk decodes
 * alone.
 *
 * Of a bounded trace (VRAMTRACE_MAX_SIZE) the file itself has no chunks. They are in parts beside
 * it, FILE.part1, FILE.part2 and so on, each a whole trace file of its own. All but the first open
 * with a checkpoint, some chunks that say what the parts before them did: of a row of parts, it is
 * read in the first one and stepped over in the others. Old parts are removed; a part whose
 * checkpoint is not complete (ready 0) holds nothing else and does not count.
 */
#ifndef VRAMTRACE_FORMAT_H
#define VRAMTRACE_FORMAT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define VT_MAGIC	"VRAMTRC\n"
#define VT_FORMAT	1
#define VT_BYTE_ORDER	0x01020304u
#define VT_HEADER_BYTES 8192u
#define VT_CHUNK_BYTES	65536u
#define VT_CHUNK_MAGIC	0x4b4e4843u /* "CHNK" */

/* How the process was seen to end. */
enum vt_end {
	VT_END_UNKNOWN = 0,
	VT_END_EXIT = 1,   /* exit() ran, status is its argument */
	VT_END_SIGNAL = 2, /* a launcher saw a signal, status is its number */
	/* Only in packed traces, which are read where nobody can look. */
	VT_END_RUNNING = 3, /* the process still ran when it was packed */
	VT_END_EXEC = 4,    /* it had become another program */
};

struct vt_file_header {
	char magic[8];
	uint32_t format;
	uint32_t byte_order;
	uint32_t header_bytes;
	uint32_t chunk_bytes;
	uint64_t start_realtime_ns;  /* CLOCK_REALTIME at time 0 */
	uint64_t start_monotonic_ns; /* CLOCK_MONOTONIC at time 0 */
	uint32_t pid;
	uint32_t schema_bytes;	   /* length of the schema text that follows this struct */
	_Atomic uint64_t n_chunks; /* chunks handed out so far */
	_Atomic uint64_t n_lost;   /* records lost so far by all threads */
	_Atomic int32_t stopped;   /* VT_E_*: why no more chunks were handed out; 0 none */
	_Atomic uint32_t control;  /* VT_CONTROL_* bits */
	/* Written by `vramtrace run`, which alone learns of signals and of _exit(); and when a
	 * trace is packed. */
	_Atomic uint32_t launcher_end; /* enum vt_end */
	_Atomic int32_t launcher_status;
	/* Only inside packed traces (tools/pack/columns.h). */
	uint32_t group_chunks;	 /* chunks are in columns, so many together; 0: as they are */
	uint32_t n_plain_chunks; /* that come before those, as they are */
	uint64_t reserved[3];
	uint32_t parted;	      /* 1: the chunks are in parts */
	uint32_t part;		      /* number of this part, 0: it is none */
	_Atomic uint32_t ready;	      /* of a part: 1 when its checkpoint is complete */
	uint32_t n_checkpoint_chunks; /* of a part: its first ones */
};

struct vt_chunk_header {
	uint32_t magic;
	uint32_t lane;		 /* chunks of one lane follow one another in time */
	uint32_t tid;		 /* thread of the first record */
	_Atomic uint32_t used;	 /* bytes of records after this header */
	_Atomic uint32_t sealed; /* 1: full, checksum valid */
	uint32_t pad;
	uint64_t base_time_ns;
	uint64_t checksum; /* vt_checksum over the records */
	uint64_t reserved[3];
};

/* Bits of control: the recorder looks at this word while it records; recording is paused, which
 * others may set and clear in the file. */
#define VT_CONTROL_HEEDED 1u
#define VT_CONTROL_PAUSED 2u

_Static_assert(sizeof(struct vt_file_header) == 128, "header layout is part of the format");
_Static_assert(sizeof(struct vt_chunk_header) == 64, "chunk layout is part of the format");

/* What memory is, by the call that made it. Numbers are part of the format. */
enum vt_kind {
	VT_KIND_NONE = 0,
	VT_KIND_LINEAR = 1,	/* cuMemAlloc, cuMemAllocPitch */
	VT_KIND_ARRAY = 2,	/* arrays and mipmapped arrays */
	VT_KIND_POOL = 3,	/* stream-ordered */
	VT_KIND_VMM = 4,	/* physical memory of cuMemCreate */
	VT_KIND_MANAGED = 5,	/* resident on the host or a device; asked bytes only */
	VT_KIND_GRAPH = 6,	/* graph memory nodes */
	VT_KIND_SHARED = 7,	/* bytes of another process or API */
	VT_KIND_PINNED = 8,	/* page-locked host memory of the driver */
	VT_KIND_REGISTERED = 9, /* the program's own host memory, page-locked */
	VT_N_KINDS
};

enum vt_direction {
	VT_DIR_UNIFIED = 0, /* the addresses decide */
	VT_DIR_H2D = 1,
	VT_DIR_D2H = 2,
	VT_DIR_D2D = 3,
	VT_DIR_P2P = 4,
	VT_DIR_H2H = 5,
	VT_N_DIRECTIONS
};

/* Bits of copy.flags: further descriptors of the batch in the record before it have bytes, but are
 * no call of their own; arrays are named by handle, not by address; what was captured became part
 * of a graph, nothing was copied; a peer call's copies from device to device are p2p on one device
 * too. Asynchronous copies: on the legacy default stream; on another one, which waits for it and it
 * for the other. */
#define VT_COPY_ASYNC	  1u
#define VT_COPY_SAME_CALL 2u
#define VT_COPY_DST_ARRAY 4u
#define VT_COPY_SRC_ARRAY 8u
#define VT_COPY_CAPTURED  16u
#define VT_COPY_PEER	  32u
#define VT_COPY_LEGACY	  64u
#define VT_COPY_BLOCKING  128u

/* CUresult of a call that found no memory: the one error that reports treat apart. */
#define VT_RESULT_OUT_OF_MEMORY 2

/* Whose bytes physical memory is. */
enum vt_sharing {
	VT_SHARING_OWN = 0,
	VT_SHARING_IMPORTED = 1,
	VT_SHARING_MULTICAST = 2, /* stands for memory of its members */
};

enum vt_pool_action {
	VT_POOL_CREATE = 1,
	VT_POOL_DESTROY = 2, /* its memory goes once its allocations are freed */
	VT_POOL_TRIM = 3,
	VT_POOL_SET_CURRENT =
		4,	    /* of the device: what stream-ordered allocations without a pool use */
	VT_POOL_IMPORT = 5, /* bytes of another process */
	VT_POOL_THRESHOLD = 6,
};

enum vt_graph_action {
	VT_GRAPH_INSTANTIATE = 1,
	VT_GRAPH_LAUNCH = 2,
	VT_GRAPH_EXEC_DESTROY = 3,
	VT_GRAPH_TRIM = 4,
	VT_GRAPH_DESTROY = 5,  /* its nodes are forgotten; executables made of it are not */
	VT_GRAPH_CAPTURED = 6, /* launched into a capture: nothing ran */
};

enum vt_migrate_action {
	VT_MIGRATE_PREFETCH = 1,
	VT_MIGRATE_ADVISE = 2,
	VT_MIGRATE_DISCARD = 3,
	VT_MIGRATE_DISCARD_PREFETCH = 4,
};

/* Objects of the driver that are counted: they may take memory that nobody allocated. */
enum vt_object {
	VT_OBJECT_STREAM = 0,
	VT_OBJECT_EVENT = 1,
	VT_OBJECT_MODULE = 2, /* or library */
	VT_OBJECT_GRAPH_EXEC = 3,
	VT_N_OBJECTS
};

/* What takes device memory that nobody allocated. */
enum vt_cause {
	VT_CAUSE_CONTEXT = 1,
	VT_CAUSE_MODULES = 2,
	VT_CAUSE_LOCAL_MEMORY = 3, /* the stack limit's reserve */
	VT_CAUSE_DEVICE_HEAP = 4,  /* the malloc limit's heap */
	VT_CAUSE_LIMITS = 5,	   /* other limits */
	VT_CAUSE_GRAPH_EXEC = 6,
	VT_CAUSE_GREEN_CONTEXT = 7,
	VT_N_CAUSES
};

enum vt_context_action {
	VT_CONTEXT_CREATE = 1,
	VT_CONTEXT_DESTROY = 2,
	VT_CONTEXT_RETAIN = 3,	/* primary context */
	VT_CONTEXT_RELEASE = 4, /* primary context */
	VT_CONTEXT_RESET = 5,	/* primary context */
};

/* Whose blocks an allocator's are. */
enum vt_layer {
	VT_LAYER_TORCH = 1, /* PyTorch's caching allocator */
	VT_LAYER_TOLD = 2,  /* the program tells them, see vramtrace.h */
};

/* Bits of block_stream.flags: the memory was obtained inside a capture. */
#define VT_STREAM_CAPTURED 1u

enum vt_event_action {
	VT_EVENT_WAIT = 1,
	VT_EVENT_QUERIED = 2,	   /* found done */
	VT_EVENT_SYNCHRONISED = 3, /* done after waiting */
	VT_EVENT_DESTROYED = 4,
};

enum vt_graph_pool_action {
	VT_GRAPH_POOL_BEGIN = 1, /* a capture begins */
	VT_GRAPH_POOL_END = 2,	 /* it ends */
	VT_GRAPH_POOL_NAMED = 3, /* after the call: which pool the graph has */
	VT_GRAPH_POOL_RESET = 4, /* the graph lets its pool go */
	VT_GRAPH_POOL_DESTROYED = 5,
	VT_GRAPH_POOL_USER_MADE = 6, /* a pool of the program's own */
	VT_GRAPH_POOL_USER_GONE = 7,
};

/* How a program told of a mark or phase, and to which begin the end of a phase belongs. */
enum vt_told {
	VT_TOLD_API = 1,  /* vramtrace.h: the newest of that name, of the thread or else of any */
	VT_TOLD_NVTX = 2, /* NVTX mark, push and pop: the newest of the thread and domain */
	VT_TOLD_NVTX_RANGE = 3, /* NVTX start and end, by any thread: the one with the range_id */
};

enum vt_phase_action {
	VT_PHASE_BEGIN = 1,
	VT_PHASE_END = 2,
};

/* Bits of host_memory.known, each for the fields of that name. */
#define VT_HOST_RESIDENT  1u
#define VT_HOST_LOCKED	  2u
#define VT_HOST_SWAPPED	  4u
#define VT_HOST_AVAILABLE 8u
#define VT_HOST_SWAP	  16u

/* The figures of a checkpoint. Of a device unless another is named. */
enum vt_figure {
	VT_FIGURE_PEAK = 1,	   /* most tracked bytes, and when */
	VT_FIGURE_PEAK_BLOCKS = 2, /* of that, in blocks of allocators */
	VT_FIGURE_KIND_PEAK = 3,   /* most live bytes of a kind */
	VT_FIGURE_OTHERS = 4,	   /* what other processes use; kind 1: measured, 0: assumed */
	VT_FIGURE_FREE = 5,	   /* the driver's last word on free bytes, and when */
	VT_FIGURE_TOTAL = 6,	   /* and on the bytes in all */
	VT_FIGURE_HELD = 7,	   /* what was tracked then; kind: an enum vt_kind */
	VT_FIGURE_UNTRACKED = 8,   /* what was untracked then; kind: an enum vt_cause */
	VT_FIGURE_MOST_USED = 9,   /* most bytes in use in any sample, and when */
	VT_FIGURE_PEAK_FREE = 10,  /* free in a sample at the peak */
	/* of the allocator with that id */
	VT_FIGURE_BLOCKS_PEAK = 11,
	VT_FIGURE_RESERVED_PEAK = 12,
	VT_FIGURE_TOLD_ALLOCATED = 13, /* its own sum, less the blocks repeated in the checkpoint */
	VT_FIGURE_TOLD_RESERVED = 14,
	/* of the recording: how long in all, ns, it was paused, and id times, up to the last
	   resumption */
	VT_FIGURE_PAUSED = 15,
};

/* What a record `past` sums up. */
enum vt_past {
	VT_PAST_ALLOC = 0,   /* allocations that are gone */
	VT_PAST_REFUSED = 1, /* calls that were refused; id: enum vt_refused */
	VT_PAST_IDLE = 2,    /* what an allocator held beyond its blocks; only the peak */
};

/* What was refused. Numbers are part of the format. */
enum vt_refused {
	VT_REFUSED_ALLOC = 0,
	VT_REFUSED_FREE = 1,
	VT_REFUSED_COPY = 2,
	VT_REFUSED_SET = 3,
	VT_REFUSED_ADDRESS_SPACE = 4, /* reserve, unreserve, map, unmap, access, retain */
	VT_REFUSED_CONTEXT = 5,
	VT_REFUSED_POOL = 6,
	VT_REFUSED_GRAPH = 7,
	VT_REFUSED_MIGRATE = 8,
	VT_REFUSED_BLOCK = 9, /* by an allocator: its id is in the place of the entry point's */
};

/* Device in the records of a checkpoint. */
#define VT_DEVICE_UNKNOWN (-1)
#define VT_DEVICE_HOST	  (-2)

/* Item of stack.python: this frame is the outermost that its call of the evaluation loop ran. */
#define VT_PYTHON_ENTRY 0x80000000u

/* The offset of an item of stack.python when the interpreter did not tell: there is no such line.
 */
#define VT_PYTHON_NO_OFFSET 0x7fffffffu

/* And when the frame has not begun to run: its line is that of the definition. */
#define VT_PYTHON_NOT_BEGUN 0x7ffffffeu

/* Bits of stack.flags: there were more frames than were kept. */
#define VT_STACK_NATIVE_CUT 1u
#define VT_STACK_PYTHON_CUT 2u
/* It leads through code without unwind information: native frames may be missing from there on. */
#define VT_STACK_NATIVE_GAP 4u

/* How the bytes of python_code.lines map instruction offsets to lines. */
enum vt_line_table {
	VT_LINES_LNOTAB = 1,	/* co_lnotab of CPython up to 3.9 */
	VT_LINES_310 = 2,	/* co_linetable of 3.10 */
	VT_LINES_LOCATIONS = 3, /* co_linetable of 3.11 and later */
};

/* How an attempt to take a Python stack ended. */
enum vt_python_outcome {
	VT_PYTHON_CAPTURED = 0,
	VT_PYTHON_NO_THREAD = 1,  /* the thread has never run Python: nothing is missing */
	VT_PYTHON_EMPTY = 2,	  /* the thread runs no Python now: nothing is missing */
	VT_PYTHON_FINALIZING = 3, /* the interpreter is going down */
	VT_PYTHON_INVALID = 4,	  /* a frame was not what it should be */
	VT_PYTHON_MISMATCH = 5,	  /* of the captured, distinct stacks without all native frames of
				     the evaluation loop */
	VT_N_PYTHON_OUTCOMES
};

/* Bytes that are not owned: in a decoded record they point into the trace, valid while the reader
 * lives. */
struct vt_text {
	const char *data;
	size_t bytes;
};

struct vt_list {
	const uint64_t *items;
	size_t n_items;
};

/* Record numbers, VT_REC_process and so on. */
enum vt_record_kind {
#define RECORD(number, name, doc) VT_REC_##name = (number),
#define FIELD(type, name, doc)
#define END_RECORD(name)
#include "vramtrace/records.def"
	VT_N_RECORDS = 128
};

#define VT_CTYPE_TIME	uint64_t
#define VT_CTYPE_NUMBER uint64_t
#define VT_CTYPE_SIGNED int64_t
#define VT_CTYPE_ADDR	uint64_t
#define VT_CTYPE_TEXT	struct vt_text
#define VT_CTYPE_LIST	struct vt_list

/* struct vt_rec_<name> with one member for each field of records.def. */
#define RECORD(number, name, doc) struct vt_rec_##name {
#define FIELD(type, name, doc)	  VT_CTYPE_##type name;
#define END_RECORD(name)                                                                           \
	}                                                                                          \
	;
#include "vramtrace/records.def"

/* Any one record, as a reader hands it out. */
struct vt_record {
	enum vt_record_kind kind;
	uint32_t tid;	  /* thread that wrote it */
	uint32_t chunk;	  /* index of its chunk */
	uint32_t lane;	  /* of that chunk */
	uint64_t time_ns; /* its own time, or that of the record before it in the chunk */
	union {
#define RECORD(number, name, doc) struct vt_rec_##name name;
#define FIELD(type, name, doc)
#define END_RECORD(name)
#include "vramtrace/records.def"
	};
};

#endif
