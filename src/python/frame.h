/* The links between a thread's frames. */
#ifndef VRAMTRACE_PYTHON_FRAME_H
#define VRAMTRACE_PYTHON_FRAME_H

#include <stdbool.h>

#include "python/layout.h"
#include "python/memory.h"

/* owner of a shim, and of all else that runs no Python, since 3.12. */
#define FRAME_OWNER_SHIM 3u

static inline bool frame_is_shim(const struct python_layout *at, uint64_t frame)
{
	return at->chain == PYTHON_SHIMS && memory_u8(frame + at->frame_owner) >= FRAME_OWNER_SHIM;
}

/* The frame that this one was called from, 0: it is the outermost. */
static inline uint64_t frame_previous(const struct python_layout *at, uint64_t frame)
{
	return memory_word(frame + at->frame_previous);
}

/* The first frame from here outward that is no shim. */
static inline uint64_t frame_skip_shims(const struct python_layout *at, uint64_t frame)
{
	while (frame && frame_is_shim(at, frame))
		frame = frame_previous(at, frame);
	return frame;
}

static inline uint64_t frame_code(const struct python_layout *at, uint64_t frame)
{
	uint64_t code = memory_word(frame + at->frame_code);

	return at->is_tagged ? code & ~(uint64_t)3 : code;
}

/* Once an interpreter goes down, it frees what belongs to all threads but the one that ends it. */
static inline bool frame_may_be_gone(
	const struct python_layout *at, uint64_t runtime, uint64_t thread)
{
	uint64_t finalizing = memory_word(runtime + at->runtime_finalizing);

	return finalizing && finalizing != thread;
}

/* Whether a thread leads to its frames through a struct of the evaluation loop. */
static inline bool frame_is_indirect(const struct python_layout *at)
{
	return at->chain != PYTHON_FRAME_OBJECTS && at->thread_cframe;
}

static inline uint64_t frame_innermost(const struct python_layout *at, uint64_t thread)
{
	if (frame_is_indirect(at))
		return memory_word(memory_word(thread + at->thread_cframe) + at->cframe_frame);
	return memory_word(thread + at->thread_frame);
}

#endif
