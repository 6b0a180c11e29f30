/* Frames of Python: everything about them is in the trace. */
#include <stdlib.h>
#include <string.h>

#include "model/memory.h"
#include "symbol/lines.h"
#include "symbol/table.h"

struct python_code {
	uint64_t code_id;
	const char *function; /* NULL: not known */
	const char *file;
	UT_hash_handle hh;
};

struct python_frame {
	uint64_t key; /* item without VT_PYTHON_ENTRY */
	struct symbol_frame frame;
	UT_hash_handle hh;
};

static const char *keep(struct symbol_table *table, struct vt_text text)
{
	const char *kept;

	if (!text.bytes)
		return NULL;
	kept = symbol_table_keep_text(table, text.data, text.bytes);
	if (!kept)
		memory_exhausted();
	return kept;
}

static const struct python_code *code_of(struct symbol_table *table, const struct model_code *given)
{
	struct python_code *code;

	HASH_FIND(hh, table->python_codes, &given->code_id, sizeof(given->code_id), code);
	if (code)
		return code;
	code = memory_new(1, sizeof(*code));
	code->code_id = given->code_id;
	code->function = keep(table, given->function);
	code->file = keep(table, given->file);
	HASH_ADD(hh, table->python_codes, code_id, sizeof(code->code_id), code);
	return code;
}

const struct symbol_frame *python_frame_get(
	struct symbol_table *table, const struct model *model, uint64_t item)
{
	static const struct symbol_frame lost = {.python = true};
	uint64_t key = item & ~(uint64_t)VT_PYTHON_ENTRY, offset = key & UINT32_MAX;
	const struct model_code *given;
	const struct python_code *code;
	struct python_frame *known;

	HASH_FIND(hh, table->python_frames, &key, sizeof(key), known);
	if (known)
		return &known->frame;
	given = model_code_find(model, key >> 32);
	if (!given)
		return &lost;
	code = code_of(table, given);
	known = memory_new(1, sizeof(*known));
	known->key = key;
	known->frame.python = true;
	known->frame.function = code->function;
	known->frame.file = code->file;
	if (offset == VT_PYTHON_NOT_BEGUN)
		known->frame.line = (unsigned int)given->first_line;
	else if (offset != VT_PYTHON_NO_OFFSET)
		known->frame.line = (unsigned int)lines_find(
			given->line_table, given->lines, given->first_line, offset);
	HASH_ADD(hh, table->python_frames, key, sizeof(known->key), known);
	return &known->frame;
}

void python_release(struct symbol_table *table)
{
	struct python_frame *frame, *next_frame;
	struct python_code *code, *next_code;

	HASH_ITER(hh, table->python_frames, frame, next_frame)
	{
		HASH_DEL(table->python_frames, frame);
		free(frame);
	}
	HASH_ITER(hh, table->python_codes, code, next_code)
	{
		HASH_DEL(table->python_codes, code);
		free(code);
	}
}
