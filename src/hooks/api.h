/*
 * What programs tell through include/vramtrace/vramtrace.h. Its functions are found by name: their
 * names and parameters stay.
 */
#ifndef VRAMTRACE_HOOKS_API_H
#define VRAMTRACE_HOOKS_API_H

/* In a forked child: whoever held the lock is gone. */
void api_forget(void);

#endif
