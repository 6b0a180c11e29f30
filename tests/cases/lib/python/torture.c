/*
 * Preloaded after the recorder: each malloc, calloc, realloc and free of the process makes a CUDA
 * allocation and ends it, so that stacks are taken at every moment at which the interpreter may
 * call anything. One in 16 is kept.
 *
 *   TORTURE_EVENTS   so many such calls from the start of the process on (default 0); further ones
 * are asked for with torture_more
 *
 * Free-threaded interpreters have an allocator of their own: torture_allocators puts events there.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void __libc_free(void *memory);

int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuMemFree_v2(unsigned long long address);

static _Atomic long n_left, n_done, n_failed;
static void *context;
static uintptr_t driver_start, driver_end;
static __thread __attribute__((tls_model("initial-exec"))) int inside, entered;
static __thread __attribute__((tls_model("initial-exec"))) unsigned int number;

/* Called from a function that was called from caller. The driver cannot be called from itself. */
static void event(void *caller)
{
	unsigned long long address;
	int kept = errno;

	if ((uintptr_t)caller - driver_start < driver_end - driver_start)
		return;
	if (inside || atomic_load_explicit(&n_left, memory_order_relaxed) <= 0 ||
		atomic_fetch_sub(&n_left, 1) <= 0)
		return;
	inside = 1;
	if (!entered)
		entered = !cuCtxSetCurrent(context);
	if (cuMemAlloc_v2(&address, 512) || (number++ % 16 && cuMemFree_v2(address)))
		atomic_fetch_add(&n_failed, 1);
	atomic_fetch_add(&n_done, 1);
	inside = 0;
	errno = kept;
}

void *malloc(size_t bytes)
{
	void *memory = __libc_malloc(bytes);

	event(__builtin_return_address(0));
	return memory;
}

void *calloc(size_t n, size_t bytes)
{
	void *memory = __libc_calloc(n, bytes);

	event(__builtin_return_address(0));
	return memory;
}

void *realloc(void *old, size_t bytes)
{
	void *memory;

	event(__builtin_return_address(0));
	memory = __libc_realloc(old, bytes);
	event(__builtin_return_address(0));
	return memory;
}

void free(void *memory)
{
	event(__builtin_return_address(0));
	__libc_free(memory);
}

/* Of one of the interpreter's three domains: PyMemAllocatorEx. */
struct allocator {
	void *context;
	void *(*malloc)(void *context, size_t bytes);
	void *(*calloc)(void *context, size_t n, size_t bytes);
	void *(*realloc)(void *context, void *old, size_t bytes);
	void (*free)(void *context, void *memory);
};

static struct allocator own[3];

static void *own_malloc(void *context, size_t bytes)
{
	const struct allocator *allocator = context;
	void *memory = allocator->malloc(allocator->context, bytes);

	event(NULL);
	return memory;
}

static void *own_calloc(void *context, size_t n, size_t bytes)
{
	const struct allocator *allocator = context;
	void *memory = allocator->calloc(allocator->context, n, bytes);

	event(NULL);
	return memory;
}

static void *own_realloc(void *context, void *old, size_t bytes)
{
	const struct allocator *allocator = context;
	void *memory;

	event(NULL);
	memory = allocator->realloc(allocator->context, old, bytes);
	event(NULL);
	return memory;
}

static void own_free(void *context, void *memory)
{
	const struct allocator *allocator = context;

	event(NULL);
	allocator->free(allocator->context, memory);
}

/* Called while the process has one thread. */
void torture_allocators(void)
{
	typedef void access(int domain, struct allocator *allocator);
	access *get = (access *)dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
	access *set = (access *)dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");

	for (int domain = 0; domain < 3; domain++) {
		get(domain, &own[domain]);
		set(domain, &(struct allocator){&own[domain], own_malloc, own_calloc, own_realloc,
				    own_free});
	}
}

void torture_more(long n_events)
{
	atomic_store(&n_left, n_events);
}

/* How many there were; negative when some failed. */
long torture_done(void)
{
	return n_failed ? -n_failed : n_done;
}

static int find_driver(struct dl_phdr_info *info, size_t bytes, void *unused)
{
	(void)bytes, (void)unused;
	if (!info->dlpi_name || !strstr(info->dlpi_name, "/libcuda.so.1"))
		return 0;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			driver_end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr +
				     info->dlpi_phdr[i].p_memsz;
	driver_start = info->dlpi_addr;
	return 1;
}

__attribute__((constructor)) static void start(void)
{
	const char *events = getenv("TORTURE_EVENTS");

	inside = 1;
	dl_iterate_phdr(find_driver, NULL);
	if (driver_end && !cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) &&
		!cuCtxSetCurrent(context))
		n_left = events ? atol(events) : 0;
	inside = 0;
}
