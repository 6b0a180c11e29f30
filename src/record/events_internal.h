/* What the files of events share. */
#ifndef VRAMTRACE_RECORD_EVENTS_INTERNAL_H
#define VRAMTRACE_RECORD_EVENTS_INTERNAL_H

#include <stdint.h>

struct vt_lane;

/* Takes the call stack, writes it if it is new, and returns its number, 0 for none. time_ns, of the
 * trace, is the event's own moment, so that the records of a chunk stay in order. None is taken
 * while recording is paused, but for refusals. */
uint64_t current_stack(struct vt_lane *lane, uint64_t time_ns);
uint64_t stack_of_refusal(struct vt_lane *lane, uint64_t time_ns);

#endif
