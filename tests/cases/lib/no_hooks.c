/* Another tool's preloaded library, with a dlsym of its own that leaves out all others. */
#define _GNU_SOURCE
#include <dlfcn.h>

void *dlsym(void *handle, const char *name)
{
	static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
	static void *(*real)(void *, const char *);

	for (unsigned int i = 0; !real && i < sizeof(versions) / sizeof(*versions); i++)
		real = (void *(*)(void *, const char *))dlvsym(
			dlopen("libc.so.6", RTLD_LAZY), "dlsym", versions[i]);
	return real(handle, name);
}
