/*
 * An inference service in miniature, without kernels: what moves its memory is all here. Each
 * function below does one thing that a report of vramtrace shows:
 *
 *   load_weights       copies through pinned memory, piece by piece
 *   warm_up            takes large scratch buffers for a moment: the peak
 *   build_index        makes many small blocks and frees every other one: their pages stay taken
 *   copy_in            copies from pageable memory for each request
 *   remember_request   a cache that only grows: the leak
 *   copy_out           copies back into pinned memory
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024ul
#define MIB (1024 * KIB)

#define WEIGHT_BYTES  (96 * MIB)
#define STAGING_BYTES (8 * MIB)
#define SCRATCH_BYTES (128 * MIB)
#define INPUT_BYTES   (512 * KIB)
#define RESULT_BYTES  (32 * KIB)
#define ENTRY_BYTES   (192 * KIB)
#define INDEX_BYTES   (48 * KIB)

#define N_SCRATCH  3
#define N_INDEX	   512
#define N_REQUESTS 200

struct service {
	char *weights;
	char *staging; /* pinned, on the host */
	char *index[N_INDEX];
	char *input;
	char *result;
	char *host_input; /* pageable, on the host */
	cudaStream_t stream;
};

/* A cached answer. Entries are added and never removed. */
struct entry {
	struct entry *next;
	char *data;
};
static struct entry *cache;

static void check(cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "demo: %s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}

static void *need(void *memory)
{
	if (!memory) {
		fprintf(stderr, "demo: out of host memory\n");
		exit(1);
	}
	return memory;
}

static void load_weights(struct service *service)
{
	check(cudaMallocHost((void **)&service->staging, STAGING_BYTES), "staging buffer");
	check(cudaMalloc((void **)&service->weights, WEIGHT_BYTES), "weights");
	for (size_t done = 0; done < WEIGHT_BYTES; done += STAGING_BYTES) {
		/* A real service would read its file here. */
		memset(service->staging, (int)(done / STAGING_BYTES), STAGING_BYTES);
		check(cudaMemcpyAsync(service->weights + done, service->staging, STAGING_BYTES,
			      cudaMemcpyHostToDevice, service->stream),
			"copy of weights");
		check(cudaStreamSynchronize(service->stream), "copy of weights");
	}
}

static void warm_up(struct service *service)
{
	char *scratch[N_SCRATCH];

	for (int i = 0; i < N_SCRATCH; i++)
		check(cudaMalloc((void **)&scratch[i], SCRATCH_BYTES), "scratch buffer");
	check(cudaMemsetAsync(scratch[0], 0, INPUT_BYTES, service->stream), "memset");
	check(cudaStreamSynchronize(service->stream), "warm-up");
	for (int i = 0; i < N_SCRATCH; i++)
		check(cudaFree(scratch[i]), "free of a scratch buffer");
}

static void build_index(struct service *service)
{
	for (int i = 0; i < N_INDEX; i++)
		check(cudaMalloc((void **)&service->index[i], INDEX_BYTES), "index");
	/* Half of the index is dropped again; no page of it comes free. */
	for (int i = 1; i < N_INDEX; i += 2) {
		check(cudaFree(service->index[i]), "free of an index block");
		service->index[i] = NULL;
	}
}

static void copy_in(struct service *service, int request)
{
	service->host_input[0] = (char)request;
	check(cudaMemcpy(service->input, service->host_input, INPUT_BYTES, cudaMemcpyHostToDevice),
		"copy of an input");
}

static void run_model(struct service *service)
{
	check(cudaMemcpyAsync(service->result, service->input, RESULT_BYTES,
		      cudaMemcpyDeviceToDevice, service->stream),
		"model");
}

static void remember_request(struct service *service)
{
	struct entry *entry = need(malloc(sizeof(*entry)));

	check(cudaMalloc((void **)&entry->data, ENTRY_BYTES), "cache entry");
	check(cudaMemcpyAsync(entry->data, service->input, ENTRY_BYTES, cudaMemcpyDeviceToDevice,
		      service->stream),
		"copy into the cache");
	entry->next = cache;
	cache = entry;
}

static void copy_out(struct service *service)
{
	check(cudaMemcpyAsync(service->staging, service->result, RESULT_BYTES,
		      cudaMemcpyDeviceToHost, service->stream),
		"copy of a result");
	check(cudaStreamSynchronize(service->stream), "request");
}

static void handle_request(struct service *service, int request)
{
	copy_in(service, request);
	run_model(service);
	remember_request(service);
	copy_out(service);
}

static void serve(struct service *service)
{
	check(cudaMalloc((void **)&service->input, INPUT_BYTES), "input");
	check(cudaMalloc((void **)&service->result, RESULT_BYTES), "result");
	service->host_input = need(calloc(1, INPUT_BYTES));
	for (int i = 0; i < N_REQUESTS; i++)
		handle_request(service, i);
}

/* Gives everything back but the cache. */
static void stop(struct service *service)
{
	for (int i = 0; i < N_INDEX; i++)
		check(cudaFree(service->index[i]), "free of the index");
	check(cudaFree(service->input), "free of the input");
	check(cudaFree(service->result), "free of the result");
	check(cudaFree(service->weights), "free of the weights");
	check(cudaFreeHost(service->staging), "free of the staging buffer");
	check(cudaStreamDestroy(service->stream), "stream");
	free(service->host_input);
}

int main(void)
{
	struct service service = {0};

	check(cudaStreamCreate(&service.stream), "stream");
	load_weights(&service);
	warm_up(&service);
	build_index(&service);
	serve(&service);
	stop(&service);
	printf("demo: %d requests served\n", N_REQUESTS);
	return 0;
}
