/* The native call stack of this thread, from libunwind, which is opened privately and only when
 * there is CUDA use. */
#ifndef VRAMTRACE_RECORD_STACK_H
#define VRAMTRACE_RECORD_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Opens libunwind, once; calls the loader, so no lock may be held. RTLD_LOCAL is what keeps its
 * _Unwind_* functions away from the target's C++ exceptions. Without it stacks stay empty.
 */
void stack_prepare(void);

/* Why there are no stacks, in words, or NULL when there are. A constant. */
const char *stack_problem(void);

/* Fills frames with at most max return addresses of the caller's thread, innermost first and
 * without the recorder's own frames. Returns how many. Holds no lock, allocates nothing from the
 * process. */
size_t stack_capture(uint64_t *frames, size_t max);

#endif
