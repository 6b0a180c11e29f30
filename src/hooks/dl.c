#include "hooks/dl.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hooks/driver.h"

typedef void *dlsym_function(void *handle, const char *name);
typedef void *dlvsym_function(void *handle, const char *name, const char *version);

static void *_Atomic real_dlsym;
static void *_Atomic real_dlvsym;

/* What a look-up needs of one object, read from its dynamic section. */
struct object {
	const ElfW(Sym) *symbols;
	const char *strings;
	const uint32_t *gnu_hash;
	const uint32_t *sysv_hash;
	ElfW(Addr) bias;
};

/* This library, from the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

/* glibc adds the bias to these values when it loads an object, except where the section is read-only. */
static const void *at(ElfW(Addr) bias, ElfW(Addr) value)
{
	return (const void *)(value < bias ? value + bias : value);
}

static bool read_object(const struct link_map *map, struct object *object)
{
	*object = (struct object){.bias = map->l_addr};
	for (const ElfW(Dyn) *dynamic = map->l_ld; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
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

static void *function_named(const struct object *object, uint32_t index, const char *name)
{
	const ElfW(Sym) *symbol = &object->symbols[index];

	if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
		!is_same(object->strings + symbol->st_name, name))
		return NULL;
	return (void *)(object->bias + symbol->st_value);
}

/* The GNU hash table: header, Bloom filter, buckets, then one hash a symbol whose lowest bit ends a chain. */
static void *find_by_gnu_hash(const struct object *object, const char *name)
{
	const uint32_t n_buckets = object->gnu_hash[0], first = object->gnu_hash[1];
	const uint32_t *buckets = object->gnu_hash + 4 + object->gnu_hash[2] * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chains = buckets + n_buckets;
	uint32_t hash = 5381;
	void *found = NULL;

	for (const char *p = name; *p; p++)
		hash = hash * 33 + (uint8_t)*p;
	for (uint32_t i = n_buckets ? buckets[hash % n_buckets] : 0; i >= first && i && !found; i++) {
		if ((chains[i - first] | 1) == (hash | 1))
			found = function_named(object, i, name);
		if (chains[i - first] & 1)
			break;
	}
	return found;
}

static void *find_in(const struct object *object, const char *name)
{
	void *found = NULL;

	if (object->gnu_hash)
		return find_by_gnu_hash(object, name);
	for (uint32_t i = 1; object->sysv_hash && i < object->sysv_hash[1] && !found; i++)
		found = function_named(object, i, name);
	return found;
}

/*
 * dlvsym cannot be asked for the real dlsym: it is this library's own too. So the symbol tables of the objects behind this library
 * are read. Nothing is called that a sanitizer puts a function of its own before, such as strcmp or dl_iterate_phdr: while it
 * starts, its look-ups come here, and its functions do not work yet.
 */
static void *find_real(void *_Atomic *kept, const char *name)
{
	void *real = atomic_load_explicit(kept, memory_order_acquire);
	struct link_map *map;
	struct object object;
	Dl_info info;

	if (real || !dladdr1(__ehdr_start, &info, (void **)&map, RTLD_DL_LINKMAP))
		return real;
	for (map = map->l_next; map && !real; map = map->l_next)
		if (read_object(map, &object))
			real = find_in(&object, name);
	atomic_store_explicit(kept, real, memory_order_release);
	return real;
}

void *dl_real_dlsym(void *handle, const char *name)
{
	dlsym_function *real = (dlsym_function *)find_real(&real_dlsym, "dlsym");

	return real ? real(handle, name) : NULL;
}

/* cu and a capital: not cublas, cudnn, curl and the rest. */
static bool is_driver_name(const char *name)
{
	return name && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

/* Only an explicit handle gives the same answer whoever asks. A look-up made by the driver itself is its own business. */
static bool is_ours(void *handle, const char *name, const void *caller)
{
	return is_driver_name(name) && handle != RTLD_NEXT && handle != RTLD_DEFAULT && !driver_contains(caller);
}

/* This library exports the driver's names also where no driver is loaded. A program that probes for one must not find it:
 * its look-up is answered as libc would, error text included. */
static bool is_false_find(const char *name)
{
	if (!is_driver_name(name) || !driver_has_row(name))
		return false;
	driver_find();
	return !driver_is_known();
}

static bool is_own(const void *address)
{
	return (const char *)address >= __ehdr_start && (const char *)address < etext;
}

/* The look-up as if this library were not there: the program's own function of that name, or that of an object behind this
 * library, or libc's word that there is none. */
static struct dl_route look_past_us(void *handle, const char *name)
{
	struct dl_route route = {NULL, dl_real_dlsym(handle, name)};
	void *libc;

	if (!route.value || is_own(route.value))
		route.value = dl_real_dlsym(RTLD_NEXT, name);
	if (route.value)
		return route;
	/* libc stays loaded whatever is closed; closing it later would clear the error that the look-up leaves. */
	libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	if (libc && !dlclose(libc))
		route.value = dl_real_dlsym(libc, name);
	return route;
}

/* What to answer for an explicit handle, given what the real function found. */
static struct dl_route answer(const char *name, void *found)
{
	if (found && is_own(found) && is_false_find(name))
		return look_past_us(RTLD_NEXT, name);
	return (struct dl_route){NULL, found ? driver_substitute(name, found) : NULL};
}

struct dl_route dl_route_dlsym(void *handle, const char *name, const void *caller)
{
	dlsym_function *real = (dlsym_function *)find_real(&real_dlsym, "dlsym");

	if ((handle == RTLD_DEFAULT || handle == RTLD_NEXT) && is_false_find(name))
		return look_past_us(handle, name);
	if (!real || !is_ours(handle, name, caller))
		return (struct dl_route){(void *)real, NULL};
	return answer(name, real(handle, name));
}

struct dl_route dl_route_dlvsym(void *handle, const char *name, const void *caller, const char *version)
{
	dlvsym_function *real = (dlvsym_function *)find_real(&real_dlvsym, "dlvsym");

	if ((handle == RTLD_DEFAULT || handle == RTLD_NEXT) && is_false_find(name))
		return look_past_us(handle, name);
	if (!real || !is_ours(handle, name, caller))
		return (struct dl_route){(void *)real, NULL};
	return answer(name, real(handle, name, version));
}
