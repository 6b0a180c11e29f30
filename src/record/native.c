#include "record/native.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "record/session.h"
#include "record/unwind/unwind.h"
#include "trace/writer.h"

#define TEXT_OF(name)	    #name
#define SYMBOL_OF(function) TEXT_OF(function)

#define MAX_STEPS (OPTIONS_MAX_DEPTH + 1 + NATIVE_OWN_FRAMES)

/* Of the compared stacks, one in so many is also compared with unw_step, which takes a hundred
 * times as long (eight calls of the kernel for each frame): after the first ones hardly any but
 * those that had to be walked. So many differences are shown. */
#define STEP_EVERY	 16u
#define STEP_EVERY_LATER 2048u
#define N_FIRST		 10000u
#define SAID_DIFFERENCES 5u

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

/* With VRAMTRACE_UNWINDER=check. */
static struct {
	_Atomic uint64_t n_captures, n_delegated, n_differences;
} checked;

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

static size_t ask_libunwind(uint64_t *frames, size_t max);

static bool prepare(void)
{
	const struct unwind_setup setup = {.fallback = ask_libunwind,
		.max_frames = options.depth + 1,
		.own_start = (uintptr_t)__ehdr_start,
		.own_end = (uintptr_t)etext};

	if (!open_unwinder())
		return false;
	if (options.unwinder != OPTIONS_UNWINDER_LIBUNWIND)
		unwind_init(&setup);
	return true;
}

void native_prepare(void)
{
	int expected = UNWINDER_NONE;

	if (!options.native_stacks ||
		!atomic_compare_exchange_strong(&unwinder, &expected, UNWINDER_OPENING))
		return;
	atomic_store_explicit(
		&unwinder, prepare() ? UNWINDER_READY : UNWINDER_MISSING, memory_order_release);
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

/* Adds one that is not the recorder's own. Those are also in the middle, where the program's call
 * of the runtime comes through. */
static size_t add_other(uint64_t *frames, size_t n_frames, size_t max, uint64_t address)
{
	if (n_frames < max && !is_own(address))
		frames[n_frames++] = address;
	return n_frames;
}

static size_t ask_backtrace(uint64_t *frames, size_t max)
{
	void *buffer[MAX_STEPS];
	int n = unw.backtrace(buffer, (int)(max + NATIVE_OWN_FRAMES));
	size_t n_frames = 0;

	for (int i = 0; i < n; i++)
		n_frames = add_other(frames, n_frames, max, (uintptr_t)buffer[i]);
	return n_frames;
}

static size_t ask_step(uint64_t *frames, size_t max)
{
	struct native_frame steps[MAX_STEPS];
	size_t n = native_step(steps, max + NATIVE_OWN_FRAMES), n_frames = 0;

	for (size_t i = 0; i < n; i++)
		n_frames = add_other(frames, n_frames, max, steps[i].address);
	return n_frames;
}

/* At most OPTIONS_MAX_DEPTH + 1 frames. */
static size_t ask_libunwind(uint64_t *frames, size_t max)
{
	return unwind_is_unloaded() ? ask_step(frames, max) : ask_backtrace(frames, max);
}

static bool is_equal(const uint64_t *a, const uint64_t *b, size_t n)
{
	return !memcmp(a, b, n * sizeof(*a));
}

static void say_difference(
	const struct unwind_stack *stack, const uint64_t *frames, size_t n_frames)
{
	size_t i = 0;

	while (i < n_frames && i < stack->n_frames && frames[i] == stack->frames[i])
		i++;
	session_say("unwinder: frame %zu of %zu is %#llx; libunwind: %#llx, of %zu", i,
		stack->n_frames, i < stack->n_frames ? (unsigned long long)stack->frames[i] : 0,
		i < n_frames ? (unsigned long long)frames[i] : 0, n_frames);
}

static void check(const struct unwind_stack *stack, size_t max)
{
	uint64_t n = atomic_fetch_add_explicit(&checked.n_captures, 1, memory_order_relaxed);
	uint64_t frames[OPTIONS_MAX_DEPTH + 1];
	size_t n_frames = ask_libunwind(frames, max), n_same;
	bool same = n_frames == stack->n_frames && is_equal(frames, stack->frames, n_frames);
	bool often = n < N_FIRST || stack->how == UNWIND_WALKED;

	if (stack->how == UNWIND_DELEGATED)
		atomic_fetch_add_explicit(&checked.n_delegated, 1, memory_order_relaxed);
	/* unw_step looks everything up again; only where a stack ends it has its own opinion. */
	if (same && n % (often ? STEP_EVERY : STEP_EVERY_LATER) == 0) {
		n_frames = ask_step(frames, max);
		n_same = n_frames < stack->n_frames ? n_frames : stack->n_frames;
		same = n_same + 2 >= stack->n_frames && n_same + 2 >= n_frames &&
		       is_equal(frames, stack->frames, n_same);
	}
	if (!same && atomic_fetch_add_explicit(&checked.n_differences, 1, memory_order_relaxed) <
			     SAID_DIFFERENCES)
		say_difference(stack, frames, n_frames);
}

void native_capture(struct native *native, size_t max)
{
	struct unwind_stack stack;

	native->frames = native->room;
	native->n_frames = 0;
	native->id = 0;
	native->is_cut = native->has_gap = false;
	if (state() != UNWINDER_READY)
		return;
	if (options.unwinder == OPTIONS_UNWINDER_LIBUNWIND) {
		native->n_frames = ask_backtrace(native->room, max + 1);
	} else {
		unwind_capture(&stack);
		if (options.unwinder == OPTIONS_UNWINDER_CHECK)
			check(&stack, max + 1);
		if (stack.n_frames)
			native->frames = stack.frames;
		native->n_frames = stack.n_likely;
		native->id = stack.memo_id;
		native->has_gap = stack.has_gap;
	}
	native->is_cut = native->n_frames > max;
	native->n_frames -= native->is_cut;
}

void native_finish(struct vt_lane *lane, uint64_t time_ns)
{
	struct vt_rec_unwind_check record = {
		.time_ns = time_ns,
		.captures = atomic_load_explicit(&checked.n_captures, memory_order_relaxed),
		.delegated = atomic_load_explicit(&checked.n_delegated, memory_order_relaxed),
		.differences = atomic_load_explicit(&checked.n_differences, memory_order_relaxed),
	};

	if (options.unwinder == OPTIONS_UNWINDER_CHECK)
		vt_put_unwind_check(lane, &record);
}

void native_forget(void)
{
	atomic_store_explicit(&checked.n_captures, 0, memory_order_relaxed);
	atomic_store_explicit(&checked.n_delegated, 0, memory_order_relaxed);
	atomic_store_explicit(&checked.n_differences, 0, memory_order_relaxed);
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
