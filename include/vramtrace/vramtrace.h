/*
 * For programs that want to tell vramtrace more than it can see from outside. Nothing needs to be
 * linked, and without the recorder every call does nothing: the functions behind this header are
 * weak, and are the recorder's own when it is preloaded. (In a program that is not compiled
 * position independent the linker may settle that they are absent.) The calls may be made from any
 * thread, with any lock held, and cost well under a microsecond beside the call stack.
 */
#ifndef VRAMTRACE_VRAMTRACE_H
#define VRAMTRACE_VRAMTRACE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Found by name; other languages may look them up with dlsym. Call the vt_ functions below. */
__attribute__((weak)) void vramtrace_block_alloc(const char *pool, void *pointer, size_t bytes);
__attribute__((weak)) void vramtrace_block_free(const char *pool, void *pointer, size_t bytes);
__attribute__((weak)) void vramtrace_mark(const char *name);
__attribute__((weak)) void vramtrace_phase_begin(const char *name);
__attribute__((weak)) void vramtrace_phase_end(const char *name);

/*
 * An allocator of the program's own takes large pieces of GPU memory and hands out parts of them:
 * reports then say who holds the parts, and not only who took the pieces.
 *
 *   pool     name of the allocator: equal texts are the same one, of which the first 63 bytes
 * count; up to 255 are told apart pointer  first byte of the block; in memory that was obtained
 * from CUDA bytes    its length; for a free it may be 0
 *
 * Call vt_block_alloc once the block is nobody else's, and vt_block_free while it still is, so that
 * the order of the two is that of the blocks' lives. Before the first CUDA call of the process
 * nothing is recorded.
 */
static inline void vt_block_alloc(const char *pool, void *pointer, size_t bytes)
{
	if (vramtrace_block_alloc)
		vramtrace_block_alloc(pool, pointer, bytes);
}

static inline void vt_block_free(const char *pool, void *pointer, size_t bytes)
{
	if (vramtrace_block_free)
		vramtrace_block_free(pool, pointer, bytes);
}

/*
 * Where the program is: reports name moments and stretches of time by it.
 *
 * A mark is a moment ("step 100"). A phase is a stretch ("prefill"); phases of a thread may lie in
 * one another, and may be ended by another thread. vt_phase_end ends the newest open phase of that
 * name: of this thread, or else of any. What a thread without a phase of its own does counts for
 * the newest phase of any thread. Names are UTF-8, the first 255 bytes count; numbers in them are
 * told apart by the moment, but "step 1" and "step 2" share a line in tables. Not to be called from
 * signal handlers.
 *
 * Before the first CUDA call of the process marks are not recorded; a phase that is still open then
 * is, as of the trace's start.
 */
static inline void vt_mark(const char *name)
{
	if (vramtrace_mark)
		vramtrace_mark(name);
}

static inline void vt_phase_begin(const char *name)
{
	if (vramtrace_phase_begin)
		vramtrace_phase_begin(name);
}

static inline void vt_phase_end(const char *name)
{
	if (vramtrace_phase_end)
		vramtrace_phase_end(name);
}

#ifdef __cplusplus
}
#endif

#endif
