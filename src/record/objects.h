/*
 * How many objects of the driver were created and destroyed that take device memory without an
 * allocation. A call only counts; the counts are written with the samples of free memory.
 */
#ifndef VRAMTRACE_RECORD_OBJECTS_H
#define VRAMTRACE_RECORD_OBJECTS_H

#include "record/events.h"

/* The call, if it succeeded, created such an object, or destroyed one. */
void objects_created(const struct call *call, enum vt_object object);
void objects_destroyed(const struct call *call, enum vt_object object);

/* Writes the counts that have changed since they were last written. */
void objects_write(void);

/* In a forked child. */
void objects_forget(void);

#endif
