/* An ELF file on disk, proven by its build id to be the one that was traced, and the functions in
 * it. */
#ifndef VRAMTRACE_SYMBOL_ELF_FILE_H
#define VRAMTRACE_SYMBOL_ELF_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "symbol/symbol.h"

struct elf_file;
struct source;

/*
 * Opens the file at path if it is an ELF object whose GNU build id is exactly the given one (0
 * bytes: if it has none). *state says what became of it. NULL if it is not to be used, also when
 * out of memory. build_id must live as long. To be closed with elf_file_close.
 */
struct elf_file *elf_file_open(
	const char *path, const void *build_id, size_t build_id_bytes, enum symbol_file *state);
void elf_file_close(struct elf_file *file);

/* The name in the symbol table of the function at a virtual address of the file, mangled as it is
 * there; NULL unknown. Valid until file is closed. The first call reads and sorts the symbol table.
 */
const char *elf_file_function(struct elf_file *file, uint64_t address);

/* Its source lines, or those of its separate debug file, belonging to file; NULL when there are
 * none that can be read in a moment. */
struct source *elf_file_source(struct elf_file *file);

#endif
