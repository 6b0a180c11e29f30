/* The simulated driver's graphs, and what takes memory without being asked for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "selftest_driver.h"

static CUDA_MEM_ALLOC_NODE_PARAMS alloc_params(size_t bytes)
{
	return (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = bytes};
}

static uint64_t graph_memory(CUgraphMem_attribute attribute)
{
	cuuint64_t value;

	OK(cuDeviceGetGraphMemAttribute(0, attribute, &value));
	return value;
}

static uint64_t owned(enum cusim_owner owner)
{
	return ledger()->devices[0].owned_bytes[owner];
}

TEST(memory_lives_from_launch_to_free)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(5 * MIB);
	size_t before = start(0);
	CUgraph graph;
	CUgraphNode alloc, empty, release;
	CUgraphExec exec, second;
	CUdeviceptr p;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	p = params.dptr;
	OK(cuGraphAddEmptyNode(&empty, graph, &alloc, 1));
	CHECK_EQUAL(cuGraphAddEmptyNode(&empty, graph, &release, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(free_now(), before);
	CHECK_EQUAL(cuMemsetD8_v2(p, 1, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_EQUAL(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQUAL(before - free_now(), 2 * MIB); /* the page that executables share */
	OK(cuGraphLaunch(exec, NULL));
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->live_bytes, 5 * MIB);
	CHECK_EQUAL(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 6 * MIB);
	CHECK_EQUAL(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 32 * MIB);
	CHECK_EQUAL(owned(CUSIM_BY_GRAPHS), 32 * MIB);
	OK(cuMemsetD8_v2(p, 1, 5 * MIB));
	CHECK_EQUAL(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE); /* is still there */
	OK(cuMemFreeAsync(p, NULL));
	CHECK_EQUAL(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphLaunch_ptsz(exec, NULL));
	OK(cuMemFree_v2(p));
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->allocations, 2);
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->frees, 2);
	OK(cuCtxSynchronize());
	CHECK_EQUAL(before - free_now(), 34 * MIB); /* until trimmed */
	OK(cuDeviceGraphMemTrim(0));
	CHECK_EQUAL(before - free_now(), 2 * MIB);
	CHECK_EQUAL(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), 32 * MIB);
	OK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &(cuuint64_t){0}));
	CHECK_EQUAL(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), 0);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	CHECK_EQUAL(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemsetD8_v2(p, 1, 5 * MIB)); /* outlives both */
	OK(cuMemFree_v2(p));
	OK(cuDeviceGraphMemTrim(0));
	CHECK_EQUAL(free_now(), before);
	CHECK_EQUAL(ledger()->devices[0].graph_launches, 3);
	CHECK_EQUAL(ledger()->failed_launches, 1);
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->failed, 0);
	check_sums();
}

TEST(a_graph_frees_what_it_allocates)
{
	CUDA_MEM_ALLOC_NODE_PARAMS a = alloc_params(3 * MIB), b = alloc_params(40 * MIB);
	CUgraph graph, other;
	CUgraphNode node[4];
	CUgraphExec exec;

	start(0);
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&node[0], graph, NULL, 0, &a));
	OK(cuGraphAddMemAllocNode(&node[1], graph, NULL, 0, &b));
	OK(cuGraphAddMemFreeNode(&node[2], graph, node, 1, a.dptr));
	CHECK_EQUAL(
		cuGraphAddMemFreeNode(&node[3], graph, node, 1, a.dptr), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(
		cuGraphAddMemFreeNode(&node[3], graph, node, 1, 4096), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0));
	OK(cuGraphLaunch(exec, NULL));
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->live_bytes, 40 * MIB);
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->peak_live_bytes, 43 * MIB);
	CHECK_EQUAL(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 44 * MIB);
	CHECK_EQUAL(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 64 * MIB);
	OK(cuGraphCreate(&other, 0)); /* another graph frees the rest */
	CHECK_EQUAL(
		cuGraphAddMemFreeNode(&node[3], other, NULL, 0, a.dptr), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphAddMemFreeNode(&node[3], other, NULL, 0, b.dptr));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphInstantiate(&exec, other, NULL, NULL, 0));
	OK(cuGraphLaunch(exec, NULL));
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->live_bytes, 0);
	CHECK_EQUAL(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
	check_sums();
}

