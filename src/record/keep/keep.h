/*
 * The books of a bounded trace (VRAMTRACE_MAX_SIZE): what its parts open with. From every record
 * that is written it is worked out what a reader of all of them would know: what lives, and the
 * record that says so; what each call site did that has ended; peaks, and who held memory then; a
 * timeline of fixed length. A checkpoint repeats the records of what lives, and sums up the rest.
 *
 * It follows the rules of tools/model, so that a report of what is left of a trace says the same as
 * one of the whole. Memory, from the recorder's own mappings, follows what lives (about 300 bytes
 * for each allocation or block) and the distinct stacks and sites, of which there are at most
 * STACKSET_MOST_BOUNDED; not the length of the recording.
 *
 * Everything here is called with vt_writer.order held, and calls nothing but the codec and the
 * kernel.
 */
#ifndef VRAMTRACE_RECORD_KEEP_KEEP_H
#define VRAMTRACE_RECORD_KEEP_KEEP_H

#include "trace/writer.h"

/* For vt_writer_options. */
extern const struct vt_keeper keep_keeper;

/* Empty: in a forked child. */
void keep_forget(void);

#endif
