#include "record/native.h"

#include <dlfcn.h>
#include <stdatomic.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "record/options.h"

#define TEXT_OF(name)	    #name
#define SYMBOL_OF(function) TEXT_OF(function)

enum { UNWINDER_NONE, UNWINDER_OPENING, UNWINDER_READY, UNWINDER_MISSING };

static _Atomic int unwinder = UNWINDER_NONE;

/* Of libunwind, by the types of its header. NULL: not there. */
static struct {
	int (*backtrace)(void **buffer, int size);
	int (*get_context)(unw_context_t *context);
	__typeof__(&unw_set_caching_policy) set_caching_policy;
	unw_addr_space_t *local;
	/* For stepping only. */
	__typeof__(&unw_init_local) init_local;
	__typeof__(&unw_step) step;
	__typeof__(&unw_get_reg) get_reg;
	__typeof__(&unw_get_proc_info_by_ip) get_proc_info_by_ip;
} unw;

/* This library's code, from the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

#define FIND(member, function)                                                                     \
	(unw.member = (__typeof__(unw.member))dlsym(library, SYMBOL_OF(function)))

/* A function on x86-64 only. Either way it is for the frame of its caller. */
#ifdef unw_tdep_getcontext
#define FIND_CONTEXT()	     FIND(get_context, unw_tdep_getcontext)
#define GET_CONTEXT(context) unw.get_context(context)
#else
#define FIND_CONTEXT()
#define GET_CONTEXT(context) unw_tdep_getcontext(context)
#endif

static bool open_unwinder(void)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		dlerror(); /* the program is not to hear of it */
		return false;
	}
	FIND(backtrace, unw_backtrace);
	FIND_CONTEXT();
	FIND(set_caching_policy, unw_set_caching_policy);
	FIND(local, unw_local_addr_space);
	FIND(init_local, unw_init_local);
	FIND(step, unw_step);
	FIND(get_reg, unw_get_reg);
	FIND(get_proc_info_by_ip, unw_get_proc_info_by_ip);
	dlerror();
	/* Its caches deadlock against the loader under load; its fast path does not need them. */
	if (unw.set_caching_policy && unw.local)
		unw.set_caching_policy(*unw.local, UNW_CACHE_NONE);
	return unw.backtrace && unw.set_caching_policy && unw.local;
}

void native_prepare(void)
{
	int expected = UNWINDER_NONE;

	if (!options.native_stacks ||
		!atomic_compare_exchange_strong(&unwinder, &expected, UNWINDER_OPENING))
		return;
	atomic_store_explicit(&unwinder, open_unwinder() ? UNWINDER_READY : UNWINDER_MISSING,
		memory_order_release);
}

static int state(void)
{
	return atomic_load_explicit(&unwinder, memory_order_acquire);
}

bool native_is_missing(void)
{
	return state() == UNWINDER_MISSING;
}

static bool is_own(uint64_t address)
{
	return address >= (uintptr_t)__ehdr_start && address < (uintptr_t)etext;
}

size_t native_capture(uint64_t *frames, size_t max, bool *is_cut)
{
	size_t room = max + NATIVE_OWN_FRAMES, n_frames = 0, n;

	*is_cut = false;
	if (state() != UNWINDER_READY)
		return 0;
	n = (size_t)unw.backtrace((void **)frames, (int)room);
	/* Own frames are also in the middle, where the program's call of the runtime comes through.
	 */
	for (size_t i = 0; i < n; i++) {
		if (is_own(frames[i]))
			continue;
		if (n_frames == max) {
			*is_cut = true;
			return n_frames;
		}
		frames[n_frames++] = frames[i];
	}
	*is_cut = n == room;
	return n_frames;
}

size_t native_step(struct native_frame *frames, size_t max)
{
	unw_context_t context;
	unw_cursor_t cursor;
	size_t n = 0;

	if (state() != UNWINDER_READY || !unw.init_local || !unw.step || !unw.get_reg)
		return 0;
	GET_CONTEXT(&context);
	if (unw.init_local(&cursor, &context))
		return 0;
	do {
		unw_word_t address, stack;

		if (unw.get_reg(&cursor, UNW_REG_IP, &address) ||
			unw.get_reg(&cursor, UNW_REG_SP, &stack))
			break;
		frames[n++] = (struct native_frame){address, stack};
	} while (n < max && unw.step(&cursor) > 0);
	return n;
}

bool native_code_around(uint64_t address, uint64_t *start, uint64_t *end)
{
	unw_context_t context;
	unw_proc_info_t info;

	if (state() != UNWINDER_READY || !unw.get_proc_info_by_ip)
		return false;
	GET_CONTEXT(&context);
	if (unw.get_proc_info_by_ip(*unw.local, address, &info, &context) || !info.start_ip)
		return false;
	*start = info.start_ip;
	*end = info.end_ip;
	return *start <= address && address < *end;
}
