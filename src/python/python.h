/*
 * The Python frames of the calling thread, read from the interpreter's own memory: never the GIL,
 * never a call that allocates, no lock but the loader's while an interpreter is looked for.
 *
 * What makes it safe is that a thread looks at itself only. The frames of a thread are pushed and
 * popped by that thread, also while it waits without the GIL, and each frame holds a reference to
 * its code object, whose fields do not change. Nothing read is kept: a code object may be gone, and
 * another one at its address, at the next capture.
 */
#ifndef VRAMTRACE_PYTHON_PYTHON_H
#define VRAMTRACE_PYTHON_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python/layout.h"
#include "vramtrace/format.h"

/* An interpreter of this process. Filled by python_find, then only read. */
struct python {
	uint32_t version; /* PY_VERSION_HEX */
	bool is_usable;
	char reason[96]; /* why it is not usable; "" when it is */
	struct python_layout layout;
	void *(*thread_state)(void); /* PyGILState_GetThisThreadState */
	uint64_t runtime;	     /* _PyRuntime */
	uint64_t code_type, text_type, bytes_type;
	uint64_t eval_start, eval_end; /* _PyEval_EvalFrameDefault, as its symbol says */
};

/*
 * Looks through the loaded objects, also those opened with RTLD_LOCAL. False when none is an
 * interpreter. An interpreter that was found stays loaded from here on: call it with no lock held.
 * May disturb dlerror().
 */
bool python_find(struct python *python);

/* What tells a code object from one that had its address before. */
struct python_key {
	uint64_t code;			/* its address */
	uint64_t file, function, lines; /* addresses of what it refers to */
	uint64_t content;		/* hash of what is there */
	uint32_t first_line;
	uint32_t version; /* 0 before 3.12 */
	uint32_t n_line_bytes;
	uint32_t id; /* left to the owner of the key */
};

struct python_frame {
	struct python_key key;
	uint32_t place; /* as in stack.python: VT_PYTHON_ENTRY | offset of the instruction */
};

/* A walk from the innermost frame outward. */
struct python_walk {
	uint64_t thread; /* its PyThreadState */
	uint64_t frame;	 /* next to be read, 0: that was all */
	bool is_invalid; /* what was read is no frame; the walk ended there */
};

/* Begins a walk. Returns VT_PYTHON_CAPTURED when there is a frame, else why there is none. */
enum vt_python_outcome python_walk_begin(const struct python *python, struct python_walk *walk);

/* Reads at most max further frames. Returns how many; 0 at the end. */
size_t python_walk_next(const struct python *python, struct python_walk *walk,
	struct python_frame *frames, size_t max);

/*
 * Looks at every word of this thread's frames before it is read, which is slow: for the first
 * capture. VT_PYTHON_INVALID when something is not what the layout says; otherwise as
 * python_walk_begin.
 */
enum vt_python_outcome python_check(const struct python *python);

/*
 * Addresses on the C stack of which exactly one lies in the native frame of each running call of
 * the evaluation loop. Returns how many, at most max; 0 before 3.10, which leave none.
 */
size_t python_marks(const struct python *python, uint64_t *marks, size_t max);

/* A code object in words. Texts and lines point into it or into this struct: to be used before the
 * frame that holds the code object goes on. */
struct python_code {
	struct vt_text file, function; /* UTF-8 */
	struct vt_text lines;
	enum vt_line_table line_table;
	uint32_t first_line;
	char file_buffer[4096], function_buffer[2048];
};

/* Fills code from the object at address. False when it is not what it should be. */
bool python_describe(const struct python *python, uint64_t address, struct python_code *code);

#endif
