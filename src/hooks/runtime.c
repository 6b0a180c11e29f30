#include "hooks/runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "hooks/dl.h"
#include "record/modules.h"

static const char *const names[] = {
#define ROW(export, params, args) #export,
#include "hooks/runtime.def"
};

/*
 * What was found for a caller's page: two objects never share one. A key is page, row and the count
 * of openings at that time, so that what is out of date is never found. It is 0 while a slot is
 * being written.
 */
#define N_SLOTS	    4096u
#define N_WAYS	    4u
#define PAGE_SHIFT  12
#define PAGE_BITS   36
#define ROW_BITS    8
#define OPENED_BITS 20
#define OPENED_MASK ((1u << OPENED_BITS) - 1)

_Static_assert(PAGE_BITS + ROW_BITS + OPENED_BITS == 64, "a key is one word");
_Static_assert(RUNTIME_N_ROWS <= 1 << ROW_BITS, "a row's number has eight bits");

static struct slot {
	_Atomic uint64_t key;
	_Atomic uintptr_t original;
} slots[N_SLOTS];

/* 0: cannot be kept. */
static uint64_t key_of(enum runtime_row row, const void *caller, unsigned int n_opened)
{
	uint64_t page = (uintptr_t)caller >> PAGE_SHIFT;

	if (page >> PAGE_BITS)
		return 0;
	return page << (ROW_BITS + OPENED_BITS) | (uint64_t)row << OPENED_BITS |
	       (n_opened & OPENED_MASK);
}

static struct slot *slot_of(uint64_t key, unsigned int way)
{
	return &slots[(((key >> OPENED_BITS) * 0x9e3779b97f4a7c15u >> 52) + way) % N_SLOTS];
}

static void *recall(uint64_t key)
{
	for (unsigned int way = 0; key && way < N_WAYS; way++) {
		struct slot *slot = slot_of(key, way);
		uintptr_t original;

		if (atomic_load_explicit(&slot->key, memory_order_acquire) != key)
			continue;
		original = atomic_load_explicit(&slot->original, memory_order_acquire);
		if (atomic_load_explicit(&slot->key, memory_order_relaxed) == key)
			return (void *)original;
	}
	return NULL;
}

/* Takes a slot that is free or out of date, or else puts somebody out. */
static void keep(uint64_t key, void *original)
{
	struct slot *slot = NULL;
	uint64_t old = 0;

	if (!key)
		return;
	for (unsigned int way = 0; way < N_WAYS; way++) {
		slot = slot_of(key, way);
		old = atomic_load_explicit(&slot->key, memory_order_relaxed);
		if ((old & OPENED_MASK) != (key & OPENED_MASK))
			break;
	}
	if (!atomic_compare_exchange_strong(&slot->key, &old, 0))
		return;
	atomic_store_explicit(&slot->original, (uintptr_t)original, memory_order_release);
	atomic_store_explicit(&slot->key, key, memory_order_release);
}

struct search {
	char path[4096]; /* "" until a runtime was seen */
};

static int look_at(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	const char *name = strrchr(info->dlpi_name, '/');

	(void)size;
	name = name ? name + 1 : info->dlpi_name;
	if (strncmp(name, "libcudart", 9) || !strchr(".-", name[9]) ||
		strlen(info->dlpi_name) >= sizeof(search->path))
		return 0;
	strcpy(search->path, info->dlpi_name);
	return 1;
}

/* For a caller nothing is known about: any runtime will do. */
static void *find_anywhere(const char *name)
{
	struct search search = {""};
	void *handle, *found;

	if (!dl_iterate_phdr(look_at, &search))
		return NULL;
	handle = dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
	found = handle ? dl_real_dlsym(handle, name) : NULL;
	if (handle)
		dlclose(handle);
	return found;
}

void *runtime_original(enum runtime_row row, const void *caller)
{
	uint64_t key =
		key_of(row, caller, atomic_load_explicit(&modules_n_opened, memory_order_acquire));
	void *original = recall(key);
	int saved = errno;

	if (__builtin_expect(original != NULL, 1))
		return original;
	original = dl_bound_to(names[row], caller);
	if (!original)
		original = find_anywhere(names[row]);
	if (original)
		keep(key, original);
	errno = saved;
	return original;
}

bool runtime_has_row(const char *name)
{
	for (size_t i = 0; i < RUNTIME_N_ROWS; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

const char *runtime_name(enum runtime_row row)
{
	return names[row];
}
