/*
 * A program that takes Python in as a plugin would: embed LIBPYTHON SCRIPT. Nothing of the library
 * is visible to others. The script finds a function allocate(bytes).
 */
#include <dlfcn.h>
#include <stdio.h>

int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);

/* What of Python.h is needed, which no release has changed. */
struct method {
	const char *name;
	void *(*function)(void *self, void *argument);
	int flags;
	const char *doc;
};
#define METH_O 8

static void *library;

/* The function of that name, with the type of the expression it is assigned to. */
static void *find(const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		fprintf(stderr, "no %s\n", name);
	return found;
}

static void *allocate(void *self, void *argument)
{
	unsigned long (*as_unsigned_long)(void *) = find("PyLong_AsUnsignedLong");
	void *(*from_long)(long) = find("PyLong_FromLong");
	unsigned long long address;

	(void)self;
	return from_long(cuMemAlloc_v2(&address, as_unsigned_long(argument)));
}

static struct method method = {"allocate", allocate, METH_O, NULL};

int main(int argc, char **argv)
{
	char text[4096];
	void *context;

	if (argc != 3 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
		cuCtxSetCurrent(context))
		return 2;
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	void (*initialize)(void) = find("Py_Initialize");
	int (*finalize)(void) = find("Py_FinalizeEx");
	void *(*add_module)(const char *) = find("PyImport_AddModule");
	void *(*new_function)(struct method *, void *, void *) = find("PyCFunction_NewEx");
	int (*set_attribute)(void *, const char *, void *) = find("PyObject_SetAttrString");
	int (*run)(const char *, void *) = find("PyRun_SimpleStringFlags");

	snprintf(text, sizeof(text), "exec(compile(open(%c%s%c).read(), %c%s%c, 'exec'))", '"',
		argv[2], '"', '"', argv[2], '"');
	for (int i = 0; i < 2; i++) {
		initialize();
		if (set_attribute(add_module("__main__"), "allocate",
			    new_function(&method, NULL, NULL)) ||
			run(text, NULL) || finalize())
			return 1;
	}
	return 0;
}
