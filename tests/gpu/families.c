/*
 * One allocation of every family of the driver API, with what the driver itself says about each:
 * the change of free memory, the pool's attributes, the graph memory's attributes. Prints them as
 * JSON, in the order of the stages; each stage stays alive.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1024ull * 1024)

static CUdevice device;
static const char *separator = "";

static void must(CUresult error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "%s: error %d\n", what, error);
	exit(1);
}

#define MUST(call) must(call, #call)

static size_t free_now(void)
{
	size_t free_bytes, total_bytes;

	MUST(cuCtxSynchronize());
	MUST(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	return free_bytes;
}

static void say(const char *stage, unsigned long long asked, long long taken)
{
	printf("%s{\"stage\": \"%s\", \"asked\": %llu, \"taken\": %lld}", separator, stage, asked,
		taken);
	separator = ", ";
}

static void linear(void)
{
	size_t before = free_now();
	CUdeviceptr p;

	for (int i = 0; i < 10; i++)
		MUST(cuMemAlloc_v2(&p, 5 * MIB));
	say("linear", 50 * MIB, (long long)(before - free_now()));
}

static void array(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {
		.Width = 2048, .Height = 2048, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
	size_t before = free_now();
	CUarray a;

	MUST(cuArray3DCreate_v2(&a, &desc));
	say("array", 64 * MIB, (long long)(before - free_now()));
}

static void mipmapped(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {
		.Width = 1024, .Height = 1024, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
	size_t before = free_now();
	CUmipmappedArray m;

	MUST(cuMipmappedArrayCreate(&m, &desc, 5));
	say("mipmapped", (16 * 1024 + 4 * 1024 + 1024 + 256 + 64) * 1024ull,
		(long long)(before - free_now()));
}

static void pool(void)
{
	cuuint64_t reserved, used, keep = ~0ull;
	CUdeviceptr p[16];
	CUmemoryPool current;

	MUST(cuDeviceGetMemPool(&current, device));
	MUST(cuMemPoolSetAttribute(current, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
	for (int i = 0; i < 16; i++)
		MUST(cuMemAllocAsync(&p[i], 10 * MIB, 0));
	for (int i = 0; i < 8; i++)
		MUST(cuMemFreeAsync(p[i], 0));
	MUST(cuCtxSynchronize());
	usleep(20000);
	MUST(cuMemAllocAsync(
		&p[0], 1 * MIB, 0)); /* so that the recorder reads the pool once more */
	MUST(cuCtxSynchronize());
	MUST(cuMemPoolGetAttribute(current, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
	MUST(cuMemPoolGetAttribute(current, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	say("pool_reserved", 81 * MIB, (long long)reserved);
	say("pool_used", 81 * MIB, (long long)used);
}

static void vmm(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
	CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle, again;
	size_t before = free_now();
	CUdeviceptr p;

	MUST(cuMemAddressReserve(&p, 1024 * MIB, 0, 0, 0));
	MUST(cuMemCreate(&handle, 64 * MIB, &prop, 0));
	MUST(cuMemMap(p + 128 * MIB, 64 * MIB, 0, handle, 0));
	MUST(cuMemSetAccess(p + 128 * MIB, 64 * MIB, &access, 1));
	MUST(cuMemRetainAllocationHandle(&again, (void *)(p + 128 * MIB)));
	MUST(cuMemRelease(handle));
	MUST(cuMemUnmap(p + 128 * MIB, 64 * MIB)); /* alive: one reference is left */
	say("vmm", 64 * MIB, (long long)(before - free_now()));
	MUST(cuMemCreate(&handle, 32 * MIB, &prop, 0));
	MUST(cuMemRelease(handle)); /* gone: neither referenced nor mapped */
}

static void managed(void)
{
	CUdeviceptr p;

	MUST(cuMemAllocManaged(&p, 8 * MIB, CU_MEM_ATTACH_GLOBAL));
	say("managed", 8 * MIB, 0);
}

static void host(void)
{
	void *p, *q = aligned_alloc(4096, 4 * MIB);

	MUST(cuMemHostAlloc(&p, 3 * MIB, 0));
	MUST(cuMemHostRegister_v2(q, 4 * MIB, 0));
	say("pinned", 3 * MIB, 0);
	say("registered", 4 * MIB, 0);
}

static void graph(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS alloc = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {CU_MEM_LOCATION_TYPE_DEVICE, device}},
		.bytesize = 24 * MIB};
	cuuint64_t reserved, used;
	CUgraphExec exec;
	CUgraphNode node;
	CUstream stream;
	CUgraph g;

	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuGraphCreate(&g, 0));
	MUST(cuGraphAddMemAllocNode(&node, g, NULL, 0, &alloc));
	MUST(cuGraphInstantiateWithFlags(&exec, g, 0));
	MUST(cuGraphLaunch(exec, stream));
	MUST(cuStreamSynchronize(stream));
	MUST(cuDeviceGetGraphMemAttribute(
		device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
	MUST(cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
	usleep(20000);
	MUST(cuDeviceGraphMemTrim(
		device)); /* in use, so nothing goes; the recorder reads the amounts again */
	say("graph", reserved, (long long)used);
}

static void ipc_and_boxes(void)
{
	unsigned char *from = malloc(64 * 64), *to = calloc(64, 64);
	CUDA_ARRAY3D_DESCRIPTOR desc = {
		.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
	CUDA_MEMCPY2D up = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = from,
		.srcPitch = 64,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.WidthInBytes = 64,
		.Height = 64};
	CUDA_MEMCPY2D down = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = to,
		.dstPitch = 64,
		.WidthInBytes = 64,
		.Height = 64};
	CUarray a;

	for (int i = 0; i < 64 * 64; i++)
		from[i] = (unsigned char)(i * 7);
	MUST(cuArray3DCreate_v2(&a, &desc));
	up.dstArray = down.srcArray = a;
	MUST(cuMemcpy2D_v2(&up));
	MUST(cuMemcpy2D_v2(&down));
	if (memcmp(from, to, 64 * 64)) {
		fprintf(stderr, "the copy through the array came back different\n");
		exit(1);
	}
	MUST(cuArrayDestroy(a));
	say("boxes", 2 * 64 * 64, 0);
}

int main(void)
{
	CUcontext context;

	MUST(cuInit(0));
	MUST(cuDeviceGet(&device, 0));
	MUST(cuDevicePrimaryCtxRetain(&context, device));
	MUST(cuCtxSetCurrent(context));
	printf("[");
	linear();
	array();
	mipmapped();
	pool();
	vmm();
	managed();
	host();
	graph();
	ipc_and_boxes();
	printf("]\n");
	return 0;
}
