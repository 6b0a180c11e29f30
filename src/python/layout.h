/* Where things are inside CPython's objects: byte offsets, one set a minor version. */
#ifndef VRAMTRACE_PYTHON_LAYOUT_H
#define VRAMTRACE_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* Oldest and newest minor version of Python 3 whose layout is known. */
#define PYTHON_OLDEST 8u
#define PYTHON_NEWEST 15u

/* How a thread's frames are linked. */
enum python_chain {
	PYTHON_FRAME_OBJECTS, /* 3.8 to 3.10: objects, one a call of the evaluation loop */
	PYTHON_C_FRAMES,      /* 3.11: from the loop's own struct; entry frames are marked */
	PYTHON_SHIMS,	      /* 3.12 on: a frame of no code between calls of the loop */
};

/* 0: not there, except where a first member has it. */
struct python_layout {
	enum python_chain chain;
	bool is_tagged;	     /* code pointers carry flags in their low bits */
	uint8_t lasti_bytes; /* frame objects: bytes an instruction counts, 0: frame_at is a pointer
			      */
	uint8_t text_kind;   /* first bit of the kind in a text's state; compact and ascii follow */
	uint16_t thread_frame; /* frame, or with cframe_* the loop's struct */
	uint16_t thread_cframe, thread_root_cframe;
	uint16_t cframe_frame, cframe_previous;
	uint16_t frame_previous, frame_code, frame_at;
	uint16_t frame_owner, frame_is_entry, frame_copy;
	uint16_t code_first_line, code_version;
	uint16_t code_file, code_function, code_lines;
	uint16_t code_start, code_copies;
	uint16_t text_length, text_hash, text_state, text_ascii, text_other;
	uint16_t bytes_size, bytes_data;
	uint16_t object_type, type_name;
	uint16_t runtime_finalizing;
};

/* The layout of release version (PY_VERSION_HEX) 3.8 to 3.12. False for others. */
bool python_layout_of(uint32_t version, struct python_layout *layout);

/* The same from the table at the start of _PyRuntime that 3.13 and later describe themselves with.
 * table has `bytes` readable bytes. False when it is none, of another version, or makes no sense.
 */
bool python_layout_read(
	const void *table, uint64_t bytes, uint32_t version, struct python_layout *layout);

#endif
