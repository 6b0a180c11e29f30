/* Which line a Python instruction belongs to, from the line table of its code object. */
#ifndef VRAMTRACE_SYMBOL_LINES_H
#define VRAMTRACE_SYMBOL_LINES_H

#include <stdint.h>

#include "vramtrace/format.h"

/*
 * The line of the instruction at offset (bytes) in code that begins at first_line, from a table of
 * the kind line_table (enum vt_line_table), as the interpreter itself would say. 0: the instruction
 * belongs to no line, the table does not reach it, or is of no known kind. A function that has not
 * begun, at offset 0, is at its first line. Any bytes are taken.
 */
uint64_t lines_find(
	uint64_t line_table, struct vt_text lines, uint64_t first_line, uint64_t offset);

#endif
