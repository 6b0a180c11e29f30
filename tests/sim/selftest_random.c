/* Random calls of every family on two small devices, failures included: after each of them the sums
 * of the ledger are right, and so are the live bytes of every kind that this test keeps count of.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "selftest_driver.h"

#define N_SLOTS 24
/* Under ThreadSanitizer most of its time would go into this one. */
#ifdef __SANITIZE_THREAD__
#define N_CALLS 8000
#else
#define N_CALLS 50000
#endif

enum what {
	LINEAR,
	POOL,
	ARRAY,
	MIPMAP,
	VMM,
	IMPORT,
	IPC,
	GRAPH,
	MODULE,
	LIBRARY,
	GREEN,
	N_WHAT,
};

static struct slot { /* bytes 0: empty */
	enum what what;
	int device;
	size_t bytes;
	uint64_t value, second;
	size_t live; /* of a graph: what its last launch left */
} slots[N_SLOTS];

static CUcontext contexts[2];
static uint64_t state = 1;
static uint64_t live[2][CUSIM_N_KINDS];

static size_t below(size_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(state >> 33) % n;
}

static size_t random_bytes(void)
{
	return 1 + below(below(2) ? 32 * MIB : (size_t)1 << (1 + below(22)));
}

static const int kinds[N_WHAT] = {
	[LINEAR] = CUSIM_LINEAR,
	[POOL] = CUSIM_POOL,
	[ARRAY] = CUSIM_ARRAY,
	[MIPMAP] = CUSIM_ARRAY,
	[VMM] = CUSIM_VMM,
	[IMPORT] = CUSIM_SHARED,
	[IPC] = CUSIM_SHARED,
	[GRAPH] = -1,
	[MODULE] = -1,
	[LIBRARY] = -1,
	[GREEN] = -1,
};

static CUresult make_array(struct slot *s)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 1 + below(1000),
		.Height = 1 + below(1000),
		.Format = CU_AD_FORMAT_HALF,
		.NumChannels = 2};
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	CUmipmappedArray mipmap;
	CUarray array;
	CUresult result;

	if (s->what == ARRAY) {
		result = cuArray3DCreate_v2(&array, &d);
		if (result == CUDA_SUCCESS)
			OK(cuArrayGetMemoryRequirements(&needs, array, s->device));
		s->value = (uint64_t)(uintptr_t)array;
	} else {
		result = cuMipmappedArrayCreate(&mipmap, &d, 1 + (unsigned int)below(5));
		if (result == CUDA_SUCCESS)
			OK(cuMipmappedArrayGetMemoryRequirements(&needs, mipmap, s->device));
		s->value = (uint64_t)(uintptr_t)mipmap;
	}
	if (result == CUDA_SUCCESS)
		s->bytes = needs.size;
	return result;
}

static CUresult make_vmm(struct slot *s)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = s->device}};
	CUmemGenericAllocationHandle handle;
	CUresult result;

	s->bytes = (s->bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
	result = cuMemCreate(&handle, s->bytes, &properties, 0);
	s->value = handle;
	return result;
}

/* Of something of another slot, when there is one of the kind. */
static const struct slot *any_of(enum what what)
{
	for (int i = 0; i < N_SLOTS; i++)
		if (slots[i].bytes && slots[i].what == what)
			return &slots[i];
	return NULL;
}

