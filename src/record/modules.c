#include "record/modules.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include "record/session.h"
#include "record/table.h"
#include "trace/writer.h"

struct module {
	struct module_key {
		uint64_t bias;
		uint64_t end;
	} key;
	uint64_t scan; /* last scan that saw it: a gap means that it was unloaded in between */
	UT_hash_handle hh;
};

/* All of it is touched only inside dl_iterate_phdr's callback, under the loader's lock. */
static struct {
	struct arena arena;
	struct module *modules;
	uint64_t n_scans;
	unsigned long long adds, subs;
} known;

_Atomic unsigned int modules_n_opened;

struct scan {
	struct vt_lane *lane;
	uint64_t time_ns;
	bool first;
	bool unchanged;
};

static struct vt_text find_build_id(const struct dl_phdr_info *info)
{
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const char *p = (const char *)(info->dlpi_addr + segment->p_vaddr);
		const char *end = p + segment->p_memsz;

		if (segment->p_type != PT_NOTE)
			continue;
		while ((size_t)(end - p) >= sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *note = (const void *)p;
			size_t name = (note->n_namesz + 3u) & ~3u,
			       bytes = (note->n_descsz + 3u) & ~3u;
			const char *desc = p + sizeof(*note) + name;

			if ((size_t)(end - p) < sizeof(*note) + name + bytes)
				break;
			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
				!memcmp(note + 1, "GNU", 4))
				return (struct vt_text){desc, note->n_descsz};
			p = desc + bytes;
		}
	}
	return (struct vt_text){NULL, 0};
}

static void find_range(const struct dl_phdr_info *info, uint64_t *start, uint64_t *end)
{
	*start = UINT64_MAX;
	*end = 0;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uint64_t first = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD)
			continue;
		if (first < *start)
			*start = first;
		if (first + segment->p_memsz > *end)
			*end = first + segment->p_memsz;
	}
}

/* True when the module is new, or new again at its old place. */
static bool note_module(uint64_t bias, uint64_t end)
{
	struct arena *arena = &known.arena;
	struct module_key key = {bias, end};
	struct module *module;
	bool added = true, is_new;

	HASH_FIND(hh, known.modules, &key, sizeof(key), module);
	if (!module) {
		module = arena_alloc_forever(arena, sizeof(*module));
		if (!module)
			return true;
		module->key = key;
		module->scan = 0;
		HASH_ADD(hh, known.modules, key, sizeof(key), module);
		if (!added)
			return true;
	}
	is_new = module->scan != known.n_scans - 1 || !module->scan;
	module->scan = known.n_scans;
	return is_new;
}

static const char *program_path(char *out, size_t size)
{
	ssize_t bytes = readlink("/proc/self/exe", out, size - 1);

	out[bytes > 0 ? bytes : 0] = '\0';
	return out;
}

/* The loader keeps the name it was given, which may count on the folder of that moment. */
static const char *absolute_path(const char *path, char *out, size_t size)
{
	size_t bytes;

	if (!getcwd(out, size))
		return path;
	bytes = strlen(out);
	if (bytes + strlen(path) + 2 > size)
		return path;
	out[bytes] = '/';
	strcpy(out + bytes + 1, path);
	return out;
}

static void write_module(
	const struct scan *scan, const struct dl_phdr_info *info, uint64_t start, uint64_t end)
{
	struct vt_rec_module record = {
		.time_ns = scan->time_ns, .bias = info->dlpi_addr, .start = start, .end = end};
	const char *path = info->dlpi_name;
	char absolute[4096];

	if (!path || !*path)
		path = program_path(absolute, sizeof(absolute));
	else if (*path != '/' && strchr(path, '/'))
		path = absolute_path(path, absolute, sizeof(absolute));
	record.path = (struct vt_text){path, strlen(path)};
	record.build_id = find_build_id(info);
	vt_put_module(scan->lane, &record);
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct scan *scan = data;
	uint64_t start, end;

	(void)size;
	if (scan->first) {
		scan->first = false;
		scan->unchanged = known.n_scans && info->dlpi_adds == known.adds &&
				  info->dlpi_subs == known.subs;
		if (scan->unchanged)
			return 1;
		known.adds = info->dlpi_adds;
		known.subs = info->dlpi_subs;
		known.n_scans++;
	}
	find_range(info, &start, &end);
	if (start < end && note_module(info->dlpi_addr, end))
		write_module(scan, info, start, end);
	return 0;
}

void modules_update(struct vt_lane *lane, uint64_t time_ns)
{
	struct scan scan = {.lane = lane, .time_ns = time_ns, .first = true};

	dl_iterate_phdr(visit, &scan);
}

void modules_forget(void)
{
	memset(&known, 0, sizeof(known));
}
