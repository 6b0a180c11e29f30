/* The simulated runtime: arrays, boxes, graphs, shared and managed memory. */
#include <cuda_runtime_api.h>

#include <dlfcn.h>
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

static struct cusim_ledger *all(void)
{
	static void (*get)(struct cusim_ledger *);
	static struct cusim_ledger now;

	if (!get)
		*(void **)&get = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cusim_ledger_get");
	CHECK(get);
	get(&now);
	return &now;
}

static struct cusim_device_ledger *ledger(void)
{
	return &all()->devices[0];
}

TEST(arrays_and_rectangles)
{
	struct cudaChannelFormatDesc d = {16, 16, 0, 0, cudaChannelFormatKindUnsigned};
	struct cudaChannelFormatDesc bad = {7, 0, 0, 0, cudaChannelFormatKindSigned};
	unsigned char in[400], out[400] = "";
	cudaArray_t array;
	cudaMipmappedArray_t mipmap;
	void *p;
	size_t pitch;

	for (int i = 0; i < 400; i++)
		in[i] = (unsigned char)(i * 7);
	CHECK_EQUAL(cudaMallocArray(&array, &bad, 10, 10, 0), cudaErrorInvalidValue);
	OK(cudaMallocArray(&array, &d, 10, 10, cudaArrayDefault));
	OK(cudaMallocPitch(&p, &pitch, 40, 10));
	CHECK_EQUAL(ledger()->kinds[CUSIM_ARRAY].live_bytes, 10 * 512);
	OK(cudaMemcpy2DToArray(array, 0, 0, in, 40, 40, 10, cudaMemcpyHostToDevice));
	OK(cudaMemcpy2DFromArray(p, pitch, array, 8, 1, 32, 9, cudaMemcpyDeviceToDevice));
	OK(cudaMemcpy2DAsync(out, 40, p, pitch, 32, 9, cudaMemcpyDeviceToHost, NULL));
	OK(cudaMemcpy2D(out + 320, 40, p, pitch, 32, 2, cudaMemcpyDefault));
	for (int y = 0; y < 8; y++)
		CHECK(!memcmp(out + 40 * y, in + 40 * (y + 1) + 8, 32));
	CHECK(!memcmp(out + 320, in + 48, 32));
	CHECK_EQUAL(ledger()->copies[CUSIM_H2D].bytes, 400);
	CHECK_EQUAL(ledger()->copies[CUSIM_D2D].bytes, 288);
	CHECK_EQUAL(ledger()->copies[CUSIM_D2H].bytes, 288 + 64);
	CHECK_EQUAL(cudaMemcpy2D(out, 40, p, pitch, 1, 1, (enum cudaMemcpyKind)9),
		cudaErrorInvalidMemcpyDirection);
	OK(cudaFreeArray(array));
	OK(cudaFreeArray(NULL));
	OK(cudaMallocMipmappedArray(&mipmap, &d, (struct cudaExtent){16, 16, 0}, 3, 0));
	OK(cudaFreeMipmappedArray(mipmap));
	CHECK_EQUAL(ledger()->kinds[CUSIM_ARRAY].live_bytes, 0);
	CHECK_EQUAL(ledger()->kinds[CUSIM_ARRAY].frees, 2);
}

TEST(boxes)
{
	struct cudaChannelFormatDesc d = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	struct cudaExtent extent = {4, 3, 2};
	struct cudaMemcpy3DParms c = {.extent = extent, .kind = cudaMemcpyHostToDevice};
	struct cudaPitchedPtr p;
	unsigned char in[96], out[96];

	memset(in, 5, sizeof(in));
	OK(cudaMalloc3DArray(&c.dstArray, &d, extent, 0));
	OK(cudaMalloc3D(&p, (struct cudaExtent){16, 3, 2}));
	CHECK_EQUAL(ledger()->kinds[CUSIM_LINEAR].live_bytes, 512 * 6);
	c.srcPtr = (struct cudaPitchedPtr){in, 16, 4, 3};
	OK(cudaMemcpy3D(&c)); /* in elements of the array */
	c.srcArray = c.dstArray;
	c.dstArray = NULL;
	c.srcPtr = (struct cudaPitchedPtr){0};
	c.dstPtr = p;
	c.kind = cudaMemcpyDeviceToDevice;
	OK(cudaMemcpy3DAsync(&c, NULL));
	c = (struct cudaMemcpy3DParms){.extent = {16, 3, 2},
		.srcPtr = p,
		.dstPtr = {out, 16, 16, 3},
		.kind = cudaMemcpyDeviceToHost};
	OK(cudaMemcpy3D(&c)); /* in bytes */
	CHECK(!memcmp(in, out, sizeof(in)));
	CHECK_EQUAL(ledger()->copies[CUSIM_H2D].bytes, 96);
	CHECK_EQUAL(ledger()->copies[CUSIM_D2D].bytes, 96);
	CHECK_EQUAL(ledger()->copies[CUSIM_D2H].bytes, 96);
	c.dstPtr.ptr = NULL;
	CHECK_EQUAL(cudaMemcpy3D(&c), cudaErrorInvalidValue);
}

