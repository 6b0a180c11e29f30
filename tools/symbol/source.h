/* Source lines and inlined functions, from the DWARF information of one ELF file. */
#ifndef VRAMTRACE_SYMBOL_SOURCE_H
#define VRAMTRACE_SYMBOL_SOURCE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source;

/* One function at an address. Texts belong to the source. */
struct source_frame {
	const char *function; /* mangled where the language does so; NULL unknown */
	const char *file;     /* NULL unknown */
	unsigned int line;    /* 0 unknown */
};

/* Whether elf has DWARF information of its own. */
bool source_is_in(Elf *elf);

/* Opens the DWARF information of elf, which must live longer. NULL when it has none, or so much in
 * compressed form that reading it would keep the user waiting, or when out of memory. To be closed
 * with source_close. */
struct source *source_open(Elf *elf);
void source_close(struct source *source);

/* The functions at a virtual address of the file, innermost first: inlined ones, then the one they
 * were inlined into. At most n_room; returns how many, 0 when nothing is known there. */
size_t source_find(
	struct source *source, uint64_t address, struct source_frame *frames, size_t n_room);

#endif
