/* A program that says where it is through vramtrace.h, on two threads and in odd ways. Prints how
 * much host memory it could lock. */
#include <cuda.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vramtrace/vramtrace.h>

#define MIB (1u << 20)

static char host[MIB];
static CUdeviceptr device;
static CUcontext context;

static void check(int failed, const char *what)
{
	if (!failed)
		return;
	fprintf(stderr, "%s failed\n", what);
	exit(1);
}

static void copy(int n)
{
	for (int i = 0; i < n; i++)
		check(cuMemcpyHtoD_v2(device, host, sizeof(host)), "cuMemcpyHtoD");
}

static void step(int number)
{
	char name[40];
	CUdeviceptr scratch;

	snprintf(name, sizeof(name), "step %d", number);
	vt_mark(name);
	vt_phase_begin(name);
	check(cuMemAlloc_v2(&scratch, (number == 7 ? 96 : 8) * MIB), "cuMemAlloc");
	vt_phase_begin("copy in");
	copy(3);
	vt_phase_end("copy in");
	check(cuMemFree_v2(scratch), "cuMemFree");
	vt_phase_end(name);
}

/* Has no phase of its own: what it does counts for the main thread's, which it ends. */
static void *helper(void *unused)
{
	check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	copy(2);
	vt_phase_end("handed over");
	return unused;
}

/* Many threads at once; every phase is ended by the thread that began it. */
static void *busy(void *name)
{
	for (int i = 0; i < 200; i++) {
		vt_phase_begin(name);
		vt_mark("tick");
		vt_phase_end(name);
	}
	return NULL;
}

int main(void)
{
	static char names[][8] = {"red", "green", "blue"};
	char long_name[400];
	pthread_t thread, threads[3];

	vt_mark("too early");
	vt_phase_begin("over before");
	vt_phase_end("over before");
	vt_phase_begin("load");
	check(cuInit(0), "cuInit");
	check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	check(cuMemAlloc_v2(&device, 64 * MIB), "cuMemAlloc");
	copy(4);
	vt_phase_end("load");
	errno = 77;
	vt_phase_end("never begun");
	vt_phase_begin(NULL);
	vt_mark(NULL);
	for (int i = 0; i < 10; i++)
		step(i);
	check(errno != 77, "keeping errno");
	vt_phase_begin("handed over");
	pthread_create(&thread, NULL, helper, NULL);
	pthread_join(thread, NULL);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, busy, names[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	vt_mark(long_name);
	printf("%d\n", syscall(SYS_mlock, host, sizeof(host)) ? 0 : (int)sizeof(host));
	vt_phase_begin("tail");
	return 0;
}