TEST(left_over_memory_is_freed_by_launch, "CUSIM_MEMORY", "256M")
{
	CUDA_MEM_ALLOC_NODE_PARAMS a = alloc_params(100 * MIB), b = alloc_params(100 * MIB);
	size_t before = start(0);
	CUgraph graph, large;
	CUgraphNode node;
	CUgraphExec exec, too_large;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &a));
	OK(cuGraphInstantiateWithFlags(
		&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	for (int i = 0; i < 3; i++)
		OK(cuGraphLaunch(exec, NULL));
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->frees, 2);
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->live_count, 1);
	OK(cuGraphCreate(&large, 0));
	OK(cuGraphAddMemAllocNode(&node, large, NULL, 0, &b));
#if CUDA_VERSION >= 12000
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};

	OK(cuGraphInstantiateWithParams(&too_large, large, &params));
	CHECK_EQUAL(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
#else
	OK(cuGraphInstantiateWithFlags(&too_large, large, 0));
#endif
	CHECK_EQUAL(cuGraphLaunch(too_large, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->allocations, 3);
	OK(cuDevicePrimaryCtxReset_v2(0));
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->implicit_frees, 1);
	CHECK_EQUAL(ledger()->devices[0].page_bytes, 0);
	CHECK_EQUAL(cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(start(0), before);
	b.poolProps.location.id = 1;
	CHECK_EQUAL(cuGraphAddMemAllocNode(&node, large, NULL, 0, &b), CUDA_ERROR_INVALID_DEVICE);
	b = alloc_params(0);
	CHECK_EQUAL(cuGraphAddMemAllocNode(&node, large, NULL, 0, &b), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->failed, 2);
}

#if CUDA_VERSION >= 12030
TEST(nodes_of_any_type)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	CUdeviceptr p;
	CUgraph graph;
	CUgraphNode node, next;
	CUgraphExec exec;

	start(0);
	params.alloc.poolProps = alloc_params(0).poolProps;
	params.alloc.bytesize = 1000;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddNode(&node, graph, NULL, 0, &params));
	p = params.alloc.dptr;
	params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY};
	OK(cuGraphAddNode_v2(&next, graph, &node, NULL, 1, &params));
	params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
	params.free.dptr = p;
	OK(cuGraphAddNode_v2(&node, graph, &next, NULL, 1, &params));
	params.type = CU_GRAPH_NODE_TYPE_HOST;
	CHECK_EQUAL(
		cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 3; i++)
		OK(cuGraphLaunch(exec, NULL));
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->frees, 3);
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->failed, 0);
}
#endif

TEST(captured_allocations)
{
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	CUdeviceptr p, q, mine;
	CUstreamCaptureStatus status;

	start(0);
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAllocAsync(&mine, 1000, stream));
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemAllocAsync(&p, 3 * MIB, stream));
	OK(cuMemsetD8Async(p, 1, 3 * MIB, stream));
	OK(cuMemAllocAsync_ptsz(&q, 3 * MIB, stream));
	OK(cuMemFreeAsync(p, stream));
	CHECK_EQUAL(cuMemFreeAsync(mine, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamIsCapturing(stream, &status));
	CHECK_EQUAL(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuStreamEndCapture(stream, &graph));
	CHECK_EQUAL(kind(0, CUSIM_POOL)->allocations, 1);
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->allocations, 0);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->allocations, 2);
	CHECK_EQUAL(kind(0, CUSIM_GRAPH)->live_bytes, 3 * MIB);
	CHECK_EQUAL(cuMemFreeAsync(p, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeAsync(q, stream));
	OK(cuMemFreeAsync(mine, stream));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	check_sums();
}

