/* Limits of this recording that are found out while it runs, in words, once each. */
#ifndef VRAMTRACE_RECORD_NOTES_H
#define VRAMTRACE_RECORD_NOTES_H

enum note {
	NOTE_DEEPBIND_CLEARED,
	NOTE_DEEPBIND_KEPT,
	NOTE_BYPASSED,
	NOTE_SPARSE,
	NOTE_DECOMPRESSED,
	NOTE_TORCH_POOL,
	NOTE_MANY_POOLS,
	NOTE_MANY_STACKS,
	N_NOTES
};

/* Puts the note into the trace: at once, or when there is one. No allocation, no lock. */
void notes_say(enum note note);

/* Writes what was kept. Called when the session has started. */
void notes_flush(void);

/* One more runtime call that reached the driver past its hooks. The count is written by
 * notes_finish. */
void notes_count_bypassed(void);

/* The last to be written into a trace whose process ends. */
void notes_finish(void);

/* In a forked child: its own trace gets the notes again. */
void notes_forget(void);

#endif
