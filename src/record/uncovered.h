/* Memory calls of the driver that the program looked up and the recorder does not wrap: a report
 * must name them. */
#ifndef VRAMTRACE_RECORD_UNCOVERED_H
#define VRAMTRACE_RECORD_UNCOVERED_H

/* Notes that name was handed out unwrapped, once each, if it looks like a call that obtains, gives
 * back or moves memory. Before the session starts names are kept; after that they are written at
 * once. No allocation, no lock. */
void uncovered_note(const char *name);

/* Writes what was kept. Called when the session has started. */
void uncovered_flush(void);

/* In a forked child: its own trace gets the names again. */
void uncovered_forget(void);

#endif