TEST(executables_take_memory)
{
	size_t before = start(0);
	CUgraph graph;
	CUgraphExec execs[200];

	OK(cuGraphCreate(&graph, 0));
	for (int i = 0; i < 200; i++)
		OK(cuGraphInstantiateWithFlags(&execs[i], graph, 0));
	CHECK_EQUAL(before - free_now(), 14 * MIB); /* 200 * 64 KiB, in whole pages */
	CHECK_EQUAL(owned(CUSIM_BY_GRAPH_EXECS), 14 * MIB);
	for (int i = 0; i < 199; i++)
		OK(cuGraphExecDestroy(execs[i]));
	CHECK_EQUAL(before - free_now(), 2 * MIB);
	OK(cuGraphExecDestroy(execs[199]));
	CHECK_EQUAL(cuGraphExecDestroy(execs[199]), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(free_now(), before);
}

TEST(code_takes_memory)
{
	size_t before = start(0);
	CUmodule module, file, other;
	CUfunction function;

	OK(cuModuleLoadData(&module, "image"));
	OK(cuModuleLoad(&file, "/dev/null"));
	CHECK_EQUAL(cuModuleLoad(&other, "/dev/no such file"), CUDA_ERROR_FILE_NOT_FOUND);
	CHECK_EQUAL(cuModuleLoadFatBinary(&other, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuModuleLoadDataEx(&other, "image", 0, NULL, NULL));
	CHECK_EQUAL(before - free_now(), 6 * MIB);
	OK(cuModuleGetFunction(&function, module, "f"));
	OK(cuModuleGetFunction(&function, module, "g"));
	CHECK_EQUAL(owned(CUSIM_BY_MODULES), 8 * MIB);
	OK(cuModuleUnload(module));
	CHECK_EQUAL(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQUAL(before - free_now(), 4 * MIB);
#if CUDA_VERSION >= 12000
	CUlibrary library;
	CUkernel kernel;

	OK(cuCtxPopCurrent_v2(NULL));
	OK(cuLibraryLoadData(&library, "code", NULL, NULL, 0, NULL, NULL, 0));
	OK(cuCtxPushCurrent_v2(context));
	CHECK_EQUAL(before - free_now(), 4 * MIB); /* no context, no memory yet */
	OK(cuLibraryGetKernel(&kernel, library, "k"));
	OK(cuLibraryGetModule(&module, library));
	CHECK_EQUAL(before - free_now(), 6 * MIB);
	OK(cuKernelGetFunction(&function, kernel));
	CHECK_EQUAL(before - free_now(), 8 * MIB);
	CHECK_EQUAL(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	OK(cuLibraryUnload(library));
	OK(cuLibraryLoadFromFile(&library, "/dev/null", NULL, NULL, 0, NULL, NULL, 0));
	CHECK_EQUAL(before - free_now(), 6 * MIB);
#endif
	check_sums();
	OK(cuDevicePrimaryCtxReset_v2(0));
	CHECK_EQUAL(ledger()->devices[0].page_bytes, 0);
	CHECK_EQUAL(start(0), before);
	CHECK_EQUAL(cuModuleUnload(file), CUDA_ERROR_INVALID_HANDLE);
#if CUDA_VERSION >= 12000
	OK(cuLibraryUnload(library));
#endif
}

TEST(limits_take_memory)
{
	size_t before = start(0);

	CHECK_EQUAL(owned(CUSIM_BY_CONTEXT), 64 * MIB);
	OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 256 * MIB));
	CHECK_EQUAL(free_now(), before); /* none until used */
	CHECK(cusim_device_heap_use() && cusim_device_heap_use());
	CHECK_EQUAL(before - free_now(), 256 * MIB);
	CHECK_EQUAL(owned(CUSIM_BY_DEVICE_HEAP), 256 * MIB);
	CHECK_EQUAL(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, MIB), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16 << 10));
	CHECK_EQUAL(owned(CUSIM_BY_LOCAL_MEMORY), 120 * MIB);
	check_sums();
	OK(cuDevicePrimaryCtxReset_v2(0));
	CHECK_EQUAL(ledger()->devices[0].page_bytes, 0);
	CHECK(!cusim_device_heap_use());
}

