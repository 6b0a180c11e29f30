#include "hooks/torch_find.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "elf/object.h"
#include "record/modules.h"

static const char *const names[] = {
#define ROW(export) #export,
#include "hooks/torch.def"
};

static bool contains(const struct dl_phdr_info *info, uintptr_t address, uintptr_t *end)
{
	bool inside = false;

	*end = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD)
			continue;
		inside = inside || address - start < header->p_memsz;
		if (start + header->p_memsz > *end)
			*end = start + header->p_memsz;
	}
	return inside;
}

static bool read_symbols(const struct dl_phdr_info *info, struct object *object)
{
	struct link_map map = {.l_addr = info->dlpi_addr};

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			map.l_ld = (ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return map.l_ld && object_read(&map, object);
}

static size_t folder_bytes(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Looks for the definition of name beside the caller's file, else for the first. */
struct search {
	const char *name;
	const void *caller;
	const void *own;
	const char *caller_path; /* NULL: not met yet */
	void *found;
};

static bool is_beside(const struct search *search, const char *path)
{
	size_t bytes = folder_bytes(path);

	return search->caller_path && bytes == folder_bytes(search->caller_path) &&
	       !memcmp(path, search->caller_path, bytes);
}

static int look_for_caller(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	uintptr_t end;

	(void)size;
	if (!contains(info, (uintptr_t)search->caller, &end))
		return 0;
	search->caller_path = info->dlpi_name;
	return 1;
}

static int look_for_definition(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	struct object object;
	void *found = NULL;

	(void)size;
	if (read_symbols(info, &object))
		found = object_find(&object, search->name, STT_FUNC, NULL);
	if (!found || found == search->own)
		return 0;
	if (!search->found || is_beside(search, info->dlpi_name))
		search->found = found;
	return is_beside(search, info->dlpi_name);
}

/* What was found for the pages of a few callers, as in runtime.c. */
#define N_WAYS	   4u
#define PAGE_SHIFT 12
#define OPENED	   24
#define BUSY	   1u /* a key that is being written: none has page 0 */

static struct kept {
	_Atomic uint64_t key; /* page and count of openings */
	_Atomic uintptr_t original;
} kept[TORCH_N_ROWS][N_WAYS];

static uint64_t key_of(const void *caller)
{
	uint64_t n_opened = atomic_load_explicit(&modules_n_opened, memory_order_acquire);

	return (uint64_t)(uintptr_t)caller >> PAGE_SHIFT << OPENED |
	       (n_opened & ((1u << OPENED) - 1));
}

static void keep(struct kept *way, uint64_t key, const void *original)
{
	uint64_t old = atomic_load_explicit(&way->key, memory_order_relaxed);

	if (old == BUSY || !atomic_compare_exchange_strong(&way->key, &old, BUSY))
		return;
	atomic_store_explicit(&way->original, (uintptr_t)original, memory_order_release);
	atomic_store_explicit(&way->key, key, memory_order_release);
}

static void *find_original(
	enum torch_row row, const void *own, const void *caller, uint64_t key, struct kept *way)
{
	struct search search = {.name = names[row], .caller = caller, .own = own};
	int saved = errno;

	dl_iterate_phdr(look_for_caller, &search);
	dl_iterate_phdr(look_for_definition, &search);
	keep(way, key, search.found ? search.found : own);
	errno = saved;
	return search.found;
}

void *torch_original(enum torch_row row, const void *own, const void *caller)
{
	uint64_t key = key_of(caller);
	struct kept *way = &kept[row][(key >> OPENED) % N_WAYS];

	if (atomic_load_explicit(&way->key, memory_order_acquire) == key) {
		void *original = (void *)atomic_load_explicit(&way->original, memory_order_acquire);

		if (atomic_load_explicit(&way->key, memory_order_relaxed) == key)
			return original == own ? NULL : original;
	}
	return find_original(row, own, caller, key, way);
}

bool torch_has_row(const char *name)
{
	for (size_t i = 0; i < TORCH_N_ROWS; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

struct look {
	struct torch_library *library;
	const void *caller;
};

static int look_at_library(struct dl_phdr_info *info, size_t size, void *data)
{
	static const char name[] = "_ZN3c104cuda20getCurrentCUDAStreamEa";
	const struct look *look = data;
	struct torch_library *library = look->library;
	struct object object;

	(void)size;
	if (!contains(info, (uintptr_t)look->caller, &library->end))
		return 0;
	library->start = info->dlpi_addr;
	strncpy(library->path, info->dlpi_name, sizeof(library->path) - 1);
	if (read_symbols(info, &object))
		library->current_stream = object_find(&object, name, STT_FUNC, NULL);
	return 1;
}

/* Beside the folder of the library: version.py of the Python package, where the version stands
 * behind `marker`, or build-version of the C++ one, which is the version. */
static void read_version(struct torch_library *library, const char *file, const char *marker)
{
	size_t folder = folder_bytes(library->path), bytes;
	char path[sizeof(library->path) + 32], text[1024];
	const char *at;
	ssize_t n;
	int fd;

	if (!folder || *library->version)
		return;
	snprintf(path, sizeof(path), "%.*s%s", (int)folder, library->path, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, marker);
	if (!at)
		return;
	at += strlen(marker);
	bytes = strcspn(at, "'\n");
	if (bytes < sizeof(library->version))
		memcpy(library->version, at, bytes);
}

/* Before 1.13 the number of a stream was shorter. */
static bool has_known_streams(const char *version)
{
	return version[0] >= '2' && version[0] <= '9' && version[1] == '.';
}

void torch_library_read(struct torch_library *library, const void *caller)
{
	struct look look = {library, caller};

	dl_iterate_phdr(look_at_library, &look);
	read_version(library, "../version.py", "__version__ = '");
	read_version(library, "../build-version", "");
	if (!has_known_streams(library->version))
		library->current_stream = NULL;
}
