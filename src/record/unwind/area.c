#include "record/unwind/area.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_PAGES 1024u

/* Where the main thread's stack began; from the loader. */
extern void *__libc_stack_end;

/* glibc keeps a thread's descriptor at the top of its stack. */
static uint64_t thread_pointer(void)
{
	return (uint64_t)(uintptr_t)__builtin_thread_pointer();
}

/* The kernel reads the set before it finds that the request is none. */
bool area_is_readable(uint64_t address)
{
	const int no_request = -1;
	int saved = errno;
	bool readable;

	if (address < AREA_PAGE_BYTES) /* 0 would be no set at all */
		return false;
	readable = syscall(SYS_rt_sigprocmask, no_request, address & ~7ull, NULL, 8) == 0 ||
		   errno != EFAULT;
	errno = saved;
	return readable;
}

AREA_RAW bool area_copy(void *out, uint64_t address, size_t bytes)
{
	if (!area_is_readable(address) || !area_is_readable(address + bytes - 1))
		return false;
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)out)[i] = ((const volatile uint8_t *)(uintptr_t)address)[i];
	return true;
}

bool area_covers(struct area *area, uint64_t at)
{
	uint64_t page = at & -(uint64_t)AREA_PAGE_BYTES, top = area->high, low = area->low;

	if (at >= low && at < top)
		return true;
	if (at < area->foreign)
		return false;
	if (at >= top) {
		low = thread_pointer();
		if (at >= low)
			low = (uint64_t)(uintptr_t)__libc_stack_end;
		top = low;
	}
	if (at >= top || low - page > (uint64_t)MAX_PAGES * AREA_PAGE_BYTES)
		return false;
	for (uint64_t next = page; next < low; next += AREA_PAGE_BYTES) {
		if (!area_is_readable(next)) {
			if (top == area->high)
				area->foreign = next;
			return false;
		}
	}
	if (top != area->high)
		area->foreign = 0;
	area->low = page;
	area->high = top;
	return true;
}