#if CUDA_VERSION >= 12040
TEST(green_contexts, "CUSIM_DEVICES", "2")
{
	size_t before = start(0);
	CUdevResource resource;
	CUdevResourceDesc description;
	CUgreenCtx green, other;

	OK(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
	OK(cuDevResourceGenerateDesc(&description, &resource, 1));
	OK(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	CHECK_EQUAL(before - free_now(), 4 * MIB);
	CHECK_EQUAL(cuGreenCtxCreate(&other, description, 0, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuGreenCtxCreate(&other, description, 1, CU_GREEN_CTX_DEFAULT_STREAM));
	CHECK_EQUAL(ledger()->devices[1].page_bytes, 68 * MIB); /* with its primary context */
#if CUDA_VERSION >= 12050
	CUstream stream;
	OK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
	CHECK_EQUAL(cuGreenCtxStreamCreate(&stream, green, 0, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamDestroy_v2(stream));
#endif
	OK(cuGreenCtxDestroy(other));
	CHECK_EQUAL(ledger()->devices[1].page_bytes, 0);
	CHECK_EQUAL(cuGreenCtxDestroy(other), CUDA_ERROR_INVALID_CONTEXT);
	check_sums();
	OK(cuDevicePrimaryCtxReset_v2(0));
	CHECK_EQUAL(ledger()->devices[0].page_bytes, 0);
	CHECK_EQUAL(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_CONTEXT);
}
#endif

TEST(managed_memory_migrates)
{
	CUdeviceptr p, q;

	start(0);
	OK(cuMemAllocManaged(&p, 10000, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemAlloc_v2(&q, 10000));
	OK(cuMemPrefetchAsync(p, 10000, 0, NULL));
	OK(cuMemPrefetchAsync_ptsz(p + 1, 9999, CU_DEVICE_CPU, NULL));
	CHECK_EQUAL(cuMemPrefetchAsync(p, 10001, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cuMemPrefetchAsync(q, 10000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cuMemPrefetchAsync(p, 10000, 7, NULL), CUDA_ERROR_INVALID_DEVICE);
	OK(cuMemAdvise(p, 100, CU_MEM_ADVISE_SET_READ_MOSTLY, 7));
	CHECK_EQUAL(
		cuMemAdvise(p, 100, CU_MEM_ADVISE_SET_ACCESSED_BY, 7), CUDA_ERROR_INVALID_DEVICE);
	CHECK_EQUAL(cuMemAdvise(p, 100, (CUmem_advise)99, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(ledger()->migrations[CUSIM_PREFETCH].calls, 2);
	CHECK_EQUAL(ledger()->migrations[CUSIM_PREFETCH].bytes, 19999);
	CHECK_EQUAL(ledger()->migrations[CUSIM_ADVISE].bytes, 100);
	CHECK_EQUAL(ledger()->failed_migrations, 5);
#if CUDA_VERSION >= 13000
	CUmemLocation places[2] = {
		{.type = CU_MEM_LOCATION_TYPE_DEVICE}, {.type = CU_MEM_LOCATION_TYPE_HOST}};
	CUdeviceptr all[3] = {p, p + 100, p + 200};
	size_t sizes[3] = {10, 20, 30}, firsts[2] = {0, 2};
	CUstream stream;

	OK(cuStreamCreate(&stream, 0));
	OK(cuMemPrefetchAsync_v2(p, 1, places[1], 0, NULL));
	OK(cuMemAdvise_v2(p, 1, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, places[1]));
	OK(cuMemPrefetchBatchAsync(all, sizes, 3, places, firsts, 2, 0, stream));
	OK(cuMemDiscardBatchAsync(all, sizes, 3, 0, stream));
	OK(cuMemDiscardAndPrefetchBatchAsync_ptsz(all, sizes, 3, places, firsts, 2, 0, stream));
	CHECK_EQUAL(cuMemDiscardBatchAsync(all, sizes, 3, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	firsts[1] = 0;
	CHECK_EQUAL(cuMemPrefetchBatchAsync(all, sizes, 3, places, firsts, 2, 0, stream),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(ledger()->migrations[CUSIM_PREFETCH].calls, 9);
	CHECK_EQUAL(ledger()->migrations[CUSIM_PREFETCH].bytes, 20000 + 120);
	CHECK_EQUAL(ledger()->migrations[CUSIM_DISCARD].calls, 6);
	CHECK_EQUAL(ledger()->migrations[CUSIM_DISCARD].bytes, 120);
	CHECK_EQUAL(ledger()->failed_migrations, 7);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_lives_from_launch_to_free),
		cmocka_unit_test(a_graph_frees_what_it_allocates),
		cmocka_unit_test(left_over_memory_is_freed_by_launch),
#if CUDA_VERSION >= 12030
		cmocka_unit_test(nodes_of_any_type),
#endif
		cmocka_unit_test(captured_allocations),
		cmocka_unit_test(executables_take_memory),
		cmocka_unit_test(code_takes_memory),
		cmocka_unit_test(limits_take_memory),
#if CUDA_VERSION >= 12040
		cmocka_unit_test(green_contexts),
#endif
		cmocka_unit_test(managed_memory_migrates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
