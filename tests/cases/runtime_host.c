/*
 * A program without CUDA that opens plugins with it, each with these letters for flags: l local, g
 * global, d RTLD_DEEPBIND. What the plugins say is printed, the same with and without a recorder.
 *
 *   runtime_host FLAGS LIBRARY [FLAGS LIBRARY...]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	void *handles[8] = {NULL};
	int n = 0;

	for (int i = 1; i + 1 < argc && n < 8; i += 2, n++) {
		int flags = RTLD_NOW | (strchr(argv[i], 'g') ? RTLD_GLOBAL : RTLD_LOCAL) |
			    (strchr(argv[i], 'd') ? RTLD_DEEPBIND : 0);

		handles[n] = dlopen(argv[i + 1], flags);
		if (!handles[n]) {
			puts(dlerror());
			return 1;
		}
	}
	for (int i = 0; i < n; i++) {
		int (*use)(void) = (int (*)(void))dlsym(handles[i], "plugin_use");
		int (*tail)(void **, unsigned long) =
			(int (*)(void **, unsigned long))dlsym(handles[i], "plugin_tail");
		void *pointer = NULL;

		printf("use %d\n", use());
		printf("tail %d\n", tail(&pointer, 4096));
	}
	for (int i = 0; i < n; i++)
		printf("close %d\n", dlclose(handles[i]));
	return 0;
}
