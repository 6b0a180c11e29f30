/*
 * Stands in for libunwind.so.8 under ThreadSanitizer: stacks come from glibc's backtrace.
 *
 * Both the real one and ThreadSanitizer put the end of a thread off to the last round of key
 * destructors. ThreadSanitizer's key is older, so the thread's state is gone when libunwind then
 * locks a mutex.
 */
#include <execinfo.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

unw_addr_space_t unw_local_addr_space;

int unw_set_caching_policy(unw_addr_space_t space, unw_caching_policy_t policy)
{
	(void)space;
	(void)policy;
	return 0;
}

int unw_backtrace(void **buffer, int size)
{
	return backtrace(buffer, size);
}
