#include "python/python.h"

#include "python/frame.h"

/* Frames that are looked at for marks, at most. */
#define MAX_STEPS 1024u

enum vt_python_outcome python_walk_begin(const struct python *python, struct python_walk *walk)
{
	*walk = (struct python_walk){.thread = (uint64_t)(uintptr_t)python->thread_state()};
	if (!walk->thread)
		return VT_PYTHON_NO_THREAD;
	if (frame_may_be_gone(&python->layout, python->runtime, walk->thread))
		return VT_PYTHON_FINALIZING;
	walk->frame =
		frame_skip_shims(&python->layout, frame_innermost(&python->layout, walk->thread));
	return walk->frame ? VT_PYTHON_CAPTURED : VT_PYTHON_EMPTY;
}

/* Offset of the instruction in bytes. */
static uint32_t offset_in(const struct python_layout *at, uint64_t frame, uint64_t code)
{
	uint64_t start = code + at->code_start;
	int64_t offset;

	if (at->lasti_bytes) {
		offset = (int32_t)memory_u32(frame + at->frame_at);
		return offset < 0 ? VT_PYTHON_NOT_BEGUN : (uint32_t)offset * at->lasti_bytes;
	}
	if (at->frame_copy) {
		int32_t copy = (int32_t)memory_u32(frame + at->frame_copy);

		if (copy > 0)
			start = memory_word(
				memory_word(code + at->code_copies) + 8 + 8 * (uint64_t)copy);
	}
	offset = (int64_t)(memory_word(frame + at->frame_at) - start);
	/* The instruction before the first: the frame has not begun to run. */
	if (offset < 0 && offset >= -16)
		return 0;
	/* Code is an object of variable size, counted in instructions of two bytes. */
	if (offset < 0 || (uint64_t)offset >= 2 * memory_word(code + at->bytes_size))
		return VT_PYTHON_NO_OFFSET;
	return (uint32_t)offset;
}

#define ODD 0x9e3779b97f4a7c15u /* 2^64 divided by the golden ratio */

/* A line table is read at both ends, so far each. Most are read whole. */
#define ENDS_BYTES 128u

/* Four sums that do not wait for each other. */
static uint64_t hash_of_lines(uint64_t data, uint64_t n_bytes)
{
	uint64_t a = 1, b = 2, c = 3, d = 4, i = 0;

	for (; i + 32 <= n_bytes; i += 32) {
		if (i == ENDS_BYTES && n_bytes > 2 * ENDS_BYTES)
			i = n_bytes - ENDS_BYTES;
		a = (a ^ memory_word(data + i)) * ODD;
		b = (b ^ memory_word(data + i + 8)) * ODD;
		c = (c ^ memory_word(data + i + 16)) * ODD;
		d = (d ^ memory_word(data + i + 24)) * ODD;
	}
	for (; i + 8 <= n_bytes; i += 8)
		a = (a ^ memory_word(data + i)) * ODD;
	if (n_bytes >= 8)
		b = (b ^ memory_word(data + n_bytes - 8)) * ODD;
	for (; n_bytes < 8 && i < n_bytes; i++)
		c = (c ^ memory_u8(data + i)) * ODD;
	return (a ^ b >> 32) * ODD + (c ^ d >> 32);
}

/* Hashes of texts are kept by the interpreter. Code objects have versions since 3.12, which are
 * used once; before, code that is made again and again may differ in nothing but its lines. */
static uint64_t hash_of(const struct python_layout *at, const struct python_key *key)
{
	uint64_t hash = memory_word(key->function + at->text_hash) * ODD;

	hash = (hash ^ hash >> 32 ^ memory_word(key->file + at->text_hash)) * ODD;
	if (key->version)
		return hash;
	return hash ^ hash >> 32 ^ hash_of_lines(key->lines + at->bytes_data, key->n_line_bytes);
}

static void identify(const struct python_layout *at, uint64_t code, struct python_key *key)
{
	*key = (struct python_key){
		.code = code,
		.file = memory_word(code + at->code_file),
		.function = memory_word(code + at->code_function),
		.lines = memory_word(code + at->code_lines),
		.first_line = memory_u32(code + at->code_first_line),
		.version = at->code_version ? memory_u32(code + at->code_version) : 0,
	};
	key->n_line_bytes = memory_u32(key->lines + at->bytes_size);
	key->content = hash_of(at, key);
}

/* Whether the evaluation loop was called for this frame; next is the frame that it was called from.
 */
static bool is_entry(const struct python_layout *at, uint64_t frame, uint64_t next)
{
	switch (at->chain) {
	case PYTHON_FRAME_OBJECTS:
		return true;
	case PYTHON_C_FRAMES:
		return memory_u8(frame + at->frame_is_entry) != 0;
	default:
		return !next || frame_is_shim(at, next);
	}
}

/* Since 3.13 a frame of the interpreter's own code lies between that of an __init__ and the one
 * that makes the object. It has no line, and one text for all its names; no loop was called for it.
 */
static bool is_own(const struct python_key *key)
{
	return key->file == key->function && !key->first_line;
}

size_t python_walk_next(const struct python *python, struct python_walk *walk,
	struct python_frame *frames, size_t max)
{
	const struct python_layout *at = &python->layout;
	size_t n = 0;

	while (walk->frame && n < max) {
		uint64_t code = frame_code(at, walk->frame);
		uint64_t next = frame_previous(at, walk->frame);

		if (!code || memory_word(code + at->object_type) != python->code_type) {
			walk->is_invalid = true;
			walk->frame = 0;
			return n;
		}
		identify(at, code, &frames[n].key);
		if (!is_own(&frames[n].key)) {
			frames[n].place = offset_in(at, walk->frame, code) |
					  (is_entry(at, walk->frame, next) ? VT_PYTHON_ENTRY : 0);
			n++;
		}
		walk->frame = frame_skip_shims(at, next);
	}
	return n;
}

static size_t c_frames(const struct python_layout *at, uint64_t thread, uint64_t *marks, size_t max)
{
	uint64_t c_frame = memory_word(thread + at->thread_cframe);
	size_t n = 0;

	for (; c_frame && c_frame != thread + at->thread_root_cframe && n < max;
		c_frame = memory_word(c_frame + at->cframe_previous))
		marks[n++] = c_frame;
	return n;
}

static size_t shims(const struct python_layout *at, uint64_t thread, uint64_t *marks, size_t max)
{
	uint64_t frame = frame_innermost(at, thread);
	size_t n = 0;

	for (unsigned int i = 0; frame && i < MAX_STEPS && n < max;
		i++, frame = frame_previous(at, frame))
		if (frame_is_shim(at, frame))
			marks[n++] = frame;
	return n;
}

size_t python_marks(const struct python *python, uint64_t *marks, size_t max)
{
	const struct python_layout *at = &python->layout;
	uint64_t thread = (uint64_t)(uintptr_t)python->thread_state();

	if (!thread)
		return 0;
	if (at->chain == PYTHON_SHIMS)
		return shims(at, thread, marks, max);
	return at->thread_cframe ? c_frames(at, thread, marks, max) : 0;
}
