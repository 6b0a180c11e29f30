/* What the files of the writer share. */
#ifndef VRAMTRACE_TRACE_WRITER_INTERNAL_H
#define VRAMTRACE_TRACE_WRITER_INTERNAL_H

#include <stddef.h>

#include "trace/writer.h"

/* All of the bytes to this place of the file. False with errno set. */
bool writer_write(int fd, const void *data, size_t bytes, uint64_t offset);

/* Memory of the writer's own, zeroed; NULL when there is none. */
void *writer_map_private(size_t bytes);

/* Takes the time that is the trace's start. */
void writer_file_start(struct vt_writer *writer);

/* Makes a file with a header, which becomes *header, and the place where the writer's chunks go;
 * parted and part are as in `like`. Returns 0, or VT_E_* after removing what it made. */
int writer_file_make(struct vt_writer *writer, const char *path, struct vt_file_header **header,
	const struct vt_file_header *like);

/* Bytes that a file may have. */
uint64_t writer_file_most(void);

/* Closes the file. */
void writer_file_leave(struct vt_writer *writer);

/* Makes room for at least one more chunk. Called with writer->lock held. Returns 0 or VT_E_*. */
int writer_file_grow(struct vt_writer *writer);

/* Without a shared mapping: writes what has changed in the headers. */
void writer_file_update(struct vt_writer *writer);

/* Ends the lane's chunk. */
void writer_seal(struct vt_lane *lane);

/* No more chunks from here on. */
void writer_freeze(struct vt_writer *writer, int error);

/* Makes the first part of a bounded trace; path is that of the file itself, which is made. Returns
 * 0 or VT_E_*. */
int writer_parts_begin(struct vt_writer *writer, const char *path);

/* Whether the newest part is to be the last one no more. */
bool writer_parts_full(const struct vt_writer *writer);

/* Ends the newest part and begins another one with a checkpoint. Called with writer->order held
 * and writer->lock not. Freezes the writer when that fails. */
void writer_parts_rotate(struct vt_writer *writer);

/* Removes the oldest part if it can be spared. False: it cannot. */
bool writer_parts_remove_oldest(struct vt_writer *writer);

/* writer_put_<record>: as vt_put_<record>, without the books. */
#define RECORD(number, rec, doc)                                                                   \
	int writer_put_##rec(struct vt_lane *lane, const struct vt_rec_##rec *record);
#define FIELD(type, name, doc)
#define END_RECORD(rec)
#include "vramtrace/records.def"

/* Whether somebody keeps the books of what is written to the lane. */
static inline bool writer_is_kept(const struct vt_lane *lane)
{
	return lane->writer->keeper && !lane->is_checkpoint;
}

/* Then around each record, which the second is told; of one that stands for another, that one.
 * Returns 0, or VT_E_BUSY when the thread is inside of this already: in a handler of a signal. The
 * record is lost then, and counted. */
int writer_begin_keeping(struct vt_lane *lane);
void writer_end_keeping(struct vt_lane *lane, enum vt_record_kind kind, const void *record);

/* Whether the thread is between the two. */
bool writer_is_keeping(void);

#endif
