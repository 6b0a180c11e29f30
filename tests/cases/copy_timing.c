/*
 * Asynchronous copies of every shape, on streams of every sort, from threads that end early and in
 * contexts that are destroyed while copies are under way; and captures at the same time, which
 * must come to a good end. Prints what the program's own events say of each copy it timed, and how
 * every call ended: the same with and without the recorder.
 *
 *   copy_timing shapes | threads | contexts | captures | crowd
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES	 (1u << 20)
#define N_COPIES 40

static CUcontext context;
static CUdeviceptr buffer;
static char *pinned;

#define MUST(call)                                                                                 \
	do {                                                                                       \
		CUresult result_ = (call);                                                         \
		if (result_) {                                                                     \
			printf("%s: %d\n", #call, (int)result_);                                   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static CUstream stream_new(void)
{
	CUstream stream;

	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

static void begin(CUcontext *out)
{
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(out, 0));
	MUST(cuCtxSetCurrent(*out));
	MUST(cuMemAlloc_v2(&buffer, 4 * BYTES));
	MUST(cuMemHostAlloc((void **)&pinned, 4 * BYTES, 0));
}

/* Makes the copy and prints its time by events of our own. */
#define TIMED(what, stream, record, copy)                                                          \
	do {                                                                                       \
		CUevent a, b;                                                                      \
		float ms;                                                                          \
		MUST(cuEventCreate(&a, 0));                                                        \
		MUST(cuEventCreate(&b, 0));                                                        \
		MUST(record(a, stream));                                                           \
		MUST(copy);                                                                        \
		MUST(record(b, stream));                                                           \
		MUST(cuEventSynchronize(b));                                                       \
		MUST(cuEventElapsedTime(&ms, a, b));                                               \
		fprintf(stderr, "%s %.0f\n", what, (double)ms * 1e6);                              \
		MUST(cuEventDestroy_v2(a));                                                        \
		MUST(cuEventDestroy_v2(b));                                                        \
	} while (0)

static void shapes(void)
{
	CUstream own = stream_new(), legacy = NULL, per_thread = CU_STREAM_PER_THREAD;
	CUDA_MEMCPY2D box = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = pinned,
		.srcPitch = 4096,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = buffer,
		.dstPitch = 4096,
		.WidthInBytes = 4096,
		.Height = 256};

	for (int i = 0; i < 4; i++) {
		TIMED("own", own, cuEventRecord, cuMemcpyHtoDAsync_v2(buffer, pinned, BYTES, own));
		TIMED("legacy", legacy, cuEventRecord,
			cuMemcpyHtoDAsync_v2(buffer, pinned, BYTES, legacy));
		TIMED("per-thread", legacy, cuEventRecord_ptsz,
			cuMemcpyDtoHAsync_v2_ptsz(pinned, buffer, BYTES, legacy));
		TIMED("per-thread-handle", per_thread, cuEventRecord,
			cuMemcpyAsync(buffer, buffer + 2 * BYTES, BYTES, per_thread));
		TIMED("box", own, cuEventRecord, cuMemcpy2DAsync_v2(&box, own));
#if CUDA_VERSION >= 13000
		{
			CUdeviceptr dsts[2] = {buffer, buffer + BYTES};
			CUdeviceptr srcs[2] = {(CUdeviceptr)pinned, (CUdeviceptr)pinned + BYTES};
			size_t sizes[2] = {BYTES / 2, BYTES / 2}, first = 0;
			CUmemcpyAttributes attributes = {
				.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};

			TIMED("batch", own, cuEventRecord,
				cuMemcpyBatchAsync_v2(
					dsts, srcs, sizes, 2, &attributes, &first, 1, own));
		}
#endif
	}
	/* Later calls read the last times. */
	for (int i = 0; i < 10; i++)
		MUST(cuStreamSynchronize(own));
}

static void *copy_and_end(void *unused)
{
	CUstream stream;

	(void)unused;
	MUST(cuCtxSetCurrent(context));
	stream = stream_new();
	for (int i = 0; i < N_COPIES; i++)
		MUST(cuMemcpyHtoDAsync_v2(buffer, pinned, BYTES, stream));
	return NULL;
}

