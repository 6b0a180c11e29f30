#include "python/memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

bool memory_is_mapped(uint64_t address, uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = address & ~(page - 1), end = address + bytes;
	unsigned char resident[2];

	/* The kernel tells nothing about pages that are not mapped; a sandbox may not let it tell
	 * anything. */
	return address >= page && end > address && end - start <= sizeof(resident) * page &&
	       (!mincore((void *)(uintptr_t)start, end - start, resident) || errno == ENOSYS ||
		       errno == EPERM);
}
