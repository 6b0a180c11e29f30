/*
 * A plugin that is closed and opened again as another build, at the same place and with the same
 * code but for the size of its frames. -DFRAME=N makes the plugin, else it is the program:
 *
 *   unwind_reload PLUGIN...             opens them in turn, again and again
 *   unwind_reload --unseen PLUGIN...    and closes them past the recorder
 *   unwind_reload --busy PLUGIN...      while a thread opens and closes the library ./other.so
 *
 * The last line says how often another plugin came to where one had been.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int plugin_function(int (*visit)(void), int depth);

#ifdef FRAME
plugin_function plugin_run;

int plugin_run(int (*visit)(void), int depth)
{
	volatile char room[FRAME];
	int result;

	room[depth] = 1;
	result = depth ? plugin_run(visit, depth - 1) : visit();
	room[depth] = 2;
	return result;
}
#else
#include <cuda.h>

#define N_ROUNDS 60
#define N_VISITS 40
#define DEPTH	 5

typedef int close_function(void *handle);

static CUdeviceptr buffer;
static volatile int is_over;

static void *open_and_close(void *unused)
{
	while (!is_over) {
		void *other = dlopen("./other.so", RTLD_NOW | RTLD_LOCAL);

		if (!other || dlclose(other))
			abort();
		usleep(20);
	}
	return unused;
}

static int visit(void)
{
	return (int)cuMemsetD8_v2(buffer, 0, 1);
}

static close_function *find_close(int unseen)
{
	void *libc;

	if (!unseen)
		return dlclose;
	libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	return libc ? (close_function *)dlsym(libc, "dlclose") : NULL;
}

int main(int argc, char **argv)
{
	int unseen = argc > 1 && !strcmp(argv[1], "--unseen");
	int busy = argc > 1 && !strcmp(argv[1], "--busy");
	int first = 1 + (unseen || busy), n_plugins = argc - first, n_again = 0;
	close_function *close_plugin = find_close(unseen);
	plugin_function *last = NULL;
	CUcontext context;
	pthread_t thread;

	if (!close_plugin || n_plugins < 1 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
		cuCtxSetCurrent(context) || cuMemAlloc_v2(&buffer, 4096))
		return 1;
	if (busy && pthread_create(&thread, NULL, open_and_close, NULL))
		return 1;
	for (int round = 0; round < N_ROUNDS; round++) {
		void *plugin = dlopen(argv[first + round % n_plugins], RTLD_NOW | RTLD_LOCAL);
		plugin_function *run;

		if (!plugin) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		run = (plugin_function *)dlsym(plugin, "plugin_run");
		if (!run)
			return 1;
		n_again += run == last;
		last = run;
		for (int i = 0; i < N_VISITS; i++)
			if (run(visit, i % DEPTH))
				return 1;
		if (close_plugin(plugin))
			return 1;
	}
	is_over = 1;
	if (busy)
		pthread_join(thread, NULL);
	printf("%d\n", n_again);
	return 0;
}
#endif
