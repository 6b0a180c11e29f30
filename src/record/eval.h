/* Where the code of Python's evaluation loop is: what lets the reader put Python frames in the
 * place of native ones. Learned from stacks, for the loop may be in pieces that no symbol names. */
#ifndef VRAMTRACE_RECORD_EVAL_H
#define VRAMTRACE_RECORD_EVAL_H

#include <stdint.h>

struct stack;
struct vt_lane;

/* For a stack that is new, while it is still the caller's: learns if its native frames of the loop
 * are not all known, writes what is new to lane, and counts the stack if some are still missing.
 * Unwinds: call it with no lock held. */
void eval_check(struct stack *stack, struct vt_lane *lane, uint64_t time_ns);

/* In a forked child: its trace needs the ranges again. */
void eval_forget(void);

#endif
