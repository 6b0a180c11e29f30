/* A plugin, opened RTLD_LOCAL: it reaches the driver by linking to it, and by looking it up itself.
 */
#include <dlfcn.h>

int cuMemAlloc_v2(unsigned long *pointer, unsigned long bytes);
int cuMemFree_v2(unsigned long pointer);
int plugin_linked(unsigned long *pointer, unsigned long bytes);
int plugin_default(unsigned long *pointer, unsigned long bytes);
int plugin_next(unsigned long *pointer, unsigned long bytes);

int plugin_linked(unsigned long *pointer, unsigned long bytes)
{
	return cuMemAlloc_v2(pointer, bytes);
}

/* The driver is in this plugin's own scope, not in the global one. */
int plugin_default(unsigned long *pointer, unsigned long bytes)
{
	int (*alloc)(unsigned long *, unsigned long) = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");

	return alloc ? alloc(pointer, bytes) : 999;
}

int plugin_next(unsigned long *pointer, unsigned long bytes)
{
	int (*alloc)(unsigned long *, unsigned long) = dlsym(RTLD_NEXT, "cuMemAlloc_v2");

	return alloc ? alloc(pointer, bytes) : 999;
}
