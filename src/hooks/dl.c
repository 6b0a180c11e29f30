#include "hooks/dl.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "elf/object.h"
#include "hooks/driver.h"
#include "hooks/runtime.h"
#include "hooks/torch_find.h"
#include "record/modules.h"
#include "record/notes.h"
#include "record/options.h"
#include "record/session.h"
#include "record/unwind/unwind.h"

typedef void *dlsym_function(void *handle, const char *name);
typedef void *dlvsym_function(void *handle, const char *name, const char *version);
typedef int dlclose_function(void *handle);

static void *_Atomic real_dlsym;
static void *_Atomic real_dlvsym;
static void *_Atomic real_dlopen;
static void *_Atomic real_dlclose;

/* This library, from the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

/*
 * dlvsym cannot be asked for the real dlsym: it is this library's own too. So the symbol tables of
 * the objects behind this library are read, with no function that a sanitizer replaces: see
 * object.h.
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
		if (object_read(map, &object))
			real = object_find(&object, name, STT_FUNC, NULL);
	atomic_store_explicit(kept, real, memory_order_release);
	return real;
}

void *dl_real_dlsym(void *handle, const char *name)
{
	dlsym_function *real = (dlsym_function *)find_real(&real_dlsym, "dlsym");

	return real ? real(handle, name) : NULL;
}

static void *dl_real_dlvsym(void *handle, const char *name, const char *version)
{
	dlvsym_function *real = (dlvsym_function *)find_real(&real_dlvsym, "dlvsym");

	return real ? real(handle, name, version) : NULL;
}

/* cu and a capital: not cublas, cudnn, curl and the rest. */
static bool is_driver_name(const char *name)
{
	return name && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

/* Told apart here, before other files are called: what a sanitizer asks for while it starts is none
 * of these. */
static bool is_runtime_name(const char *name)
{
	return name && name[0] == 'c' && name[1] == 'u' && name[2] == 'd' && name[3] == 'a' &&
	       name[4] >= 'A' && name[4] <= 'Z';
}

/* Mangled names of c10 and at::cuda. */
static bool is_torch_name(const char *name)
{
	return name && name[0] == '_' && name[1] == 'Z' && name[2] == 'N' &&
	       ((name[3] == '3' && name[4] == 'c') || (name[3] == '2' && name[4] == 'a'));
}

/* Only an explicit handle gives the same answer whoever asks. A look-up made by the driver itself
 * is its own business. */
static bool is_ours(void *handle, const char *name, const void *caller)
{
	return handle != RTLD_NEXT && handle != RTLD_DEFAULT &&
	       (is_runtime_name(name) || is_torch_name(name) ||
		       (is_driver_name(name) && !driver_contains(caller)));
}

static bool is_own(const void *address)
{
	return (const char *)address >= __ehdr_start && (const char *)address < etext;
}

/* This library exports names of the driver, the runtime and PyTorch also where none of these is
 * loaded, or none that the caller could see. A program that probes for one must not find it: its
 * look-up is answered as libc would, error text included. */
static bool is_false_find(const char *name, const void *caller)
{
	return ((is_runtime_name(name) && runtime_has_row(name)) ||
		       (is_driver_name(name) && driver_has_row(name)) ||
		       (is_torch_name(name) && torch_has_row(name))) &&
	       !dl_bound_to(name, caller);
}

static void *real_find(void *handle, const char *name, const char *version)
{
	return version ? dl_real_dlvsym(handle, name, version) : dl_real_dlsym(handle, name);
}

/* The look-up as if this library were not there: the program's own function of that name, or that
 * of an object behind this library, or libc's word that there is none. */
static struct dl_route look_past_us(void *handle, const char *name, const char *version)
{
	struct dl_route route = {NULL, real_find(handle, name, version)};
	void *libc;

	if (!route.value || is_own(route.value))
		route.value = real_find(RTLD_NEXT, name, version);
	if (route.value)
		return route;
	/* libc stays loaded whatever is closed; closing it later would clear the error that the
	 * look-up leaves. */
	libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	if (libc && !dlclose(libc))
		route.value = real_find(libc, name, version);
	return route;
}

/* What to answer for an explicit handle, given what the real function found. A runtime's own
 * function stays what it is. */
static struct dl_route answer(
	const char *name, const char *version, void *found, const void *caller)
{
	if (found && is_own(found) && is_false_find(name, caller))
		return look_past_us(RTLD_NEXT, name, version);
	return (struct dl_route){
		NULL, found && is_driver_name(name) ? driver_substitute(name, found) : found};
}

struct dl_route dl_route_dlsym(void *handle, const char *name, const void *caller)
{
	dlsym_function *real = (dlsym_function *)find_real(&real_dlsym, "dlsym");

	if ((handle == RTLD_DEFAULT || handle == RTLD_NEXT) && is_false_find(name, caller))
		return look_past_us(handle, name, NULL);
	if (!real || !is_ours(handle, name, caller))
		return (struct dl_route){(void *)real, NULL};
	return answer(name, NULL, real(handle, name), caller);
}

struct dl_route dl_route_dlvsym(
	void *handle, const char *name, const void *caller, const char *version)
{
	dlvsym_function *real = (dlvsym_function *)find_real(&real_dlvsym, "dlvsym");

	if ((handle == RTLD_DEFAULT || handle == RTLD_NEXT) && is_false_find(name, caller))
		return look_past_us(handle, name, version);
	if (!real || !is_ours(handle, name, caller))
		return (struct dl_route){(void *)real, NULL};
	return answer(name, version, real(handle, name, version), caller);
}

struct dl_route dl_route_dlopen(int mode)
{
	if (!(mode & RTLD_NOLOAD))
		atomic_fetch_add_explicit(&modules_n_opened, 1, memory_order_release);
	if (mode & RTLD_DEEPBIND && session_is_possible()) {
		notes_say(options.keep_deepbind ? NOTE_DEEPBIND_KEPT : NOTE_DEEPBIND_CLEARED);
		if (!options.keep_deepbind)
			mode &= ~RTLD_DEEPBIND;
	}
	return (struct dl_route){find_real(&real_dlopen, "dlopen"), (void *)(intptr_t)mode};
}

/* Nothing depends on who calls it. */
__attribute__((visibility("default"))) int dlclose(void *handle)
{
	dlclose_function *real = (dlclose_function *)find_real(&real_dlclose, "dlclose");
	struct unwind_unload unload;
	int result;

	if (!real)
		return -1;
	unwind_unload_begin(&unload);
	result = real(handle);
	unwind_unload_end(&unload);
	return result;
}

/* As the object holding caller sees the name in its own scope, this library left out. */
static void *find_in_scope(const struct link_map *map, const char *name, const char *version)
{
	void *handle = dlopen(*map->l_name ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
	void *found;

	if (!handle)
		return NULL;
	found = real_find(handle, name, version);
	dlclose(handle);
	return is_own(found) ? NULL : found;
}

static void *find_behind_us(const char *name, const char *version)
{
	void *found = real_find(RTLD_NEXT, name, version);

	return is_own(found) ? NULL : found;
}

void *dl_bound_to(const char *name, const void *caller)
{
	const char *version = NULL;
	struct link_map *map;
	struct object object;
	bool refers;
	void *found;
	Dl_info info;

	if (!dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP))
		return find_behind_us(name, NULL);
	/* The loader binds a reference in the global scope first, and there only to the version it
	 * wants. Whoever got the name some other way, through a pointer or by a tail call, most
	 * likely means its own. */
	refers = object_read(map, &object) && object_refers_to(&object, name, &version);
	found = refers ? find_behind_us(name, version) : find_in_scope(map, name, NULL);
	if (!found)
		found = refers ? find_in_scope(map, name, version) : find_behind_us(name, NULL);
	/* The program is not to hear of look-ups that were not its own. */
	dlerror();
	return found;
}
