#include "record/stack.h"

#include <dlfcn.h>
#include <stdatomic.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "record/options.h"

/* Frames of the recorder itself, which are left out. */
#define OWN_FRAMES 12u

#define TEXT_OF(name)	    #name
#define SYMBOL_OF(function) TEXT_OF(function)

typedef int backtrace_function(void **buffer, int size);
typedef int set_caching_function(unw_addr_space_t space, unw_caching_policy_t policy);

enum { UNWINDER_NONE, UNWINDER_OPENING, UNWINDER_READY, UNWINDER_MISSING };

static _Atomic int unwinder = UNWINDER_NONE;
static backtrace_function *backtrace_of;

/* This library's code, from the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static bool open_unwinder(void)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	set_caching_function *set_caching;
	unw_addr_space_t *space;

	if (!library) {
		dlerror(); /* the program is not to hear of it */
		return false;
	}
	backtrace_of = (backtrace_function *)dlsym(library, "unw_backtrace");
	set_caching = (set_caching_function *)dlsym(library, SYMBOL_OF(unw_set_caching_policy));
	space = dlsym(library, SYMBOL_OF(unw_local_addr_space));
	/* Its caches deadlock against the loader under load; its fast path does not need them. */
	if (set_caching && space)
		set_caching(*space, UNW_CACHE_NONE);
	return backtrace_of && set_caching && space;
}

void stack_prepare(void)
{
	int expected = UNWINDER_NONE;

	if (!options.native_stacks ||
		!atomic_compare_exchange_strong(&unwinder, &expected, UNWINDER_OPENING))
		return;
	atomic_store_explicit(&unwinder, open_unwinder() ? UNWINDER_READY : UNWINDER_MISSING,
		memory_order_release);
}

const char *stack_problem(void)
{
	if (!options.native_stacks)
		return "stacks were turned off by VRAMTRACE_STACK";
	if (atomic_load_explicit(&unwinder, memory_order_acquire) == UNWINDER_MISSING)
		return "no stacks: libunwind.so.8 was not found; install libunwind8 or put it "
		       "beside libvramtrace.so";
	return NULL;
}

static bool is_own(const void *address)
{
	return (const char *)address >= __ehdr_start && (const char *)address < etext;
}

size_t stack_capture(uint64_t *frames, size_t max)
{
	void *buffer[OPTIONS_MAX_DEPTH + OWN_FRAMES];
	size_t n_frames = 0;
	int n;

	if (atomic_load_explicit(&unwinder, memory_order_acquire) != UNWINDER_READY)
		return 0;
	n = backtrace_of(buffer, (int)(max + OWN_FRAMES));
	/* Own frames are also in the middle, where the program's call of the runtime comes through.
	 */
	for (int i = 0; i < n && n_frames < max; i++)
		if (!is_own(buffer[i]))
			frames[n_frames++] = (uint64_t)(uintptr_t)buffer[i];
	return n_frames;
}