TEST(graphs)
{
	struct cudaMemAllocNodeParams params = {
		.poolProps = {.allocType = cudaMemAllocationTypePinned,
			.location = {.type = cudaMemLocationTypeDevice}},
		.bytesize = 3 * MIB};
	cudaGraph_t graph;
	cudaGraphNode_t alloc, empty;
	cudaGraphExec_t exec;
	unsigned long long used;

	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	OK(cudaGraphAddEmptyNode(&empty, graph, &alloc, 1));
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, NULL));
	CHECK_EQUAL(ledger()->kinds[CUSIM_GRAPH].live_bytes, 3 * MIB);
	OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
	CHECK_EQUAL(used, 4 * MIB);
	OK(cudaMemset(params.dptr, 1, 3 * MIB));
	OK(cudaFreeAsync(params.dptr, NULL));
	OK(cudaDeviceGraphMemTrim(0));
	CHECK_EQUAL(ledger()->graph_reserved_bytes, 0);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphAddMemFreeNode(&empty, graph, &empty, 1, params.dptr));
#if CUDART_VERSION >= 12000
	OK(cudaGraphInstantiate(&exec, graph, 0));
#else
	OK(cudaGraphInstantiate(&exec, graph, NULL, NULL, 0));
#endif
	OK(cudaGraphLaunch(exec, NULL));
	OK(cudaGraphLaunch(exec, NULL));
	CHECK_EQUAL(ledger()->kinds[CUSIM_GRAPH].frees, 3);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	CHECK_EQUAL(ledger()->graph_launches, 3);
}

TEST(shared_and_managed_memory, "CUSIM_IPC_SELF", "1")
{
	cudaIpcMemHandle_t handle;
	void *p, *alias, *managed;

	OK(cudaMalloc(&p, 5000));
	OK(cudaIpcGetMemHandle(&handle, p));
	OK(cudaIpcOpenMemHandle(&alias, handle, cudaIpcMemLazyEnablePeerAccess));
	OK(cudaMemset(alias, 1, 5000));
	CHECK_EQUAL(ledger()->kinds[CUSIM_SHARED].live_bytes, 5000);
	OK(cudaIpcCloseMemHandle(alias));
	CHECK_EQUAL(cudaIpcCloseMemHandle(alias), cudaErrorInvalidValue);
	OK(cudaMallocManaged(&managed, 10000, cudaMemAttachGlobal));
#if CUDART_VERSION >= 13000
	struct cudaMemLocation host = {.type = cudaMemLocationTypeHost};

	OK(cudaMemPrefetchAsync(managed, 10000, host, 0, NULL));
	OK(cudaMemAdvise(managed, 10, cudaMemAdviseSetPreferredLocation, host));
#else
	OK(cudaMemPrefetchAsync(managed, 10000, cudaCpuDeviceId, NULL));
	OK(cudaMemAdvise(managed, 10, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId));
#endif
	CHECK_EQUAL(all()->migrations[CUSIM_PREFETCH].bytes, 10000);
	CHECK_EQUAL(all()->migrations[CUSIM_ADVISE].bytes, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_and_rectangles),
		cmocka_unit_test(boxes),
		cmocka_unit_test(graphs),
		cmocka_unit_test(shared_and_managed_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
