#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/memory.h"

#define LIBRARY "libvramtrace.so"

char *launch_find_library(void)
{
	static const char *const folders[] = {"", "../lib/", "../lib64/", "../lib/vramtrace/"};
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *folder, *library;

	self[n > 0 ? n : 0] = 0;
	folder = dirname(self);
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(path, sizeof(path), "%s/%s" LIBRARY, folder, folders[i]);
		library = realpath(path, NULL);
		if (!library)
			continue;
		/* The loader splits LD_PRELOAD at both. */
		if (!strpbrk(library, " :"))
			return library;
		fprintf(stderr,
			"vramtrace: %s: cannot be preloaded from a path with a space or a colon: "
			"install it "
			"elsewhere\n",
			library);
		free(library);
		return NULL;
	}
	fprintf(stderr,
		"vramtrace: " LIBRARY
		" is neither in %s nor in ../lib beside it: build or install it\n",
		folder);
	return NULL;
}

static void set_preload(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	char *value;

	if (!others || !*others) {
		setenv("LD_PRELOAD", library, 1);
		return;
	}
	value = memory_new(strlen(library) + strlen(others) + 2, 1);
	sprintf(value, "%s:%s", library, others);
	setenv("LD_PRELOAD", value, 1);
	free(value);
}

/* Whoever set it, even to nothing, has another tool for NVTX in mind, or none. */
static void set_annotations(const char *library)
{
	setenv("NVTX_INJECTION64_PATH", library, 0);
}

static volatile pid_t running;

static const int forwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
#define N_FORWARDED (sizeof(forwarded) / sizeof(*forwarded))

/* What the terminal sends goes to the program anyway. */
static void forward(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (info->si_code != SI_KERNEL && running > 0)
		kill(running, number);
	errno = saved;
}

/* In the child. Reports through the pipe, which an exec that works closes. */
static void execute(char **arguments, const char *library, int report_fd)
{
	int error;

	set_preload(library);
	set_annotations(library);
	execvp(arguments[0], arguments);
	error = errno;
	if (write(report_fd, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

static void wait_for(struct launch_end *end)
{
	int status = 0;
	pid_t waited;

	do {
		waited = waitpid(end->pid, &status, 0);
	} while (waited < 0 && errno == EINTR);
	end->signalled = waited == end->pid && WIFSIGNALED(status);
	end->status = end->signalled ? WTERMSIG(status) : WEXITSTATUS(status);
}

struct launch_end launch_run(char **arguments, const char *library)
{
	struct launch_end end = {.pid = -1};
	struct sigaction action = {.sa_sigaction = forward, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction old[N_FORWARDED];
	sigset_t all, mask;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC)) {
		end.error = errno;
		return end;
	}
	sigfillset(&all);
	/* A signal that comes while the program is being started waits until there is one to pass
	 * it on to. */
	sigprocmask(SIG_BLOCK, &all, &mask);
	end.pid = fork();
	if (!end.pid) {
		sigprocmask(SIG_SETMASK, &mask, NULL);
		close(fds[0]);
		execute(arguments, library, fds[1]);
	}
	end.error = errno;
	running = end.pid;
	for (size_t i = 0; i < N_FORWARDED; i++) {
		sigaction(forwarded[i], NULL, &old[i]);
		if (old[i].sa_handler != SIG_IGN)
			sigaction(forwarded[i], &action, NULL);
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
	close(fds[1]);
	if (end.pid > 0) {
		ssize_t n;

		do {
			n = read(fds[0], &end.error, sizeof(end.error));
		} while (n < 0 && errno == EINTR);
		end.started = n == 0;
		wait_for(&end);
	}
	running = 0;
	for (size_t i = 0; i < N_FORWARDED; i++)
		sigaction(forwarded[i], &old[i], NULL);
	close(fds[0]);
	return end;
}