/* A thread that ends leaves copies under way; the next one finds their times. */
static void threads(void)
{
	pthread_t thread;

	for (int i = 0; i < 8; i++) {
		pthread_create(&thread, NULL, copy_and_end, NULL);
		pthread_join(thread, NULL);
	}
	MUST(cuCtxSynchronize());
	for (int i = 0; i < 400; i++)
		MUST(cuMemcpyHtoDAsync_v2(buffer, pinned, 16, NULL));
}

static void contexts(void)
{
	CUcontext other;
	CUdeviceptr there;

	for (int round = 0; round < 5; round++) {
		MUST(cuCtxCreate_v2(&other, 0, 0));
		MUST(cuMemAlloc_v2(&there, BYTES));
		for (int i = 0; i < N_COPIES; i++)
			MUST(cuMemcpyHtoDAsync_v2(there, pinned, BYTES, stream_new()));
		MUST(cuCtxDestroy_v2(other));
		MUST(cuCtxSetCurrent(context));
		for (int i = 0; i < N_COPIES; i++)
			MUST(cuMemcpyHtoDAsync_v2(buffer, pinned, 4096, NULL));
		MUST(cuCtxSynchronize());
	}
	MUST(cuDevicePrimaryCtxReset_v2(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	MUST(cuMemAlloc_v2(&buffer, BYTES));
	for (int i = 0; i < N_COPIES; i++)
		MUST(cuMemcpyDtoDAsync_v2(buffer, buffer + BYTES / 2, 4096, NULL));
	MUST(cuCtxSynchronize());
}

static atomic_bool done;

static void *keep_copying(void *unused)
{
	CUstream stream;

	(void)unused;
	MUST(cuCtxSetCurrent(context));
	stream = stream_new();
	while (!done)
		MUST(cuMemcpyHtoDAsync_v2(buffer + 2 * BYTES, pinned + 2 * BYTES, 4096, stream));
	MUST(cuStreamSynchronize(stream));
	return NULL;
}

/* Other threads copy all the time; nothing that the recorder does for them may end a capture. */
static void captures(void)
{
	CUstream stream = stream_new();
	pthread_t copiers[2];
	size_t n_nodes = 0;
	CUgraphExec exec;
	CUgraph graph;

	for (int i = 0; i < 2; i++)
		pthread_create(&copiers[i], NULL, keep_copying, NULL);
	for (int round = 0; round < 300; round++) {
		MUST(cuMemcpyHtoDAsync_v2(buffer, pinned, 4096, stream));
		MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
		MUST(cuMemcpyHtoDAsync_v2(buffer, pinned, BYTES, stream));
		MUST(cuMemcpyDtoHAsync_v2(pinned, buffer, 4096, stream));
		MUST(cuStreamEndCapture(stream, &graph));
		MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
		MUST(cuGraphLaunch(exec, stream));
		MUST(cuStreamSynchronize(stream));
		MUST(cuGraphExecDestroy(exec));
		MUST(cuGraphDestroy(graph));
		n_nodes++;
	}
	done = true;
	for (int i = 0; i < 2; i++)
		pthread_join(copiers[i], NULL);
	printf("%zu captures\n", n_nodes);
}

/* More copies under way than there are events for: some are not timed, none waits. */
static void crowd(void)
{
	CUstream stream = stream_new();

	for (int i = 0; i < 1000; i++)
		MUST(cuMemcpyHtoDAsync_v2(buffer, pinned, 65536, stream));
	MUST(cuStreamSynchronize(stream));
	for (int i = 0; i < 100; i++)
		MUST(cuStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {{"shapes", shapes}, {"threads", threads}, {"contexts", contexts},
		{"captures", captures}, {"crowd", crowd}};

	for (size_t i = 0; argc > 1 && i < sizeof(all) / sizeof(*all); i++) {
		if (strcmp(argv[1], all[i].name))
			continue;
		begin(&context);
		all[i].run();
		puts("done");
		return 0;
	}
	return 2;
}
