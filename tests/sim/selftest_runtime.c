/* The simulated runtime: what its calls become at the driver. */
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cusim.h"
#include "selftest.h"

#define MIB	 (1ull << 20)
#define OK(call) CHECK_EQUAL(call, cudaSuccess)

static struct cusim_device_ledger *ledger(int device)
{
	static void (*get)(struct cusim_ledger *);
	static struct cusim_ledger now;

	if (!get)
		*(void **)&get = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cusim_ledger_get");
	CHECK(get);
	get(&now);
	return &now.devices[device];
}

TEST(starts_by_itself, "CUSIM_DEVICES", "3")
{
	struct cudaDeviceProp properties;
	int count, device, version;
	size_t free_bytes, total;

	OK(cudaGetDeviceCount(&count));
	CHECK_EQUAL(count, 3);
	CHECK_EQUAL(ledger(0)->page_bytes, 0);
	OK(cudaMemGetInfo(&free_bytes, &total));
	CHECK_EQUAL(total - free_bytes, 64 * MIB);
	OK(cudaSetDevice(2));
	OK(cudaGetDevice(&device));
	CHECK_EQUAL(device, 2);
	CHECK_EQUAL(ledger(2)->footprint_bytes, 64 * MIB);
	CHECK_EQUAL(ledger(1)->footprint_bytes, 0);
	OK(cudaGetDeviceProperties(&properties, 1));
	CHECK_EQUAL(properties.totalGlobalMem, 8192 * MIB);
	CHECK_EQUAL(properties.major, 9);
	OK(cudaDriverGetVersion(&version));
	CHECK_EQUAL(version, 13000);
	OK(cudaRuntimeGetVersion(&version));
	CHECK_EQUAL(version, CUDART_VERSION);
}

TEST(memory_of_each_kind)
{
	struct cusim_kind_ledger *kinds;
	void *linear, *pitched, *managed, *pinned, *pinned2, *async, *heap = malloc(777);
	size_t pitch;

	OK(cudaMalloc(&linear, 1000));
	OK(cudaMallocPitch(&pitched, &pitch, 700, 3));
	OK(cudaMallocManaged(&managed, 2000, cudaMemAttachGlobal));
	OK(cudaMallocHost(&pinned, 3000));
	OK(cudaHostAlloc(&pinned2, 4000, cudaHostAllocPortable));
	OK(cudaHostRegister(heap, 777, cudaHostRegisterDefault));
	OK(cudaMallocAsync(&async, 5000, NULL));
	kinds = ledger(0)->kinds;
	CHECK_EQUAL(kinds[CUSIM_LINEAR].live_bytes, 1000 + 3 * 1024);
	CHECK_EQUAL(kinds[CUSIM_MANAGED].live_bytes, 2000);
	CHECK_EQUAL(kinds[CUSIM_PINNED].live_bytes, 7000);
	CHECK_EQUAL(kinds[CUSIM_REGISTERED].live_bytes, 777);
	CHECK_EQUAL(kinds[CUSIM_POOL].live_bytes, 5000);
	OK(cudaFree(linear));
	OK(cudaFree(pitched));
	OK(cudaFree(managed));
	OK(cudaFree(NULL));
	OK(cudaFreeHost(pinned));
	OK(cudaFreeHost(pinned2));
	OK(cudaFreeHost(NULL));
	OK(cudaHostUnregister(heap));
	OK(cudaFreeAsync(async, NULL));
	kinds = ledger(0)->kinds;
	for (int i = 0; i < CUSIM_N_KINDS; i++)
		CHECK_EQUAL(kinds[i].live_count, 0);
	free(heap);
}

