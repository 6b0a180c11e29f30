/*
 * C between Python and the driver: chain_a calls a function, chain_b allocates, each through a
 * function that the file does not export. None of the calls is a tail call.
 */
#include <pthread.h>
#include <stddef.h>

int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuCtxSetCurrent(void *context);

static volatile int n_calls;

__attribute__((noinline)) static int b_hidden(size_t bytes)
{
	unsigned long long address;
	int error = cuMemAlloc_v2(&address, bytes);

	n_calls++;
	return error;
}

int chain_b(size_t bytes)
{
	int error = b_hidden(bytes);

	n_calls++;
	return error;
}

__attribute__((noinline)) static int a_hidden(int (*function)(int), int argument)
{
	int result = function(argument);

	n_calls++;
	return result;
}

int chain_a(int (*function)(int), int argument)
{
	int result = a_hidden(function, argument);

	n_calls++;
	return result;
}

struct job {
	void *context;
	int (*function)(int);
	size_t bytes;
	int result;
};

/* Allocates in a thread that Python knows nothing of, then calls a function there. */
static void *run_job(void *argument)
{
	struct job *job = argument;

	job->result =
		cuCtxSetCurrent(job->context) || chain_b(job->bytes) || chain_a(job->function, 1);
	return NULL;
}

int chain_thread(void *context, int (*function)(int), size_t bytes)
{
	struct job job = {context, function, bytes, 1};
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_job, &job) || pthread_join(thread, NULL))
		return 1;
	return job.result;
}
