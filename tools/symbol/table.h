/* What the files of this folder share: the inside of a symbol table. */
#ifndef VRAMTRACE_SYMBOL_TABLE_H
#define VRAMTRACE_SYMBOL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "symbol/elf_file.h"
#include "symbol/span.h"
#include "symbol/stack.h"
#include "symbol/symbol.h"

struct symbol_module {
	struct symbol_module *next;
	struct elf_file *file; /* NULL: not opened yet, or not to be trusted */
	enum symbol_file state;
	bool interpreter; /* holds the evaluation loop of Python */
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

/* The texts of one code object of Python, and one place in it. */
struct python_code;
struct python_frame;
/* A stack of which every frame is resolved. */
struct known_stack;
/* The frames of one address in one module. */
struct resolved;
/* A text owned by the table. */
struct text;

struct symbol_table {
	struct symbol_module *modules; /* newest first */
	size_t n_modules;
	struct span_list spans;	 /* what: the module */
	bool indexed;		 /* spans is sorted */
	struct resolved **cache; /* open addressing; n_slots is a power of two, at most 3/4 full */
	size_t n_slots;
	size_t n_resolved;
	struct text *texts;
	struct symbol_frame unknown; /* handed out when memory is short */
	struct python_code *python_codes;
	struct python_frame *python_frames;
	struct known_stack *stacks;
	struct span_list evals; /* the model's ranges of the evaluation loop */
	size_t n_evals;		/* as many of them as the model had */
};

/* The module at address as of time_ns (see symbol_table_resolve), borrowed; NULL when there is
 * none. */
struct symbol_module *symbol_table_find_module(
	struct symbol_table *table, uint64_t address, uint64_t time_ns);

/* A copy of a text, which ends at its first zero byte at the latest, kept as long as the table;
 * NULL when out of memory. */
const char *symbol_table_keep_text(struct symbol_table *table, const char *data, size_t bytes);

/* Who code of module belongs to, see symbol_stack_owner; NULL when its caller decides. */
const char *owner_of_module(const struct symbol_module *module);

/* Whether a file is of an installed Python package; of Python's standard library; or Python source
 * of the program itself: neither, nor generated, nor what starts a package's command. */
bool owner_is_package(const char *file);
bool owner_is_standard(const char *file);
bool owner_is_users_source(const char *file);

/* Whether code of module is the Python interpreter's own. */
bool owner_is_interpreter(const struct symbol_module *module);

/* Whether module is the C library. */
bool owner_is_libc(const struct symbol_module *module);

/* One frame of Python, of an item of stack.python; borrowed from the table. */
const struct symbol_frame *python_frame_get(
	struct symbol_table *table, const struct model *model, uint64_t item);

/* Frees what python_frame_get and symbol_stack_get made. */
void python_release(struct symbol_table *table);
void stack_release_all(struct symbol_table *table);

#endif
