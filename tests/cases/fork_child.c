/*
 * A program that uses CUDA and then makes children in every way. Each allocation is 1 MiB and is
 * never freed.
 *
 *   fork_child leak N     allocates N times
 *   fork_child WAY        a way of the list below; the parent allocates 3 times before, or 4 in all
 *
 * Exit status 0: parent and children ended as they should.
 */
#include <cuda.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static CUdeviceptr last;
static const char *self;

static int use_cuda(int n_allocs)
{
	static CUcontext context;
	int error = 0;

	if (!context)
		error = cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
			cuCtxSetCurrent(context);
	while (!error && n_allocs--)
		error = cuMemAlloc(&last, 1 << 20);
	return error;
}

/* True when the child ended with this wait status. */
static int ended(pid_t child, int expected)
{
	int status = -1;

	if (child > 0 && waitpid(child, &status, 0) == child && status == expected)
		return 1;
	fprintf(stderr, "child %d: wait status %x, not %x\n", (int)child, (unsigned)status,
		(unsigned)expected);
	return 0;
}

/* The wait status of a process that ended with n. */
#define EXITED(n) ((n) << 8)

/* The child was there first: both have a CUDA of their own. */
static int before(void)
{
	pid_t child = fork();

	if (!child)
		exit(use_cuda(2) ? 1 : 7);
	return !use_cuda(3) && ended(child, EXITED(7));
}

/* The child of a process with CUDA that goes through exit(), with all its handlers, and uses none.
 */
static int idle(void)
{
	pid_t child = use_cuda(3) ? -1 : fork();

	if (!child)
		exit(4);
	return ended(child, EXITED(4)) && !use_cuda(1);
}

static int quick(void)
{
	pid_t child = use_cuda(3) ? -1 : fork();

	if (!child)
		_exit(5);
	return ended(child, EXITED(5)) && !use_cuda(1);
}

static int killed(void)
{
	pid_t child = use_cuda(3) ? -1 : fork();

	if (!child)
		raise(SIGKILL);
	return ended(child, SIGKILL) && !use_cuda(1);
}

/* CUDA cannot be used in such a child: the driver refuses, whatever is called. */
static int refused(void)
{
	pid_t child = use_cuda(3) ? -1 : fork();

	if (!child)
		exit(cuMemAlloc(&last, 1 << 20) && cuMemFree(last) && cuInit(0) ? 6 : 1);
	return ended(child, EXITED(6)) && !use_cuda(1);
}

static int with_exec(void)
{
	pid_t child = use_cuda(3) ? -1 : fork();

	if (!child) {
		execl(self, self, "leak", "2", NULL);
		_exit(1);
	}
	return ended(child, EXITED(0)) && !use_cuda(1);
}

static int with_vfork(void)
{
	pid_t child = use_cuda(3) ? -1 : vfork();

	if (!child) {
		execl(self, self, "leak", "2", NULL);
		_exit(1);
	}
	return ended(child, EXITED(0)) && !use_cuda(1);
}

static int with_spawn(void)
{
	char *arguments[] = {(char *)self, "leak", "2", NULL};
	pid_t child = -1;

	if (use_cuda(3) || posix_spawn(&child, self, NULL, NULL, arguments, environ))
		return 0;
	return ended(child, EXITED(0)) && !use_cuda(1);
}

static int with_system(void)
{
	return !use_cuda(3) && system("exit 9") == EXITED(9) && !use_cuda(1);
}

static void *alloc_and_free(void *result)
{
	static CUcontext context;
	CUdeviceptr block;
	int error = cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context);

	for (int i = 0; i < 2000 && !error; i++)
		error = cuMemAlloc(&block, 4096) || cuMemFree(block);
	*(int *)result = error;
	return NULL;
}

/* Children made while other threads are inside the recorder. */
static int storm(void)
{
	pthread_t threads[4];
	int errors[4], good = !use_cuda(3);

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, alloc_and_free, &errors[i]);
	for (int i = 0; i < 40 && good; i++) {
		pid_t child = fork();

		if (!child && i % 2)
			_exit(3);
		if (!child)
			exit(3);
		good = ended(child, EXITED(3));
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		good = good && !errors[i];
	}
	return good && !use_cuda(1);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} ways[] = {
		{"before", before},
		{"idle", idle},
		{"quick", quick},
		{"killed", killed},
		{"refused", refused},
		{"exec", with_exec},
		{"vfork", with_vfork},
		{"spawn", with_spawn},
		{"system", with_system},
		{"storm", storm},
	};

	self = argv[0];
	if (argc == 3 && !strcmp(argv[1], "leak"))
		return use_cuda(atoi(argv[2])) != 0;
	for (size_t i = 0; argc == 2 && i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(argv[1], ways[i].name))
			return !ways[i].run();
	fprintf(stderr, "usage: fork_child leak N | WAY\n");
	return 2;
}
