/*
 * A program that looks for CUDA, finds none, and does without. The recorder exports the driver's
 * names, but they must not be found where no driver is loaded, and the answers must be those of
 * libc, error text included. Exit status 0: so it is.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int n_wrong;

static void expect_absent(const char *how, const char *name, void *found)
{
	const char *error = dlerror();

	if (!found && error && strstr(error, "undefined symbol") && strstr(error, name) &&
		!dlerror())
		return;
	n_wrong++;
	printf("%s: %s is at %p, dlerror is %s\n", how, name, found, error ? "set" : "not set");
}

int main(void)
{
	static const char *const names[] = {"cuInit", "cuMemAlloc_v2", "cuGetProcAddress_v2",
		"cuNoSuchFunction", "cudaMalloc", "cudaMemcpyAsync_ptsz", "cudaNoSuchFunction",
		"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
		"_ZN2at4cuda9CUDAGraphD1Ev"};
	void *self = dlopen(NULL, RTLD_NOW), *libc = dlopen("libc.so.6", RTLD_NOW);

	dlerror();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		expect_absent("RTLD_DEFAULT", names[i], dlsym(RTLD_DEFAULT, names[i]));
		expect_absent("RTLD_NEXT", names[i], dlsym(RTLD_NEXT, names[i]));
		expect_absent("the program", names[i], dlsym(self, names[i]));
		expect_absent("libc", names[i], dlsym(libc, names[i]));
	}
	if (!dlsym(RTLD_DEFAULT, "printf") || dlerror())
		n_wrong++;
	/* Opening the driver fails, as without the recorder. */
	if (dlopen("libcuda.so.1", RTLD_NOW) || !strstr(dlerror(), "libcuda.so.1"))
		n_wrong++;
	return n_wrong != 0;
}
