/* Preloaded: ends the process as SIGKILL does, right before or after the recorder's nth change to
 * its files (KILL_AT=n, negative: after it). Those are what a rotation is made of. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static int n_changes;

static void count(int after)
{
	const char *text = getenv("KILL_AT");
	int at = text ? atoi(text) : 0;

	n_changes += !after;
	if (at == (after ? -n_changes : n_changes))
		kill(getpid(), SIGKILL);
}

#define CHANGE(name, parameters, ...)                                                              \
	int name parameters                                                                        \
	{                                                                                          \
		int(*next) parameters = (__typeof__(next))dlsym(RTLD_NEXT, #name);                 \
		int result;                                                                        \
                                                                                                   \
		count(0);                                                                          \
		result = next(__VA_ARGS__);                                                        \
		count(1);                                                                          \
		return result;                                                                     \
	}

CHANGE(ftruncate, (int fd, off_t bytes), fd, bytes)
CHANGE(posix_fallocate, (int fd, off_t offset, off_t bytes), fd, offset, bytes)
CHANGE(unlink, (const char *path), path)
