/*
 * A program, with -DLIBRARY a library, that opens NAME by name and prints what it says. Which file
 * that is depends on who asks: the search path is the asking file's own.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef LIBRARY
const char *which(void)
{
	return LIBRARY;
}

/* By a call that another library could answer. */
const char *ask_which(void)
{
	return which();
}
#else
const char *which(void)
{
	return "the program";
}
#endif

int open_and_ask(const char *name, int mode);

int open_and_ask(const char *name, int mode)
{
	void *handle = dlopen(name, mode);
	const char *(*own)(void), *(*asked)(void);
	int (*deeper)(const char *, int);

	if (!handle) {
		printf("%s\n", dlerror());
		return 1;
	}
	own = (const char *(*)(void))dlsym(handle, "which");
	asked = (const char *(*)(void))dlsym(handle, "ask_which");
	deeper = (int (*)(const char *, int))dlsym(handle, "open_and_ask");
	printf("%s is %s, and calls that of %s\n", name, own(), asked());
	return strcmp(name, "libinner.so") && deeper ? deeper("libinner.so", mode) : 0;
}

#ifndef LIBRARY
int main(int argc, char **argv)
{
	int mode = RTLD_NOW | (argc > 2 ? RTLD_DEEPBIND : 0);

	return argc > 1 ? open_and_ask(argv[1], mode) : 2;
}
#endif