static CUresult make_import(struct slot *s)
{
	const struct slot *from = any_of(VMM);
	CUmemGenericAllocationHandle handle;
	int fd;

	if (!from)
		return CUDA_ERROR_NOT_FOUND;
	OK(cuMemExportToShareableHandle(
		&fd, from->value, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemImportFromShareableHandle(
		&handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	s->value = handle;
	s->bytes = from->bytes;
	s->device = from->device;
	return CUDA_SUCCESS;
}

static CUresult make_ipc(struct slot *s)
{
	const struct slot *from = any_of(LINEAR);
	CUipcMemHandle handle;
	CUdeviceptr p;

	if (!from)
		return CUDA_ERROR_NOT_FOUND;
	OK(cuIpcGetMemHandle(&handle, from->value));
	OK(cuIpcOpenMemHandle_v2(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	s->value = p;
	s->bytes = from->bytes;
	return CUDA_SUCCESS;
}

/* One allocation, which the next launch frees if nobody has. */
static CUresult make_graph(struct slot *s)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = s->device}},
		.bytesize = s->bytes};
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;
	CUresult result;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	result = cuGraphInstantiateWithFlags(
		&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	OK(cuGraphDestroy(graph));
	s->value = (uint64_t)(uintptr_t)exec;
	s->second = params.dptr;
	s->live = 0;
	return result;
}

static CUresult make_code(struct slot *s)
{
	CUmodule module;
	CUresult result = CUDA_ERROR_NOT_FOUND;

	if (s->what == MODULE)
		result = cuModuleLoadData(&module, "image");
#if CUDA_VERSION >= 12000
	if (s->what == LIBRARY)
		result = cuLibraryLoadData(
			(CUlibrary *)&module, "code", NULL, NULL, 0, NULL, NULL, 0);
#endif
#if CUDA_VERSION >= 12040
	CUdevResource resource;
	CUdevResourceDesc description;

	if (s->what == GREEN) {
		OK(cuDeviceGetDevResource(s->device, &resource, CU_DEV_RESOURCE_TYPE_SM));
		OK(cuDevResourceGenerateDesc(&description, &resource, 1));
		result = cuGreenCtxCreate(
			(CUgreenCtx *)&module, description, s->device, CU_GREEN_CTX_DEFAULT_STREAM);
	}
#endif
	s->value = (uint64_t)(uintptr_t)module;
	return result;
}

static CUresult make(struct slot *s)
{
	CUdeviceptr p = 0;
	CUresult result;

	switch (s->what) {
	case LINEAR:
		result = cuMemAlloc_v2(&p, s->bytes);
		s->value = p;
		return result;
	case POOL:
		result = cuMemAllocAsync(&p, s->bytes, NULL);
		s->value = p;
		return result;
	case ARRAY:
	case MIPMAP:
		return make_array(s);
	case VMM:
		return make_vmm(s);
	case IMPORT:
		return make_import(s);
	case IPC:
		return make_ipc(s);
	case GRAPH:
		return make_graph(s);
	default:
		return make_code(s);
	}
}

static void end_graph(struct slot *s)
{
	OK(cuGraphExecDestroy((CUgraphExec)(uintptr_t)s->value));
	if (s->live)
		OK(cuMemFreeAsync(s->second, NULL));
	live[s->device][CUSIM_GRAPH] -= s->live;
}

static void end(struct slot *s)
{
	void *handle = (void *)(uintptr_t)s->value;

	switch (s->what) {
	case LINEAR:
	case POOL:
		OK(below(2) && s->what == POOL ? cuMemFreeAsync(s->value, NULL)
					       : cuMemFree_v2(s->value));
		break;
	case ARRAY:
		OK(cuArrayDestroy(handle));
		break;
	case MIPMAP:
		OK(cuMipmappedArrayDestroy(handle));
		break;
	case VMM:
	case IMPORT:
		OK(cuMemRelease(s->value));
		break;
	case IPC:
		OK(cuIpcCloseMemHandle(s->value));
		break;
	case GRAPH:
		end_graph(s);
		break;
	case MODULE:
		OK(cuModuleUnload(handle));
		break;
#if CUDA_VERSION >= 12000
	case LIBRARY:
		OK(cuLibraryUnload(handle));
		break;
#endif
#if CUDA_VERSION >= 12040
	case GREEN:
		OK(cuGreenCtxDestroy(handle));
		break;
#endif
	default:
		CHECK(!"made of nothing");
	}
	if (kinds[s->what] >= 0)
		live[s->device][kinds[s->what]] -= s->bytes;
	s->bytes = 0;
}

static void use(struct slot *s)
{
	CUresult result;
	CUfunction function;

	if (s->what == GRAPH) {
		result = cuGraphLaunch((CUgraphExec)(uintptr_t)s->value, NULL);
		live[s->device][CUSIM_GRAPH] -= s->live;
		s->live = result == CUDA_SUCCESS ? s->bytes : 0;
		live[s->device][CUSIM_GRAPH] += s->live;
	} else if (s->what == MODULE) {
		cuModuleGetFunction(&function, (CUmodule)(uintptr_t)s->value, "f");
	}
}

static void settle(void)
{
	CUmemoryPool pool;
	int device = (int)below(2);

	switch (below(5)) {
	case 0:
		OK(cuCtxSynchronize());
		break;
	case 1:
		OK(cuDeviceGetDefaultMemPool(&pool, device));
		OK(cuMemPoolTrimTo(pool, below(2) ? 64 * MIB : 0));
		break;
	case 2:
		OK(cuDeviceGraphMemTrim(device));
		break;
	case 3:
		cuCtxSetLimit(CU_LIMIT_STACK_SIZE, (1 + below(20)) << 10);
		break;
	default:
		CHECK_EQUAL(cuMemFree_v2(4096), CUDA_ERROR_INVALID_VALUE);
	}
}

static void check_live(void)
{
	static const int counted[] = {
		CUSIM_LINEAR, CUSIM_POOL, CUSIM_ARRAY, CUSIM_VMM, CUSIM_SHARED, CUSIM_GRAPH};

	check_sums();
	for (int device = 0; device < 2; device++) {
		size_t now;

		for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
			CHECK_EQUAL(kind(device, (enum cusim_kind)counted[i])->live_bytes,
				live[device][counted[i]]);
		OK(cuCtxPushCurrent_v2(contexts[device]));
		OK(cuMemGetInfo_v2(&now, NULL));
		OK(cuCtxPopCurrent_v2(NULL));
		CHECK_EQUAL(now, ledger()->devices[device].free_bytes);
	}
}

static void random_call(void)
{
	struct slot *s = &slots[below(N_SLOTS)];
	int device = (int)below(2);

	OK(cuCtxSetCurrent(contexts[s->bytes ? s->device : device]));
	if (below(8) == 0) {
		settle();
	} else if (s->bytes && below(3) == 0) {
		use(s);
	} else if (s->bytes) {
		end(s);
	} else {
		*s = (struct slot){.what = (enum what)below(N_WHAT),
			.device = device,
			.bytes = random_bytes()};
		if (make(s) != CUDA_SUCCESS)
			s->bytes = 0;
		else if (kinds[s->what] >= 0)
			live[s->device][kinds[s->what]] += s->bytes;
	}
}

TEST(the_ledger_adds_up, "CUSIM_DEVICES", "2", "CUSIM_MEMORY", "221M", "CUSIM_OTHER", "33M",
	"CUSIM_IPC_SELF", "1")
{
	uint64_t n_failed = 0;

	OK(cuInit(0));
	check_sums();
	for (int i = 0; i < 2; i++)
		OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
	for (int i = 0; i < N_CALLS; i++) {
		random_call();
		check_live();
	}
	for (int i = 0; i < CUSIM_N_KINDS; i++)
		n_failed += kind(0, (enum cusim_kind)i)->failed;
	CHECK(n_failed > N_CALLS / 500); /* memory did run out */
	for (int i = 0; i < 2; i++)
		OK(cuDevicePrimaryCtxReset_v2(i));
	CHECK_EQUAL(kind(0, CUSIM_LINEAR)->live_bytes, 0);
	CHECK_EQUAL(ledger()->devices[0].other_bytes, 34 * MIB + MIB);
	check_sums();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_ledger_adds_up)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
