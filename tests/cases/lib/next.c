/* Another tool's preloaded library: stands before the driver's allocation, as the recorder does,
 * and forwards with RTLD_NEXT. */
#include <dlfcn.h>
#include <stdio.h>

static unsigned int n_calls;

int cuMemAlloc_v2(unsigned long *pointer, unsigned long bytes);

int cuMemAlloc_v2(unsigned long *pointer, unsigned long bytes)
{
	int (*next)(unsigned long *, unsigned long) = dlsym(RTLD_NEXT, "cuMemAlloc_v2");

	n_calls++;
	return next ? next(pointer, bytes) : 999;
}

__attribute__((destructor)) static void tell(void)
{
	if (n_calls)
		printf("the other tool saw %u\n", n_calls);
}
