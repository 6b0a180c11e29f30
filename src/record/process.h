/* The first records of a trace: which process this is, and the variables that matter. */
#ifndef VRAMTRACE_RECORD_PROCESS_H
#define VRAMTRACE_RECORD_PROCESS_H

struct vt_lane;

/* Writes them to lane (NULL: nothing). No allocation. */
void process_describe(struct vt_lane *lane);

#endif
