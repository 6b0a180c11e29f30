/*
 * Many threads, or some that outlive the process's end.
 *
 *   threads_exit short N   N threads, eight at a time, each of which allocates, frees and ends
 *   threads_exit outlive   detached threads allocate and free without end while main returns
 */
#include <cuda.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_AT_ONCE 8

static CUcontext context;
static sem_t started;

static int alloc_and_free(size_t bytes)
{
	CUdeviceptr block;

	return cuMemAlloc(&block, bytes) || cuMemFree(block);
}

static void *once(void *unused)
{
	(void)unused;
	return (void *)(size_t)(cuCtxSetCurrent(context) || alloc_and_free(4096));
}

static int short_threads(int n)
{
	pthread_t threads[N_AT_ONCE];
	void *error;

	for (int i = 0; i < n; i += N_AT_ONCE) {
		for (int j = 0; j < N_AT_ONCE; j++)
			if (pthread_create(&threads[j], NULL, once, NULL))
				return 1;
		for (int j = 0; j < N_AT_ONCE; j++)
			if (pthread_join(threads[j], &error) || error)
				return 1;
	}
	return 0;
}

/* Whatever the driver says once it is torn down: this thread goes on until the process is gone. */
static void *forever(void *unused)
{
	(void)unused;
	cuCtxSetCurrent(context);
	for (size_t i = 0;; i++) {
		alloc_and_free(4096);
		if (i == 100)
			sem_post(&started);
	}
	return NULL;
}

static int outlive(void)
{
	pthread_t thread;

	sem_init(&started, 0, 0);
	for (int i = 0; i < N_AT_ONCE; i++)
		if (pthread_create(&thread, NULL, forever, NULL) || pthread_detach(thread))
			return 1;
	for (int i = 0; i < N_AT_ONCE; i++)
		sem_wait(&started);
	return 0;
}

int main(int argc, char **argv)
{
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 1;
	if (argc == 3 && !strcmp(argv[1], "short"))
		return short_threads(atoi(argv[2]));
	if (argc == 2 && !strcmp(argv[1], "outlive"))
		return outlive();
	fprintf(stderr, "usage: threads_exit short N | outlive\n");
	return 2;
}
