/*
 * The records of a trace in the order of time, read ahead by a thread of its own: decoding and
 * merging go on while the one who asks replays what came before.
 */
#ifndef VRAMTRACE_MODEL_STREAM_H
#define VRAMTRACE_MODEL_STREAM_H

#include "trace/reader.h"

struct record_stream;

/* Begins at the first record of reader, which is the stream's alone until record_stream_close. To
 * be closed by it. */
struct record_stream *record_stream_open(struct vt_reader *reader);

/* The next record, NULL behind the last. It and its lists are valid until the next call. */
const struct vt_record *record_stream_next(struct record_stream *stream);

/* vt_reader_position of about the last record. */
uint64_t record_stream_position(const struct record_stream *stream);

/* Ends reading, also before the last record. Returns 0, or the VT_E_* that the reader stopped with.
 */
int record_stream_close(struct record_stream *stream);

#endif
