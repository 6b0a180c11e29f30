#include "hooks/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hooks/dl.h"
#include "record/uncovered.h"

/* The declaration a wrapper is checked against must be the one that a look-up by name and version
 * promises. */
#define SUFFIX_NONE
#define SUFFIX_PTDS  _ptds
#define SUFFIX_PTSZ  _ptsz
#define JOIN(a, b)   a##b
#define JOINED(a, b) JOIN(a, b)
#define ROW(export, name, version, stream, family, effect)                                         \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&(export)),                         \
			       JOINED(PFN_##name##_v##version, SUFFIX_##stream)),                  \
		#export " is not what cuGetProcAddress(" #name ", " #version ") gives");
#include "hooks/driver.def"

struct driver driver;

struct row {
	const char *export;
	size_t offset; /* of the original in struct driver */
	void *wrapper; /* NULL: only used */
};

static const struct row rows[] = {
#define ROW(export, name, version, stream, family, effect)                                         \
	{#export, offsetof(struct driver, export), (void *)(export)},
#include "hooks/driver.def"
#define USE(export) {#export, offsetof(struct driver, export), NULL},
#include "hooks/driver_used.def"
};

#define N_ROWS	sizeof(rows) / sizeof(*rows)
#define N_SLOTS 1024u

_Static_assert(N_ROWS * 2 <= N_SLOTS, "the address table would be too full");

/* From an original's address to its row: open addressing, filled without locks, never emptied. */
static struct slot {
	_Atomic uintptr_t address;
	_Atomic uint32_t row;
} slots[N_SLOTS];

static void *_Atomic library_base; /* of libcuda; set when all rows are in place */
static char library_path[4096];
static _Atomic int path_state; /* 0 empty, 1 being filled, 2 valid */

static size_t slot_of(uintptr_t address)
{
	return (address * 0x9e3779b97f4a7c15u) >> 54;
}

_Static_assert(N_SLOTS == 1u << (64 - 54), "slot_of gives ten bits");

static void enter(uintptr_t address, uint32_t row)
{
	size_t i = slot_of(address);

	for (;; i = (i + 1) % N_SLOTS) {
		uintptr_t there = 0;

		if (atomic_compare_exchange_strong(&slots[i].address, &there, address)) {
			atomic_store_explicit(&slots[i].row, row + 1, memory_order_release);
			return;
		}
		if (there == address)
			return;
	}
}

static const struct row *find_row(uintptr_t address)
{
	for (size_t i = slot_of(address);; i = (i + 1) % N_SLOTS) {
		uintptr_t there = atomic_load_explicit(&slots[i].address, memory_order_acquire);
		uint32_t row;

		if (!there)
			return NULL;
		if (there != address)
			continue;
		row = atomic_load_explicit(&slots[i].row, memory_order_acquire);
		return row ? &rows[row - 1] : NULL;
	}
}

static void keep_path(const char *path)
{
	int empty = 0;

	if (!atomic_compare_exchange_strong(&path_state, &empty, 1))
		return;
	strncpy(library_path, path, sizeof(library_path) - 1);
	atomic_store_explicit(&path_state, 2, memory_order_release);
}

/* Takes the entry points of the library behind handle. */
static void resolve(void *handle)
{
	const void *anchor = NULL;
	Dl_info info;

	for (uint32_t i = 0; i < N_ROWS; i++) {
		void *original = dl_real_dlsym(handle, rows[i].export);

		if (!original || original == rows[i].wrapper)
			continue;
		anchor = original;
		if (rows[i].wrapper)
			enter((uintptr_t)original, i);
		atomic_store_explicit((void *_Atomic *)((char *)&driver + rows[i].offset), original,
			memory_order_release);
	}
	dlerror(); /* not the program's: an older driver lacks some */
	if (anchor && dladdr(anchor, &info)) {
		keep_path(info.dli_fname);
		atomic_store_explicit(&library_base, info.dli_fbase, memory_order_release);
	}
}

bool driver_is_known(void)
{
	return atomic_load_explicit(&library_base, memory_order_acquire) != NULL;
}

const char *driver_path(void)
{
	return atomic_load_explicit(&path_state, memory_order_acquire) == 2 ? library_path : "";
}

void driver_find(void)
{
	int saved = errno;
	void *handle;

	if (!driver_is_known()) {
		handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
		/* The reference is kept: the originals must stay where they are. */
		if (handle)
			resolve(handle);
		else
			dlerror(); /* the program is not to hear of it */
	}
	errno = saved;
}

/* A driver opened under a path of its own is recognised by its file name. */
static void find_from(const void *address)
{
	int saved = errno;
	const char *name;
	Dl_info info;
	void *handle;

	if (dladdr(address, &info) && info.dli_fname) {
		name = strrchr(info.dli_fname, '/');
		name = name ? name + 1 : info.dli_fname;
		if (!strncmp(name, "libcuda.so", 10)) {
			handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
			if (handle)
				resolve(handle);
		}
	}
	errno = saved;
}

bool driver_has_row(const char *name)
{
	for (size_t i = 0; i < N_ROWS; i++)
		if (rows[i].wrapper && !strcmp(rows[i].export, name))
			return true;
	return false;
}

bool driver_contains(const void *address)
{
	void *base = atomic_load_explicit(&library_base, memory_order_acquire);
	Dl_info info;

	return base && dladdr(address, &info) && info.dli_fbase == base;
}

void *driver_substitute(const char *name, void *address)
{
	const struct row *row;

	if (!driver_is_known())
		find_from(address);
	row = find_row((uintptr_t)address);
	if (row)
		return row->wrapper;
	if (driver_contains(address))
		uncovered_note(name);
	return address;
}
