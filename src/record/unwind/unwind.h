/*
 * The native call stack of this thread, fast, and exactly as libunwind's unw_backtrace gives it.
 * On x86-64 stacks are walked by rows taken from .eh_frame (walk.h, rows.h, cfi.h), and walks that
 * come again are only compared (memo.h). Whatever is out of the ordinary is left to libunwind,
 * which the caller provides; other machines leave all of it.
 *
 * Everything a thread has learnt is its own; it passes to another thread when it ends. Nothing is
 * taken from the process's malloc. In the steady state there is no lock and no system call.
 */
#ifndef VRAMTRACE_RECORD_UNWIND_UNWIND_H
#define VRAMTRACE_RECORD_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether there is more to it than the fallback. */
#if defined(__x86_64__)
#define UNWIND_IS_FAST 1
#else
#define UNWIND_IS_FAST 0
#endif

/* The first max addresses of the caller's stack without those inside the recorder; returns how
 * many. Called with nothing locked. */
typedef size_t unwind_fallback(uint64_t *frames, size_t max);

struct unwind_setup {
	unwind_fallback *fallback;
	size_t max_frames;	     /* 1 to WALK_MAX_FRAMES */
	uint64_t own_start, own_end; /* the recorder's own code: frames in it are left out */
};

enum unwind_how {
	UNWIND_NOTHING,	  /* not set up, inside another capture, or no memory: no frames */
	UNWIND_GUESSED,	  /* remembered, and at first look */
	UNWIND_FOUND,	  /* remembered */
	UNWIND_WALKED,	  /* by rows */
	UNWIND_DELEGATED, /* by libunwind */
};

struct unwind_stack {
	const uint64_t *frames; /* innermost first; good until this thread's next capture */
	size_t n_frames;
	uint64_t memo_id; /* 0, or a number: stacks that have the same have the same frames */
	enum unwind_how how;
	bool has_gap;	 /* leads through code without unwind information: some may be missing */
	size_t n_likely; /* frames before the first that libunwind must have guessed wrong */
};

/* Once, before the first capture; calls the loader. */
void unwind_init(const struct unwind_setup *setup);

/*
 * The stack of the function that called into the recorder: from here up to there, all frames must
 * be the recorder's, compiled with frame pointers. Keeps errno.
 */
void unwind_capture(struct unwind_stack *stack);

/* This thread ends: what it has learnt may go to another. */
void unwind_thread_ended(void);

/* In a forked child. */
void unwind_forget(void);

/* Around every dlclose. Code that goes, and other code in its place, is the one thing that what was
 * learnt does not survive; and while it goes, nobody may use it. Both keep errno. */
struct unwind_unload {
	unsigned long long n_loaded, n_unloaded; /* objects, before */
};
void unwind_unload_begin(struct unwind_unload *unload);
void unwind_unload_end(const struct unwind_unload *unload);

/* True when code was unloaded, or may be just now: libunwind's unw_backtrace then keeps to what it
 * remembers of the old code, while its unw_step does not. */
bool unwind_is_unloaded(void);

#endif