TEST(copies_by_kind, "CUSIM_DEVICES", "2")
{
	char in[5000], out[5000] = "";
	void *a, *b, *other;

	memset(in, 9, sizeof(in));
	OK(cudaSetDevice(1));
	OK(cudaMalloc(&other, sizeof(in)));
	OK(cudaSetDevice(0));
	OK(cudaMalloc(&a, sizeof(in)));
	OK(cudaMalloc(&b, sizeof(in)));
	OK(cudaMemset(a, 1, sizeof(in)));
	OK(cudaMemcpy(a, in, sizeof(in), cudaMemcpyHostToDevice));
	OK(cudaMemcpyAsync(b, a, sizeof(in), cudaMemcpyDeviceToDevice, NULL));
	OK(cudaMemcpyPeer(other, 1, b, 0, sizeof(in)));
	OK(cudaMemcpy(out, other, 2500, cudaMemcpyDeviceToHost));
	OK(cudaMemcpy(out + 2500, (char *)other + 2500, 2500, cudaMemcpyDefault));
	CHECK(!memcmp(in, out, sizeof(in)));
	CHECK_EQUAL(ledger(0)->copies[CUSIM_H2D].bytes, 5000);
	CHECK_EQUAL(ledger(0)->copies[CUSIM_D2D].bytes, 5000);
	CHECK_EQUAL(ledger(1)->copies[CUSIM_P2P].bytes, 5000);
	CHECK_EQUAL(ledger(1)->copies[CUSIM_D2H].bytes, 5000);
	CHECK_EQUAL(ledger(1)->copies[CUSIM_D2H].calls, 2);
	CHECK_EQUAL(ledger(0)->sets.bytes, 5000);
	CHECK_EQUAL(cudaMemcpy(a, in, 1, (enum cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
	CHECK_EQUAL(cudaMemcpyPeer(other, 5, b, 0, 1), cudaErrorInvalidDevice);
}

TEST(errors_are_kept, "CUSIM_FAIL", "cuMemAllocPitch_v2:1:2")
{
	struct cudaPointerAttributes attributes;
	size_t pitch;
	void *p;

	CHECK_EQUAL(cudaMalloc(&p, 1ull << 40), cudaErrorMemoryAllocation);
	CHECK_EQUAL(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
	OK(cudaMalloc(&p, 1));
	CHECK_EQUAL(cudaGetLastError(), cudaErrorMemoryAllocation);
	CHECK_EQUAL(cudaGetLastError(), cudaSuccess);
	CHECK(!strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"));
	CHECK_EQUAL(cudaMallocPitch(&p, &pitch, 10, 10), cudaErrorMemoryAllocation);
	OK(cudaMallocPitch(&p, &pitch, 10, 10));
	OK(cudaPointerGetAttributes(&attributes, p));
	CHECK_EQUAL(attributes.type, cudaMemoryTypeDevice);
	OK(cudaPointerGetAttributes(&attributes, &p));
	CHECK_EQUAL(attributes.type, cudaMemoryTypeUnregistered);
	CHECK_EQUAL(cudaFree((char *)p + 512), cudaErrorInvalidValue);
	CHECK_EQUAL(cudaSetDevice(1), cudaErrorInvalidDevice);
}

static void *in_another_thread(void *p)
{
	CHECK_EQUAL(cudaGetLastError(), cudaSuccess);
	OK(cudaFree(p));
	return NULL;
}

TEST(a_reset_ends_everything)
{
	pthread_t thread;
	void *p, *q;

	OK(cudaMalloc(&p, 100));
	OK(cudaMalloc(&q, 200));
	OK(cudaDeviceSetLimit(cudaLimitStackSize, 2048));
	CHECK_EQUAL(ledger(0)->footprint_bytes, 72 * MIB);
	CHECK(pthread_create(&thread, NULL, in_another_thread, q) == 0);
	pthread_join(thread, NULL);
	OK(cudaDeviceReset());
	CHECK_EQUAL(ledger(0)->page_bytes, 0);
	CHECK_EQUAL(ledger(0)->kinds[CUSIM_LINEAR].implicit_frees, 1);
	OK(cudaMalloc(&p, 300));
	CHECK_EQUAL(ledger(0)->kinds[CUSIM_LINEAR].live_bytes, 300);
	CHECK_EQUAL(ledger(0)->footprint_bytes, 64 * MIB);
	OK(cudaFree(p));
}

TEST(streams_and_captures)
{
	cudaStream_t stream;
	cudaEvent_t before, after;
	cudaGraph_t graph;
	float ms = -1;
	void *p;

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaEventCreate(&before));
	OK(cudaEventCreateWithFlags(&after, cudaEventDefault));
	OK(cudaEventRecord(before, stream));
	OK(cudaEventRecord(after, stream));
	OK(cudaEventSynchronize(after));
	OK(cudaEventElapsedTime(&ms, before, after));
	CHECK(ms >= 0);
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CHECK_EQUAL(cudaMalloc(&p, 1), cudaErrorStreamCaptureUnsupported);
	CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphDestroy(graph));
	OK(cudaEventDestroy(before));
	OK(cudaEventDestroy(after));
	OK(cudaStreamSynchronize(stream));
	OK(cudaStreamDestroy(stream));
}

TEST(no_device, "CUSIM_DEVICES", "0")
{
	int count = 7;

	CHECK_EQUAL(cudaGetDeviceCount(&count), cudaErrorNoDevice);
	CHECK_EQUAL(count, 0);
	CHECK_EQUAL(cudaFree(NULL), cudaErrorNoDevice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_by_itself),
		cmocka_unit_test(memory_of_each_kind),
		cmocka_unit_test(copies_by_kind),
		cmocka_unit_test(errors_are_kept),
		cmocka_unit_test(a_reset_ends_everything),
		cmocka_unit_test(streams_and_captures),
		cmocka_unit_test(no_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
