/*
 * Ways to come by an entry point of the driver. Nothing of CUDA is linked. Each way is asked for an
 * allocation function, which is then called five times; what happened is printed, the same with and
 * without a recorder.
 *
 *   lookup_routes WAY [LIBRARY]      LIBRARY: the decoy or the plugin
 */
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef cuMemAlloc
#undef cuMemFree

#define ODD_ERRNO 1234

typedef int alloc_function(CUdeviceptr *pointer, size_t bytes);
typedef CUresult get_function(const char *, void **, int, cuuint64_t);
/* The last is CUdriverProcAddressQueryResult, which headers have from 12.0 on. */
typedef CUresult get_function_v2(const char *, void **, int, cuuint64_t, int *);

static void *driver;  /* handle of libcuda.so.1 */
static void *library; /* handle of the second argument */

/* A look-up keeps errno, whoever answers it. */
static void *look(void *handle, const char *name)
{
	void *found;

	errno = ODD_ERRNO;
	found = dlsym(handle, name);
	if (errno != ODD_ERRNO)
		printf("the look-up of %s changed errno\n", name);
	return found;
}

static int check_errno(const char *what, int result)
{
	if (errno != ODD_ERRNO)
		printf("%s changed errno to %d\n", what, errno);
	return result;
}

#define CALL(name, ...)                                                                            \
	(errno = ODD_ERRNO,                                                                        \
		check_errno(#name, ((__typeof__(&(name)))look(driver, #name))(__VA_ARGS__)))

static void start(int flags)
{
	CUcontext context;
	int error;

	driver = dlopen("libcuda.so.1", RTLD_NOW | flags);
	if (!driver) {
		printf("no driver: %s\n", dlerror());
		exit(1);
	}
	error = CALL(cuInit, 0);
	if (!error)
		error = CALL(cuDevicePrimaryCtxRetain, &context, 0);
	if (!error)
		error = CALL(cuCtxSetCurrent, context);
	if (error)
		printf("start: %d\n", error);
}

/* Five calls, two of which ask for nothing and for too much. */
static void use(const char *what, void *function)
{
	alloc_function *alloc = (alloc_function *)function;
	static const size_t sizes[] = {100, 0, 5000, (size_t)1 << 50, 1 << 20};
	CUdeviceptr pointer;

	printf("%s:", what);
	for (size_t i = 0; alloc && i < sizeof(sizes) / sizeof(*sizes); i++) {
		errno = ODD_ERRNO;
		printf(" %d", check_errno(what, alloc(&pointer, sizes[i])));
	}
	puts(alloc ? "" : " not found");
}

/* With what file's function a name was answered. The recorder's stands for the driver's. */
static const char *owner(void *function)
{
	const char *name;
	Dl_info info;

	if (!function || !dladdr(function, &info))
		return "nobody";
	name = strrchr(info.dli_fname, '/');
	name = name ? name + 1 : info.dli_fname;
	return !strcmp(name, "libvramtrace.so") ? "libcuda.so.1" : name;
}

/* libc's message begins with the object that asked, which only libc can fill in: the recorder's
 * answers for names that it exports itself have libc there. */
static void answer(const char *how, const char *name, void *found)
{
	const char *error = dlerror(), *text = error ? strstr(error, ": undefined") : "no error";

	printf("%s %s: %s, %s\n", how, name, owner(found), text ? text : error);
}

static void by_handle(void)
{
	start(RTLD_LOCAL);
	use("dlsym", look(driver, "cuMemAlloc_v2"));
}

static void by_default(void)
{
	start(RTLD_GLOBAL);
	use("RTLD_DEFAULT", look(RTLD_DEFAULT, "cuMemAlloc_v2"));
}

static void by_next(void)
{
	start(RTLD_GLOBAL);
	use("RTLD_NEXT", look(RTLD_NEXT, "cuMemAlloc_v2"));
}

static void by_plugin(void)
{
	start(RTLD_LOCAL);
	use("linked", look(library, "plugin_linked"));
	use("RTLD_DEFAULT", look(library, "plugin_default"));
	use("RTLD_NEXT", look(library, "plugin_next"));
}

/* Names that are answered as ever: no CUDA, no such name, a version that is not there, a driver's
 * call where no driver is in sight, a call without a wrapper. */
static void other_names(void)
{
	static const char *const names[] = {"printf", "cudaMalloc", "cuNoSuchFunction",
		"cuMemGetAddressRange_v2", "cu", "", "curl_easy_init", "cuMemAlloc_v2",
		"cuMemTeleportAsync"};

	start(RTLD_LOCAL);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		answer("dlsym", names[i], look(driver, names[i]));
		answer("RTLD_DEFAULT", names[i], look(RTLD_DEFAULT, names[i]));
		answer("RTLD_NEXT", names[i], look(RTLD_NEXT, names[i]));
		answer("dlvsym", names[i], dlvsym(driver, names[i], "GLIBC_2.2.5"));
		answer("dlvsym RTLD_DEFAULT", names[i],
			dlvsym(RTLD_DEFAULT, names[i], "GLIBC_2.2.5"));
	}
	answer("dlvsym", "cuMemAlloc_v2", dlvsym(driver, "cuMemAlloc_v2", "NO_SUCH_VERSION"));
	printf("%d\n", dlsym(RTLD_DEFAULT, "printf") == (void *)printf);
}

static void by_decoy(void)
{
	start(RTLD_LOCAL);
	use("decoy", look(library, "cuMemAlloc_v2"));
	use("decoy, managed", look(library, "cuMemAllocManaged"));
	use("decoy, managed, DECOY_1", dlvsym(library, "cuMemAllocManaged", "DECOY_1"));
	use("decoy, managed, DECOY_2", dlvsym(library, "cuMemAllocManaged", "DECOY_2"));
	use("decoy, managed, DECOY_3", dlvsym(library, "cuMemAllocManaged", "DECOY_3"));
	answer("decoy", "cuMemAlloc_v2", look(library, "cuMemAlloc_v2"));
	answer("decoy", "cuMemAllocHost_v2", look(library, "cuMemAllocHost_v2"));
}

/* The decoy is all there is. */
static void only_decoy(void)
{
	use("decoy", look(library, "cuMemAlloc_v2"));
	printf("%d\n", ((int (*)(unsigned int))look(library, "cuInit"))(1));
	answer("decoy", "cuMemAlloc_v2", look(library, "cuMemAlloc_v2"));
}

static void ask(int api, void *get, const char *name, int version, cuuint64_t flags)
{
	int status = 77;
	void *found = (void *)-1;
	int result;

	errno = ODD_ERRNO;
	if (api == 1)
		result = ((get_function *)get)(name, &found, version, flags);
	else
		result = ((get_function_v2 *)get)(
			name, &found, version, flags, api == 2 ? &status : NULL);
	check_errno("cuGetProcAddress", result);
	if (found == (void *)-1)
		found = NULL;
	printf("v%d %s %d %d: %d, %s, status %d\n", api, name, version, (int)flags, result,
		owner(found), status);
}

static bool has_v2; /* the look-up has its second form: the driver is of 12.0 or newer */

static void *get_one(void *get, const char *name, int version)
{
	void *found = NULL;

	errno = ODD_ERRNO;
	check_errno("cuGetProcAddress",
		has_v2 ? ((get_function_v2 *)get)(name, &found, version, 0, NULL)
		       : ((get_function *)get)(name, &found, version, 0));
	return found;
}

static void by_get_proc_address(void)
{
	static const char *const names[] = {"cuMemAlloc", "cuMemcpyHtoDAsync", "cuMemAllocAsync",
		"cuGetProcAddress", "cuDeviceGet", "cuNoSuchFunction", ""};
	static const int versions[] = {1000, 2000, 3020, 7000, 11030, 12000, 13000, 99000};
	void *get, *get_v2;

	start(RTLD_LOCAL);
	get = look(driver, "cuGetProcAddress");
	get_v2 = look(driver, "cuGetProcAddress_v2");
	has_v2 = get_v2 != NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		for (size_t j = 0; j < sizeof(versions) / sizeof(*versions); j++)
			for (cuuint64_t flags = 0; flags < 3; flags++) {
				ask(1, get, names[i], versions[j], flags);
				if (!has_v2)
					continue;
				ask(2, get_v2, names[i], versions[j], flags);
				ask(3, get_v2, names[i], versions[j], flags);
			}
	if (has_v2)
		get = get_v2;
	use("cuGetProcAddress", get_one(get, "cuMemAlloc", 3020));
	/* The look-up found by itself looks up as well. */
	use("cuGetProcAddress twice",
		get_one(get_one(get, "cuGetProcAddress", 12000), "cuMemAlloc", 12000));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = {
		{"handle", by_handle},
		{"default", by_default},
		{"next", by_next},
		{"plugin", by_plugin},
		{"names", other_names},
		{"decoy", by_decoy},
		{"only-decoy", only_decoy},
		{"get-proc-address", by_get_proc_address},
	};

	if (argc > 2) {
		library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
		if (!library) {
			puts(dlerror());
			return 1;
		}
	}
	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(*ways); i++) {
		if (!strcmp(argv[1], ways[i].name)) {
			ways[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: lookup_routes WAY [LIBRARY]\n");
	return 2;
}
