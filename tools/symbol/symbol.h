/*
 * From addresses of the traced process to names: address -> module as of a moment -> function ->
 * file and line; stack.h makes whole stacks of them, Python's frames included. The files named by
 * the trace are read where they lie and only when their build id is the recorded one; everything
 * else degrades to module and offset. Nothing here fails for a missing file.
 */
#ifndef VRAMTRACE_SYMBOL_SYMBOL_H
#define VRAMTRACE_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vramtrace/error.h"
#include "vramtrace/format.h"

/* One frame of a call stack. Texts belong to the symbol table. */
struct symbol_frame {
	const char *function;	 /* demangled, without parameters; NULL unknown */
	const char *file;	 /* source file; NULL unknown */
	unsigned int line;	 /* 0 unknown */
	const char *module;	 /* path of the object; NULL unknown */
	const char *module_name; /* last part of the path; NULL unknown */
	uint64_t offset;  /* of the call, as a virtual address in the module's ELF file; 0 without a
			     module */
	uint64_t address; /* the return address, as recorded */
	bool python;	  /* a Python frame: function, file and line are the interpreter's */
};

struct symbol_table;

/* An empty table, to be freed with symbol_table_free; NULL when out of memory. A table is for one
 * thread at a time. */
struct symbol_table *symbol_table_new(void);

/* Frees table and every frame and text it handed out. NULL is allowed. */
void symbol_table_free(struct symbol_table *table);

/* Adds a module of the trace (copied). Returns 0 or VT_E_NO_MEMORY, after which the table is as it
 * was. */
int symbol_table_add_module(struct symbol_table *table, const struct vt_rec_module *module);

/*
 * The frames of one return address, looked up one byte before it, where the call was. More than one
 * when functions were inlined there. A module is taken as of time_ns: of those that hold the
 * address, the last one first seen at or before it, else the earliest one seen later. Returns the
 * number of frames, at least 1, and sets *frames, innermost first: borrowed, valid until table is
 * freed. Out of memory gives one frame with nothing but the address, valid until the next call.
 */
size_t symbol_table_resolve(struct symbol_table *table, uint64_t return_address, uint64_t time_ns,
	const struct symbol_frame **frames);

/*
 * Gives the answer for one return address as of time_ns (as symbol_table_resolve takes them)
 * beforehand, from a trace that brings its symbols along: symbol_table_resolve then returns it
 * without looking at any file. function, file and line of the n frames, innermost first, are copied
 * with their texts; module, offset and address follow from the modules, which must all have been
 * added. n 0: nothing is known of the address but its module. An answer that is already there
 * stays. Returns 0 or VT_E_NO_MEMORY, after which the table answers as before.
 */
int symbol_table_add_resolved(struct symbol_table *table, uint64_t return_address, uint64_t time_ns,
	const struct symbol_frame *frames, size_t n);

/* What became of the file of a module when names were wanted from it. */
enum symbol_file {
	SYMBOL_FILE_UNTRIED,
	SYMBOL_FILE_NONE, /* it never had one: [vdso] */
	SYMBOL_FILE_USED,
	SYMBOL_FILE_MISSING, /* not here, or not to be read */
	SYMBOL_FILE_CHANGED, /* replaced or deleted since it was recorded: not used */
};

/* The paths of modules whose file is in this state so far, the first n_room of them, each once.
 * Returns how many there are. Borrowed from table. */
size_t symbol_table_files(const struct symbol_table *table, enum symbol_file state,
	const char **paths, size_t n_room);

#endif
