#include "python/python.h"

#include "python/frame.h"

#define MAX_FRAMES 1024u

static bool has_bytes(uint64_t object, uint64_t bytes)
{
	return !(object & 7) && memory_is_mapped(object, bytes);
}

static uint16_t largest(const uint16_t *offsets, size_t n)
{
	uint16_t max = 0;

	for (size_t i = 0; i < n; i++)
		if (offsets[i] > max)
			max = offsets[i];
	return max;
}

/* Whether a word at each of the offsets from address may be read. */
#define HAS_WORDS(address, ...)                                                                    \
	has_bytes(address, 8u + largest((const uint16_t[]){__VA_ARGS__},                           \
					sizeof((uint16_t[]){__VA_ARGS__}) / sizeof(uint16_t)))

static bool is_text(const struct python_layout *at, uint64_t text)
{
	return HAS_WORDS(text, at->object_type, at->text_length, at->text_hash, at->text_state);
}

static bool is_code(const struct python *python, uint64_t code)
{
	const struct python_layout *at = &python->layout;
	struct python_code description;

	return HAS_WORDS(code, at->object_type, at->code_file, at->code_function, at->code_lines,
		       at->code_first_line, at->code_version) &&
	       memory_word(code + at->object_type) == python->code_type &&
	       is_text(at, memory_word(code + at->code_file)) &&
	       is_text(at, memory_word(code + at->code_function)) &&
	       HAS_WORDS(memory_word(code + at->code_lines), at->object_type, at->bytes_size) &&
	       python_describe(python, code, &description) && description.function.bytes;
}

static bool is_frame(const struct python *python, uint64_t frame)
{
	const struct python_layout *at = &python->layout;

	return HAS_WORDS(frame, at->frame_previous, at->frame_code, at->frame_at) &&
	       (frame_is_shim(at, frame) || is_code(python, frame_code(at, frame)));
}

static bool is_thread(const struct python_layout *at, uint64_t thread)
{
	return HAS_WORDS(thread, at->thread_frame, at->thread_cframe) &&
	       (!frame_is_indirect(at) ||
		       HAS_WORDS(memory_word(thread + at->thread_cframe), at->cframe_frame));
}

enum vt_python_outcome python_check(const struct python *python)
{
	const struct python_layout *at = &python->layout;
	uint64_t thread = (uint64_t)(uintptr_t)python->thread_state(), frame;
	struct python_walk walk;
	struct python_frame first;

	if (!thread)
		return VT_PYTHON_NO_THREAD;
	if (!HAS_WORDS(python->runtime, at->runtime_finalizing))
		return VT_PYTHON_INVALID;
	if (frame_may_be_gone(at, python->runtime, thread))
		return VT_PYTHON_FINALIZING;
	if (!is_thread(at, thread))
		return VT_PYTHON_INVALID;
	frame = frame_innermost(at, thread);
	for (unsigned int i = 0; frame && i < MAX_FRAMES; i++, frame = frame_previous(at, frame))
		if (!is_frame(python, frame))
			return VT_PYTHON_INVALID;
	if (python_walk_begin(python, &walk) == VT_PYTHON_CAPTURED &&
		python_walk_next(python, &walk, &first, 1) == 1 &&
		(first.place & ~VT_PYTHON_ENTRY) == VT_PYTHON_NO_OFFSET)
		return VT_PYTHON_INVALID;
	return python_walk_begin(python, &walk);
}
