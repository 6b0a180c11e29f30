/*
 * A program that uses CUDA, then loads a Python interpreter with RTLD_LOCAL, calls CUDA from Python
 * code, ends the interpreter, and uses CUDA again. No headers of Python are needed.
 *
 *   python_embed LIBPYTHON
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct method {
	const char *name;
	void *(*function)(void *self, void *args);
	int flags;
	const char *doc;
};

static void *library;
static int error;

static void allocate(size_t bytes)
{
	CUdeviceptr address;

	error |= (int)cuMemAlloc(&address, bytes);
}

static void *find(const char *name)
{
	void *found = dlsym(library, name);

	if (!found) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	return found;
}

/* A Python function: allocates as many KiB as its argument says. */
static void *call(void *self, void *argument)
{
	(void)self;
	allocate((size_t)((long (*)(void *))find("PyLong_AsLong"))(argument) << 10);
	return ((void *(*)(long))find("PyLong_FromLong"))(0);
}

static void run_python(const char *code)
{
	static struct method method = {"allocate", call, 8 /* METH_O */, NULL};
	void *function = ((void *(*)(struct method *, void *, void *))find("PyCFunction_NewEx"))(
		&method, NULL, NULL);
	void *module = ((void *(*)(const char *))find("PyImport_AddModule"))("__main__");

	((int (*)(void *, const char *, void *))find("PyObject_SetAttrString"))(
		module, "allocate", function);
	error |= ((int (*)(const char *))find("PyRun_SimpleString"))(code);
}

int main(int argc, char **argv)
{
	CUcontext context;

	if (argc < 2 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
		cuCtxSetCurrent(context))
		return 1;
	allocate(1 << 10);
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 77;
	}
	allocate(2 << 10);
	((void (*)(void))find("Py_Initialize"))();
	allocate(3 << 10);
	run_python("def inner(n):\n"
		   " allocate(n)\n"
		   "def outer(n):\n"
		   " inner(n)\n"
		   "outer(4)\n"
		   "outer(5)\n");
	allocate(6 << 10);
	error |= ((int (*)(void))find("Py_FinalizeEx"))();
	allocate(7 << 10);
	dlclose(library);
	allocate(8 << 10);
	return error != 0;
}
