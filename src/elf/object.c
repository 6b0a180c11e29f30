#include "elf/object.h"

#include <elf.h>
#include <stddef.h>

/* glibc adds the bias to these values when it loads an object, except where the section is
 * read-only. */
static const void *at(ElfW(Addr) bias, ElfW(Addr) value)
{
	return (const void *)(value < bias ? value + bias : value);
}

bool object_read(const struct link_map *map, struct object *object)
{
	*object = (struct object){.bias = map->l_addr};
	for (const ElfW(Dyn) *dynamic = map->l_ld; dynamic && dynamic->d_tag != DT_NULL;
		dynamic++) {
		const void *value = at(map->l_addr, dynamic->d_un.d_ptr);

		switch (dynamic->d_tag) {
		case DT_SYMTAB:
			object->symbols = value;
			break;
		case DT_STRTAB:
			object->strings = value;
			break;
		case DT_GNU_HASH:
			object->gnu_hash = value;
			break;
		case DT_HASH:
			object->sysv_hash = value;
			break;
		case DT_VERSYM:
			object->versions = value;
			break;
		case DT_VERNEED:
			object->needed_versions = value;
			break;
		default:
			break;
		}
	}
	return object->symbols && object->strings;
}

static bool is_same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static bool defines(const struct object *object, uint32_t index, const char *name, int type)
{
	const ElfW(Sym) *symbol = &object->symbols[index];

	return symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == type &&
	       is_same(object->strings + symbol->st_name, name);
}

/* The GNU hash table: header, Bloom filter, buckets, then one hash a symbol whose lowest bit ends a
 * chain. */
static uint32_t find_by_gnu_hash(const struct object *object, const char *name, int type)
{
	const uint32_t n_buckets = object->gnu_hash[0], first = object->gnu_hash[1];
	const uint32_t *buckets =
		object->gnu_hash + 4 + object->gnu_hash[2] * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chains = buckets + n_buckets;
	uint32_t hash = 5381;

	for (const char *p = name; *p; p++)
		hash = hash * 33 + (uint8_t)*p;
	for (uint32_t i = n_buckets ? buckets[hash % n_buckets] : 0; i >= first && i; i++) {
		if ((chains[i - first] | 1) == (hash | 1) && defines(object, i, name, type))
			return i;
		if (chains[i - first] & 1)
			break;
	}
	return 0;
}

static uint32_t find_by_reading_all(const struct object *object, const char *name, int type)
{
	for (uint32_t i = 1; object->sysv_hash && i < object->sysv_hash[1]; i++)
		if (defines(object, i, name, type))
			return i;
	return 0;
}

void *object_find(const struct object *object, const char *name, int type, uint64_t *bytes)
{
	uint32_t i = object->gnu_hash ? find_by_gnu_hash(object, name, type)
				      : find_by_reading_all(object, name, type);

	if (!i)
		return NULL;
	if (bytes)
		*bytes = object->symbols[i].st_size;
	return (void *)(object->bias + object->symbols[i].st_value);
}

/* Symbols that are only referred to stand before the first that is hashed. */
static uint32_t end_of_references(const struct object *object)
{
	if (object->gnu_hash && object->gnu_hash[0])
		return object->gnu_hash[1];
	return object->sysv_hash ? object->sysv_hash[1] : 0;
}

static const char *version_wanted(const struct object *object, uint32_t index)
{
	const char *need = (const char *)object->needed_versions;
	uint16_t wanted = object->versions ? object->versions[index] & 0x7fff : 0;

	while (need && wanted > VER_NDX_GLOBAL) {
		const ElfW(Verneed) *file = (const ElfW(Verneed) *)need;
		const char *aux = need + file->vn_aux;

		for (unsigned int i = 0; i < file->vn_cnt; i++) {
			const ElfW(Vernaux) *version = (const ElfW(Vernaux) *)aux;

			if (version->vna_other == wanted)
				return object->strings + version->vna_name;
			aux += version->vna_next;
		}
		need = file->vn_next ? need + file->vn_next : NULL;
	}
	return NULL;
}

bool object_refers_to(const struct object *object, const char *name, const char **version)
{
	uint32_t end = end_of_references(object);

	for (uint32_t i = 1; i < end; i++) {
		const ElfW(Sym) *symbol = &object->symbols[i];

		if (symbol->st_shndx != SHN_UNDEF ||
			!is_same(object->strings + symbol->st_name, name))
			continue;
		*version = version_wanted(object, i);
		return true;
	}
	return false;
}
