/*
 * A family of processes. Each does its steps in order:
 *
 *   cN    makes a context on device N, or goes back to it
 *   rN    lets go of it
 *   aN    allocates N MiB there, which stay
 *   f     frees the last of them
 *   pN    page-locks N MiB of host memory
 *   xX    writes an IPC handle of the last allocation to the file X
 *   iX    opens the one that is there
 *   +X    makes the file X
 *   -X    waits for it
 *   zN    sleeps N milliseconds
 *   (     a child of fork does the steps up to ), of vfork and exec with v(, of posix_spawn with s(
 *   w     waits for all children
 *   e     becomes itself again by exec, with the steps that follow
 *   k     dies of SIGKILL
 *   q     ends with _exit
 *
 * A child ends behind its steps, with 0. The exit status is 1 when a call failed, with a line that
 * says which.
 */
#include <cuda.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB	  (1u << 20)
#define MAX_STEPS 64

static char *self;
static CUdeviceptr blocks[16];
static unsigned int n_blocks;

static __attribute__((noreturn)) void failed(const char *step)
{
	fprintf(stderr, "pid %d: %s failed\n", (int)getpid(), step);
	exit(1);
}

static CUcontext contexts[8];

static CUresult use_context(int device)
{
	CUresult result = cuInit(0);

	if (!result && !contexts[device])
		result = cuDevicePrimaryCtxRetain(&contexts[device], device);
	return result ? result : cuCtxSetCurrent(contexts[device]);
}

static CUresult let_go(int device)
{
	contexts[device] = NULL;
	return cuDevicePrimaryCtxRelease(device);
}

static CUresult take(const char *megabytes)
{
	return cuMemAlloc(&blocks[n_blocks++], (size_t)atoi(megabytes) * MIB);
}

static CUresult pin(const char *megabytes)
{
	void *host;

	return cuMemAllocHost(&host, (size_t)atoi(megabytes) * MIB);
}

/* Whole or not at all. */
static void put_file(const char *name, const void *bytes, size_t n)
{
	char other[256];
	FILE *file;

	snprintf(other, sizeof(other), "%s.new", name);
	file = fopen(other, "w");
	if (!file || fwrite(bytes, 1, n, file) != n || fclose(file) || rename(other, name))
		failed(name);
}

static void await_file(const char *name)
{
	for (int i = 0; access(name, F_OK); i++) {
		if (i > 30000)
			failed(name);
		usleep(1000);
	}
}

static CUresult export(const char *name)
{
	CUipcMemHandle handle;
	CUresult result = cuIpcGetMemHandle(&handle, blocks[n_blocks - 1]);

	if (!result)
		put_file(name, &handle, sizeof(handle));
	return result;
}

static CUresult import(const char *name)
{
	CUipcMemHandle handle;
	CUdeviceptr address;
	FILE *file;

	await_file(name);
	file = fopen(name, "r");
	if (!file || fread(&handle, sizeof(handle), 1, file) != 1)
		failed(name);
	fclose(file);
	return cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

/* The step behind the one that closes this bracket. */
static char **behind(char **step)
{
	int depth = 0;

	do {
		size_t length = strlen(*step);

		depth += (*step)[length - 1] == '(';
		depth -= !strcmp(*step, ")");
	} while (depth && *++step);
	return *step ? step + 1 : step;
}

static int run(char **step);

/* The steps in brackets, as the arguments of another program. */
static char **inside(char **step)
{
	static char *arguments[MAX_STEPS];
	char **end = behind(step) - 1;
	size_t n = 0;

	arguments[n++] = self;
	for (step++; step < end && n + 1 < MAX_STEPS; step++)
		arguments[n++] = *step;
	arguments[n] = NULL;
	return arguments;
}

static void make_child(char **step)
{
	char **arguments = inside(step);
	pid_t child = -1;

	if (**step == 's') {
		if (posix_spawn(&child, self, NULL, NULL, arguments, environ))
			child = -1;
	} else if (**step == 'v') {
		child = vfork();
		if (!child) {
			execv(self, arguments);
			_exit(1);
		}
	} else {
		child = fork();
		if (!child)
			exit(run(arguments + 1));
	}
	if (child < 0)
		failed(*step);
}

static void wait_for_all(void)
{
	int status;

	while (wait(&status) > 0)
		if (status && status != SIGKILL)
			failed("a child");
}

static CUresult do_step(char **step)
{
	const char *rest = *step + 1;

	switch (**step) {
	case 'c':
		return use_context(atoi(rest));
	case 'r':
		return let_go(atoi(rest));
	case 'a':
		return take(rest);
	case 'f':
		return cuMemFree(blocks[--n_blocks]);
	case 'p':
		return pin(rest);
	case 'x':
		return export(rest);
	case 'i':
		return import(rest);
	case '+':
		put_file(rest, "", 0);
		break;
	case '-':
		await_file(rest);
		break;
	case 'z':
		usleep(1000 * (useconds_t)atoi(rest));
		break;
	case 'w':
		wait_for_all();
		break;
	case 'e':
		*step = self;
		execv(self, step);
		break;
	case 'k':
		raise(SIGKILL);
		break;
	case 'q':
		_exit(0);
	default:
		failed(*step);
	}
	return CUDA_SUCCESS;
}

static int run(char **step)
{
	while (*step) {
		if ((*step)[strlen(*step) - 1] == '(') {
			make_child(step);
			step = behind(step);
			continue;
		}
		if (do_step(step))
			failed(*step);
		step++;
	}
	return 0;
}

int main(int argc, char **argv)
{
	(void)argc;
	self = argv[0];
	return run(argv + 1);
}
