/*
 * The recording of this process: when it starts, whom it follows over fork, how it ends, and each
 * thread's way into it.
 *
 * Locks, in the only order in which one may be taken under another:
 *   the dynamic loader's own lock (dl_iterate_phdr)  >  a table shard's lock  >  vt_writer.order
 *   (of a bounded trace, around each record and rotation)  >  vt_writer.lock
 * All but the first are leaves in the sense that nothing is called under them but the codec and the
 * kernel: no CUDA, no unwinder, no loader, no malloc.
 */
#ifndef VRAMTRACE_RECORD_SESSION_H
#define VRAMTRACE_RECORD_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/writer.h"

enum session_state {
	SESSION_OFF,	  /* never records: set-user-id, or failed to start */
	SESSION_IDLE,	  /* no CUDA use seen yet: no file */
	SESSION_STARTING, /* one thread is making the file */
	SESSION_ON,
};

struct session {
	_Atomic int state;	    /* enum session_state */
	_Atomic unsigned int epoch; /* changes in a forked child: what threads remember is void */
	_Atomic bool ended;
	struct vt_writer writer;
	char path[4096]; /* of the trace; "" before there is one */
};

#define SESSION_STACK_CACHE 256u

struct stackset_entry;

struct session_stack {
	uint64_t native_id; /* stackset.h */
	struct stackset_entry *entry;
};

struct codes_seen;

/* A call of the CUDA runtime, by what traces call it. */
struct session_caller {
	unsigned int api; /* 0: none */
	const char *name;
};

/* A copy to the host that the thread may be about to wait for. */
struct session_readback {
	uint64_t timed_id; /* 0: none */
	uint64_t stream;
};

/* What one thread keeps. Initial-exec: no call and no allocation to reach it; the library is only
 * ever preloaded. */
struct session_thread {
	unsigned int depth;   /* nesting of intercepted calls; only the outermost is recorded */
	unsigned int n_calls; /* intercepted calls so far */
	struct session_caller caller; /* inside of which this thread is */
	struct session_readback readback;
	unsigned int epoch; /* of the session the rest belongs to */
	struct vt_lane *lane;
	struct codes_seen *codes; /* recent Python code objects, NULL: none yet */
	struct session_stack stacks[SESSION_STACK_CACHE]; /* recent stacks, by hash */
};

extern struct session session;
extern __thread struct session_thread session_thread __attribute__((tls_model("initial-exec")));

/* Called when the library is loaded. Reads the environment; nothing is opened and nothing printed.
 * describe is called once in each trace's first thread, right after the trace was made: it writes
 * what the driver says about itself. */
void session_prepare(char **environ_list, void (*describe)(void));

/* Makes the trace if there is none yet, for a call that began at since_ns. If another thread is at
 * it, waits for that one, at most two seconds: the wait is for system calls only, never for the
 * loader or CUDA. Afterwards session_is_on() tells. */
void session_start(uint64_t since_ns);

static inline bool session_is_on(void)
{
	return atomic_load_explicit(&session.state, memory_order_acquire) == SESSION_ON;
}

/* False once it is certain that nothing will be recorded. */
static inline bool session_is_possible(void)
{
	return atomic_load_explicit(&session.state, memory_order_relaxed) != SESSION_OFF;
}

/* This thread's lane, NULL when there is no memory or no session. since_ns, a CLOCK_MONOTONIC
 * reading: nothing older will be written to it. */
struct vt_lane *session_lane(uint64_t since_ns);

/* One line on stderr, "vramtrace: " before and a newline after it; nothing with VRAMTRACE_QUIET=1.
 * Keeps errno. */
void session_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t session_clock_ns(void);

#endif
