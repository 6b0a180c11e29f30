/* Memory of the unwinder's contexts: the recorder's own, shared by all threads. */
#ifndef VRAMTRACE_RECORD_UNWIND_PAGES_H
#define VRAMTRACE_RECORD_UNWIND_PAGES_H

#include <stddef.h>

/* bytes of memory, not cleared, 16-byte aligned; from a page on, page aligned. NULL: there is none.
 * The lock inside is a leaf. */
void *pages_take(size_t bytes);

/* Gives back what was taken with the same bytes. */
void pages_give(void *piece, size_t bytes);

/* In a forked child: a fresh lock, and what is idle stays lost. */
void pages_forget(void);

#endif
