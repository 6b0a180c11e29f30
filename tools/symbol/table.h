/* What the files of this folder share: the modules of a symbol table. */
#ifndef VRAMTRACE_SYMBOL_TABLE_H
#define VRAMTRACE_SYMBOL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "symbol/elf_file.h"
#include "symbol/symbol.h"

struct symbol_module {
	struct symbol_module *next;
	struct elf_file *file; /* NULL: not opened yet, or not to be trusted */
	bool tried;	       /* to open it */
	const char *path;
	const char *name; /* last part of path */
	uint64_t bias;
	uint64_t start;
	uint64_t end;
	uint64_t time_ns;
	size_t order; /* as added; tells modules seen at the same moment apart */
	size_t build_id_bytes;
	unsigned char build_id[];
};

/* The module at address as of time_ns (see symbol_table_resolve), borrowed; NULL when there is
 * none. */
struct symbol_module *symbol_table_find_module(
	struct symbol_table *table, uint64_t address, uint64_t time_ns);

#endif
