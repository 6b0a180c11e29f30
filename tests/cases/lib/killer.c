/* Preloaded: ends the process as SIGKILL does, right before or after the recorder's nth change to
 * its files (KILL_AT=n, negative: after it), which are what a rotation is made of; or right after
 * the nth fork (KILL_FORK=n, negative: not the parent, but the child). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static int n_changes, n_forks;

static int number_in(const char *name)
{
	const char *text = getenv(name);

	return text ? atoi(text) : 0;
}

static void count(int after)
{
	int at = number_in("KILL_AT");

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

pid_t fork(void)
{
	pid_t (*next)(void) = (__typeof__(next))dlsym(RTLD_NEXT, "fork");
	int at = number_in("KILL_FORK");
	pid_t child = next();

	n_forks++;
	if (at && at == (child ? n_forks : -n_forks))
		kill(getpid(), SIGKILL);
	return child;
}
