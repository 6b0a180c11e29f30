/*
 * Called by python_path.py: the cost of one recorded call, and of other ways to take the native
 * stack, from a given depth of C frames below a Python program.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <time.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#define TEXT_OF(name)	    #name
#define SYMBOL_OF(function) TEXT_OF(function)

typedef int context_function(unw_context_t *context);
typedef int init_function(unw_cursor_t *cursor, unw_context_t *context);
typedef int step_function(unw_cursor_t *cursor);
typedef int reg_function(unw_cursor_t *cursor, unw_regnum_t number, unw_word_t *value);

static CUdeviceptr buffer;
static context_function *get_context;
static init_function *init_local;
static step_function *step;
static reg_function *get_reg;

enum { EVENT, BACKTRACE, STEP };

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int unwind(void)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t address, stack;
	int n = 0;

#ifdef unw_tdep_getcontext
	get_context(&context);
#else
	unw_tdep_getcontext(&context);
#endif
	init_local(&cursor, &context);
	while (step(&cursor) > 0) {
		get_reg(&cursor, UNW_REG_IP, &address);
		get_reg(&cursor, UNW_REG_SP, &stack);
		n++;
	}
	return n;
}

static int once(int what)
{
	void *frames[256];

	switch (what) {
	case EVENT:
		return cuMemsetD8_v2(buffer, 0, 1);
	case BACKTRACE:
		return backtrace(frames, 256) < 8;
	default:
		return unwind() < 8;
	}
}

/* The address taken of `frames` keeps each level a real frame. */
__attribute__((noinline)) static int descend(int what, int frames, long n)
{
	volatile int here = frames;

	if (frames)
		return descend(what, frames - 1, n) + (here - frames);
	for (long i = 0; i < n; i++)
		if (once(what))
			return 1;
	return 0;
}

/* One event below a path of calls that the bits of path choose. */
__attribute__((noinline)) static int choose(int levels, unsigned int path)
{
	volatile int here = levels;
	int result;

	if (!levels)
		return once(EVENT);
	if (path & 1)
		result = choose(levels - 1, path >> 1);
	else
		result = choose(levels - 1, path >> 1) + (here - levels);
	return result + (here - levels);
}

int bench_prepare(void)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	CUcontext context;

	if (!library)
		return 1;
#ifdef unw_tdep_getcontext
	get_context = (context_function *)dlsym(library, SYMBOL_OF(unw_tdep_getcontext));
#endif
	init_local = (init_function *)dlsym(library, SYMBOL_OF(unw_init_local));
	step = (step_function *)dlsym(library, SYMBOL_OF(unw_step));
	get_reg = (reg_function *)dlsym(library, SYMBOL_OF(unw_get_reg));
	return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
	       cuMemAlloc_v2(&buffer, 4096);
}

/* Nanoseconds of processor time of one of n, -1 when something went wrong. */
double bench_run(int what, int frames, long n)
{
	double begin;

	if (descend(what, frames, 10))
		return -1;
	begin = now_ns();
	if (descend(what, frames, n))
		return -1;
	return (now_ns() - begin) / (double)n;
}

/* The same of one event whose native stack is new: all 1 << levels that there are. */
double bench_new(int levels)
{
	double begin = now_ns();

	for (unsigned int path = 0; path < 1u << levels; path++)
		if (choose(levels, path))
			return -1;
	return (now_ns() - begin) / (double)(1u << levels);
}

/* One event, for stacks that differ in their Python frames. */
int bench_event(void)
{
	return cuMemsetD8_v2(buffer, 0, 1);
}

/* Native frames from the innermost level outward. */
int bench_depth(int frames)
{
	return frames ? bench_depth(frames - 1) + 1 : unwind();
}
