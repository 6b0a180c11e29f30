#include "python/python.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "elf/object.h"
#include "python/memory.h"

enum {
	THREAD_STATE,
	GET_VERSION,
	EVAL,
	CODE_TYPE,
	TEXT_TYPE,
	BYTES_TYPE,
	VERSION,
	RUNTIME,
	N_SYMBOLS
};

static const struct {
	const char *name;
	int type;
} wanted[N_SYMBOLS] = {
	[THREAD_STATE] = {"PyGILState_GetThisThreadState", STT_FUNC},
	[GET_VERSION] = {"Py_GetVersion", STT_FUNC},
	[EVAL] = {"_PyEval_EvalFrameDefault", STT_FUNC},
	[CODE_TYPE] = {"PyCode_Type", STT_OBJECT},
	[TEXT_TYPE] = {"PyUnicode_Type", STT_OBJECT},
	[BYTES_TYPE] = {"PyBytes_Type", STT_OBJECT},
	[VERSION] = {"Py_Version", STT_OBJECT}, /* since 3.11 */
	[RUNTIME] = {"_PyRuntime", STT_OBJECT},
};

struct symbols {
	void *at[N_SYMBOLS];
	uint64_t bytes[N_SYMBOLS];
};

/*
 * The loader's list is in the order in which it binds names, and this also sees what was opened
 * with RTLD_LOCAL. dlsym would wait for the lock that another thread holds while it runs
 * constructors: these may well wait for a lock of the CUDA libraries that this thread holds.
 */
static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct link_map map = {.l_addr = info->dlpi_addr};
	struct symbols *symbols = data;
	struct object object;

	(void)size;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			map.l_ld = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	if (!object_read(&map, &object))
		return 0;
	for (unsigned int i = 0; i < N_SYMBOLS; i++)
		if (!symbols->at[i])
			symbols->at[i] = object_find(
				&object, wanted[i].name, wanted[i].type, &symbols->bytes[i]);
	return 0;
}

/* A library that is closed later must not take the functions with it. Waits until it is loaded to
 * the end, too. */
static void keep_loaded(const void *function)
{
	struct link_map *map;
	Dl_info info;

	if (!dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP) || !*map->l_name)
		return;
	if (!dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE))
		dlerror(); /* the program is not to hear of it */
}

static uint32_t version_of(const struct symbols *symbols)
{
	const char *(*get_version)(void) = (const char *(*)(void))symbols->at[GET_VERSION];
	unsigned int major = 0, minor = 0, micro = 0;

	if (symbols->at[VERSION])
		return (uint32_t)memory_word((uint64_t)(uintptr_t)symbols->at[VERSION]);
	if (!get_version || sscanf(get_version(), "%u.%u.%u", &major, &minor, &micro) < 2)
		return 0;
	return major << 24 | minor << 16 | micro << 8 | 0xf0;
}

static bool refuse(struct python *python, const char *why)
{
	snprintf(python->reason, sizeof(python->reason), "%s", why);
	return false;
}

/* Fills in the layout. */
static bool can_read(struct python *python, const struct symbols *symbols)
{
	uint32_t major = python->version >> 24, minor = python->version >> 16 & 0xff;
	uint64_t name;

	if (major != 3 || minor < PYTHON_OLDEST || minor > PYTHON_NEWEST) {
		snprintf(python->reason, sizeof(python->reason),
			"frames of Python %u.%u are not known to this version, only 3.%u to 3.%u",
			major, minor, PYTHON_OLDEST, PYTHON_NEWEST);
		return false;
	}
	for (unsigned int i = 0; i < N_SYMBOLS; i++)
		if (!symbols->at[i] && i != VERSION && i != EVAL)
			return refuse(python, "the interpreter does not export what is needed");
	if (!python_layout_of(python->version, &python->layout) &&
		!python_layout_read(symbols->at[RUNTIME], symbols->bytes[RUNTIME], python->version,
			&python->layout))
		return refuse(python, "the interpreter does not describe itself as expected");
	/* Builds that trace references have larger objects. */
	name = memory_word(python->code_type + python->layout.type_name);
	if (!memory_is_mapped(name, sizeof("code")) ||
		strcmp((const char *)(uintptr_t)name, "code") != 0)
		return refuse(python, "an unusual build: its objects are laid out differently");
	return true;
}

bool python_find(struct python *python)
{
	struct symbols symbols = {0};

	*python = (struct python){0};
	dl_iterate_phdr(visit, &symbols);
	if (!symbols.at[THREAD_STATE])
		return false;
	keep_loaded(symbols.at[THREAD_STATE]);
	python->thread_state = (void *(*)(void))symbols.at[THREAD_STATE];
	python->runtime = (uint64_t)(uintptr_t)symbols.at[RUNTIME];
	python->code_type = (uint64_t)(uintptr_t)symbols.at[CODE_TYPE];
	python->text_type = (uint64_t)(uintptr_t)symbols.at[TEXT_TYPE];
	python->bytes_type = (uint64_t)(uintptr_t)symbols.at[BYTES_TYPE];
	python->eval_start = (uint64_t)(uintptr_t)symbols.at[EVAL];
	python->eval_end = python->eval_start + symbols.bytes[EVAL];
	python->version = version_of(&symbols);
	python->is_usable = can_read(python, &symbols);
	return true;
}
