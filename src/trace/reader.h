/*
 * Reading a trace: one file, or the parts of a bounded one by its name. Whole records of all chunks
 * come out merged in the order of time; memory is bounded by the number of lanes, not by the length
 * of the trace. Damage is skipped and counted.
 */
#ifndef VRAMTRACE_TRACE_READER_H
#define VRAMTRACE_TRACE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/parts.h"
#include "vramtrace/error.h"
#include "vramtrace/format.h"

struct vt_reader;

/* What is wrong with a trace, known once it was read to the end. All 0: it is whole. */
struct vt_damage {
	uint64_t n_chunks_skipped; /* chunks with a bad header or checksum */
	uint64_t n_chunks_cut;	   /* chunks whose records end in nonsense; what stood before it was
				      used */
	uint64_t missing_bytes; /* chunks handed out by the writer that the file does not hold any
				   more */
	uint64_t n_unknown;	/* records of kinds newer than this version */
};

/* Opens path. On success *reader is to be closed with vt_reader_close. Else a VT_E_* (for VT_E_OPEN
 * and VT_E_IO errno says why) and *reader is NULL. */
int vt_reader_open(struct vt_reader **reader, const char *path);
/* The same of a file that is open for reading; fd stays the caller's and may be closed at once.
 * path is where its parts lie if it has any, which says which of them are read; NULL: they are not
 * looked for. */
int vt_reader_open_fd(
	struct vt_reader **reader, int fd, const char *path, enum vt_parts_which which);
void vt_reader_close(struct vt_reader *reader);

/* A snapshot of the header as of opening. Valid while the reader lives. */
const struct vt_file_header *vt_reader_header(const struct vt_reader *reader);

/* Back to the first record, as of opening. Returns 0 or VT_E_NO_MEMORY. */
int vt_reader_rewind(struct vt_reader *reader);

/* The next record. Returns 1, 0 at the end, or VT_E_NO_MEMORY. What the record points to is valid
 * until the next call (lists) or while the reader lives (texts). Of records with equal time, those
 * that take memory away come first. */
int vt_reader_next(struct vt_reader *reader, struct vt_record *record);

/* What was found wrong since the last rewind. */
const struct vt_damage *vt_reader_damage(const struct vt_reader *reader);

/* Bytes of the file, and bytes of chunks consumed since the last rewind: for a progress display. */
uint64_t vt_reader_size(const struct vt_reader *reader);
uint64_t vt_reader_position(const struct vt_reader *reader);

#endif
