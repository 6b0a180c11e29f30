/*
 * One loaded object of this process, read from its dynamic section without asking the loader.
 *
 * Nothing is called here that a sanitizer puts a function of its own before, such as strcmp or
 * dl_iterate_phdr: while it starts, its look-ups come here, and its functions do not work yet.
 */
#ifndef VRAMTRACE_ELF_OBJECT_H
#define VRAMTRACE_ELF_OBJECT_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct object {
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash;
	const uint32_t *sysv_hash;
	const uint16_t *versions; /* one a symbol, NULL: none has any */
	const ElfW(Verneed) * needed_versions;
	ElfW(Addr) bias;
};

/* Fills object from the loader's entry. False when it has no symbols. */
bool object_read(const struct link_map *map, struct object *object);

/* The function (type STT_FUNC) or variable (STT_OBJECT) that the object defines under this name,
 * NULL if none. *bytes becomes its size; bytes may be NULL. */
void *object_find(const struct object *object, const char *name, int type, uint64_t *bytes);

/* Whether the object refers to a name that it does not define; *version becomes the version it
 * wants, NULL if any will do. */
bool object_refers_to(const struct object *object, const char *name, const char **version);

#endif
