/*
 * Writing a trace. Made for the inside of a traced process: no malloc, no stdio, nothing that can
 * block but the growth of the file. A writer hands out lanes; a lane belongs to one thread at a
 * time and writes whole records into its own chunk.
 */
#ifndef VRAMTRACE_TRACE_WRITER_H
#define VRAMTRACE_TRACE_WRITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/codec.h"
#include "vramtrace/error.h"
#include "vramtrace/format.h"

/* Longest TEXT stored; longer ones are cut. */
#define VT_TEXT_MAX 16384u

struct vt_writer;
struct vt_lane;

/*
 * Who keeps the books of a bounded trace. Both are called with one lock held for all threads, so
 * that records come one by one, in the order in which they are written.
 *
 * observe is told of each record: `record` is its struct vt_rec_<name>, lent for the call; time_ns
 * its own time, or that of the thread's record before it. checkpoint writes the records that a part
 * opens with, through the vt_put_* functions and in the order of time; number is that of the part,
 * now_ns (of the trace) the moment.
 */
struct vt_keeper {
	void (*observe)(
		enum vt_record_kind kind, uint32_t tid, uint64_t time_ns, const void *record);
	void (*checkpoint)(struct vt_lane *lane, uint64_t number, uint64_t now_ns);
};

/* One thread's place to write. Memory belongs to the writer. Only its thread touches it; of a
 * bounded trace, only with the writer's `order` held. */
struct vt_lane {
	struct vt_writer *writer;
	struct vt_lane *next_idle; /* writer->lock */
	struct vt_lane *next;	   /* of all lanes; writer->lock */
	struct vt_chunk_header *chunk;
	uint8_t *at;  /* end of the last whole record */
	uint8_t *end; /* of the chunk */
	struct vt_delta delta;
	uint64_t chunk_offset; /* in the file */
	struct vt_near *near;  /* what near.h remembers; NULL: nothing yet */
	uint32_t n_chunks;     /* begun so far */
	uint32_t id;
	uint32_t tid;
	bool is_checkpoint; /* the one that checkpoints are written to */
};

/* Stretches of a part that are mapped, and parts that are kept, at most. */
#define WRITER_MAX_MAPPED 512u
#define WRITER_MAX_PARTS  8u

/* The parts of a bounded trace; the number of the newest, 0: the trace is not bounded. */
struct writer_parts {
	uint64_t number;
	uint64_t first;			  /* the oldest that is kept */
	uint64_t bytes;			  /* of all files but the newest part */
	uint64_t sizes[WRITER_MAX_PARTS]; /* of older parts, by number modulo the size */
	uint64_t part_bytes;		  /* what a part is to have */
	uint64_t limit;			  /* the newest is full when it has so many */
	int main_fd;			  /* of the file itself, -1: not needed */
	size_t n_mapped;
	struct writer_mapped {
		void *at;
		size_t bytes;
	} mapped[WRITER_MAX_MAPPED]; /* of the newest part, without its header */
	struct vt_lane checkpoint;
	char path[4096 + 32]; /* absolute, of the file itself */
};

struct vt_writer {
	pthread_mutex_t lock; /* leaf lock: guards the fields marked "lock" */
	int fd;		      /* -1: closed; lock */
	bool copy; /* no shared mapping possible: chunks are private memory, written with pwrite */
	bool paused;		 /* recording begins paused */
	bool frozen;		 /* no more chunks: closed, full or failed; lock */
	int error;		 /* why it is frozen: VT_E_*; lock */
	uint32_t n_lanes;	 /* lock */
	uint64_t max_bytes;	 /* 0: no limit */
	uint64_t mapped_end;	 /* file offset up to which the file is grown and mapped; lock */
	uint8_t *segment;	 /* mapping of the newest stretch of the file; lock */
	uint64_t segment_offset; /* where it starts in the file; lock */
	struct vt_lane *idle;	 /* lanes whose thread has ended; lock */
	uint8_t *lane_page;	 /* unused rest of the newest page of lanes; lock */
	size_t lane_page_left;	 /* bytes; lock */
	struct vt_lane *lanes;	 /* all of them; lock */
	struct vt_file_header *header; /* of the file itself */
	struct vt_file_header *home;   /* of the file that holds the chunks: the same, or the newest
					  part; lock */
	uint64_t start_monotonic_ns;
	uint64_t start_realtime_ns;
	void (*on_stop)(int error);
	const struct vt_keeper *keeper; /* of a bounded trace, else NULL */
	pthread_mutex_t order; /* of a bounded trace: held around each record; taken before lock */
	struct writer_parts parts; /* order */
};

struct vt_writer_options {
	uint64_t max_bytes; /* largest file, 0: no limit */
	bool paused;	    /* recording begins paused */
	bool copy;	    /* never use a shared mapping (for tests and odd file systems) */
	void (*on_stop)(int error);	/* told once, when the file can grow no more; may be NULL */
	const struct vt_keeper *keeper; /* with max_bytes: old parts go instead; NULL: recording
					   stops there */
};

/* Makes the file path: new, mode 0600, no link followed. Returns 0; VT_E_OPEN with errno set
 * (EEXIST when there is such a file); VT_E_NO_SPACE, VT_E_NO_MEMORY, VT_E_LIMIT, VT_E_IO after
 * removing what it made. */
int vt_writer_open(
	struct vt_writer *writer, const char *path, const struct vt_writer_options *options);

/* No more chunks from here on; the file is cut behind the last one. Chunks stay mapped, so records
 * still fit into what their threads hold: a thread that outlives the call is never harmed. Returns
 * 0, VT_E_IO, or VT_E_BUSY with nothing done, when a signal's handler calls it in the midst of a
 * record of a bounded trace. */
int vt_writer_close(struct vt_writer *writer);

/* After fork, in the child: forgets everything without touching the parent's file. */
void vt_writer_forget(struct vt_writer *writer);

/* A lane for the calling thread tid, which will write no record older than since_ns (of the trace):
 * an idle one whose records are all older, or a new one; so times in a lane never fall. NULL when
 * there is no memory. */
struct vt_lane *vt_writer_lane(struct vt_writer *writer, uint32_t tid, uint64_t since_ns);

/* Gives the lane back when its thread ends; another thread may go on in its chunk. */
void vt_lane_release(struct vt_lane *lane);

/* Whether the control word says that recording is paused. */
static inline bool vt_writer_is_paused(const struct vt_writer *writer)
{
	return atomic_load_explicit(&writer->header->control, memory_order_relaxed) &
	       VT_CONTROL_PAUSED;
}

/* Nanoseconds since the trace's start for a CLOCK_MONOTONIC reading. */
static inline uint64_t vt_writer_time(const struct vt_writer *writer, uint64_t monotonic_ns)
{
	return monotonic_ns > writer->start_monotonic_ns ? monotonic_ns - writer->start_monotonic_ns
							 : 0;
}

/* vt_put_<record>(lane, record): appends one whole record. Returns 0, or VT_E_* when it is lost
 * (and counted). */
#define RECORD(number, rec, doc)                                                                   \
	int vt_put_##rec(struct vt_lane *lane, const struct vt_rec_##rec *record);
#define FIELD(type, name, doc)
#define END_RECORD(rec)
#include "vramtrace/records.def"

#endif
