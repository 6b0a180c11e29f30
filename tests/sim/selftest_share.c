/* The simulated driver's memory of others: pools, physical memory, IPC, other APIs; NVML. */
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "nvml_sim.h"
#include "selftest_driver.h"

static void allow(CUdeviceptr address, size_t bytes)
{
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	OK(cuMemSetAccess(address, bytes, &access, 1));
}

static CUmemGenericAllocationHandle create(size_t bytes)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle;

	OK(cuMemCreate(&handle, bytes, &properties, 0));
	return handle;
}

static CUmemGenericAllocationHandle import(int fd)
{
	CUmemGenericAllocationHandle handle;

	OK(cuMemImportFromShareableHandle(
		&handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	return handle;
}

TEST(physical_memory_is_shared)
{
	size_t before = start(0);
	CUmemGenericAllocationHandle handle = create(4 * MIB), again;
	CUdeviceptr va;
	char out[100];
	int fd, other;

	OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	again = import(fd);
	CHECK(again != handle);
	CHECK_EQUAL(before - free_now(), 4 * MIB);
	CHECK_EQUAL(kind(0, CUSIM_VMM)->live_bytes, 4 * MIB);
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->live_bytes, 4 * MIB);
	OK(cuMemAddressReserve(&va, 8 * MIB, 0, 0, 0));
	OK(cuMemMap(va, 4 * MIB, 0, handle, 0));
	OK(cuMemMap(va + 4 * MIB, 4 * MIB, 0, again, 0));
	allow(va, 8 * MIB);
	OK(cuMemsetD8_v2(va + 3 * MIB, 7, 100));
	OK(cuMemcpyDtoH_v2(out, va + 7 * MIB, 100));
	CHECK(out[0] == 7 && out[99] == 7);
	OK(cuMemUnmap(va, 4 * MIB));
	OK(cuMemRelease(handle));
	CHECK_EQUAL(kind(0, CUSIM_VMM)->live_bytes, 0);
	CHECK_EQUAL(before - free_now(), 4 * MIB); /* the import keeps it */
	OK(cuMemExportToShareableHandle(
		&other, again, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemRelease(again));
	OK(cuMemUnmap(va + 4 * MIB, 4 * MIB));
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->live_bytes, 0);
	CHECK_EQUAL(free_now(), before);
	CHECK_EQUAL(cuMemImportFromShareableHandle(
			    &again, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)999,
			    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		CUDA_ERROR_INVALID_VALUE);
	check_sums();
}

TEST(physical_memory_of_another_process)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr va;
	int ends[2], fd, status;
	char path[64];
	size_t before;
	pid_t pid;

	CHECK(pipe(ends) == 0);
	pid = fork();
	if (pid == 0) { /* makes and exports; the parent reads its file by /proc */
		start(0);
		OK(cuMemExportToShareableHandle(
			&fd, create(2 * MIB), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
		CHECK(write(ends[1], &fd, sizeof(fd)) == sizeof(fd));
		pause();
	}
	CHECK(read(ends[0], &fd, sizeof(fd)) == sizeof(fd));
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	fd = open(path, O_RDWR);
	CHECK(fd >= 0);
	before = start(0);
	handle = import(fd);
	OK(cuMemAddressReserve(&va, 2 * MIB, 0, 0, 0));
	OK(cuMemMap(va, 2 * MIB, 0, handle, 0));
	allow(va, 2 * MIB);
	OK(cuMemsetD8_v2(va, 7, 2 * MIB));
	CHECK_EQUAL(free_now(), before);
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->live_bytes, 2 * MIB);
	OK(cuMemUnmap(va, 2 * MIB));
	OK(cuMemRelease(handle));
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->live_bytes, 0);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
}

#if CUDA_VERSION >= 12010
TEST(multicast_objects, "CUSIM_DEVICES", "2")
{
	CUmulticastObjectProp properties = {.numDevices = 2, .size = 4 * MIB};
	size_t before = start(0);
	CUmemGenericAllocationHandle handle;
	CUdeviceptr va;

	OK(cuMulticastCreate(&handle, &properties));
	OK(cuMemAddressReserve(&va, 4 * MIB, 0, 0, 0));
	OK(cuMemMap(va, 4 * MIB, 0, handle, 0));
	allow(va, 4 * MIB);
	CHECK_EQUAL(cuMemsetD8_v2(va, 7, 1), CUDA_ERROR_INVALID_VALUE); /* nothing is bound */
	OK(cuMemUnmap(va, 4 * MIB));
	OK(cuMemRelease(handle));
	CHECK_EQUAL(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(free_now(), before);
	CHECK_EQUAL(kind(0, CUSIM_VMM)->allocations, 0);
	properties.numDevices = 3;
	CHECK_EQUAL(cuMulticastCreate(&handle, &properties), CUDA_ERROR_INVALID_VALUE);
}
#endif

TEST(pools_are_shared)
{
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemoryPool own, imported, standard;
	CUmemPoolPtrExportData data;
	CUdeviceptr p, q, alias;
	char out[50];
	int fd;

	start(0);
	OK(cuMemPoolCreate(&own, &properties));
	OK(cuMemAllocFromPoolAsync(&p, 1000, own, NULL));
	OK(cuMemPoolExportToShareableHandle(&fd, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemPoolExportPointer(&data, p));
	OK(cuMemPoolImportFromShareableHandle(
		&imported, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	CHECK_EQUAL(cuMemPoolImportPointer(&alias, own, &data), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemPoolImportPointer(&alias, imported, &data));
	CHECK(alias != p);
	OK(cuMemsetD8_v2(p + 30, 3, 20));
	OK(cuMemcpyDtoH_v2(out, alias + 20, 30));
	CHECK(out[0] == 0 && out[9] == 0 && out[10] == 3 && out[29] == 3);
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->live_bytes, 1000);
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->failed, 1);
	CHECK_EQUAL(cuMemAllocFromPoolAsync(&q, 1000, imported, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cuDeviceSetMemPool(0, imported), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeAsync(p, NULL));
	CHECK_EQUAL(cuMemcpyDtoH_v2(out, alias, 30), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeAsync(alias, NULL));
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->live_bytes, 0);
	OK(cuMemPoolDestroy(imported));
	OK(cuDeviceGetDefaultMemPool(&standard, 0));
	CHECK_EQUAL(cuMemPoolExportToShareableHandle(
			    &fd, standard, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		CUDA_ERROR_INVALID_VALUE);
#if CUDA_VERSION >= 13000
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
	CUmemoryPool now;

	OK(cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, own));
	OK(cuMemGetMemPool(&now, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
	CHECK(now == own);
	OK(cuMemGetDefaultMemPool(&now, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
	CHECK(now == standard);
	location.type = CU_MEM_LOCATION_TYPE_HOST;
	CHECK_EQUAL(cuMemGetMemPool(&now, &location, CU_MEM_ALLOCATION_TYPE_PINNED),
		CUDA_ERROR_NOT_SUPPORTED);
#endif
}

TEST(ipc_within_a_process, "CUSIM_IPC_SELF", "1")
{
	size_t before = start(0);
	CUipcMemHandle handle;
	CUdeviceptr p, alias;
	char out[10];

	OK(cuMemAlloc_v2(&p, 3 * MIB));
	OK(cuMemsetD8_v2(p, 9, 3 * MIB));
	OK(cuIpcGetMemHandle(&handle, p));
	OK(cuIpcOpenMemHandle_v2(&alias, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuMemcpyDtoH_v2(out, alias + 3 * MIB - 10, 10));
	CHECK(out[0] == 9 && out[9] == 9);
	CHECK_EQUAL(before - free_now(), 4 * MIB);
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->live_bytes, 3 * MIB);
	CHECK_EQUAL(cuMemFree_v2(alias), CUDA_ERROR_INVALID_VALUE);
	OK(cuIpcCloseMemHandle(alias));
	CHECK_EQUAL(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree_v2(p));
	CHECK_EQUAL(cuIpcOpenMemHandle(&alias, handle, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->frees, 1);
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->failed, 1);
	CHECK_EQUAL(ledger()->failed_frees, 2);
}

TEST(external_memory)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC d = {
		.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .size = 4 * MIB};
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.offset = MIB, .size = MIB};
	CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC array = {.offset = 0,
		.arrayDesc = {.Width = 100,
			.Height = 10,
			.Format = CU_AD_FORMAT_UNSIGNED_INT8,
			.NumChannels = 1},
		.numLevels = 2};
	size_t before = start(0);
	CUexternalMemory external;
	CUmipmappedArray mipmap;
	CUarray level;
	CUdeviceptr p, q;
	char out[10], in[10] = "123456789";

	d.handle.fd = 999;
	CHECK_EQUAL(cuImportExternalMemory(&external, &d), CUDA_ERROR_INVALID_HANDLE);
	d.handle.fd = open("/dev/null", O_RDONLY);
	OK(cuImportExternalMemory(&external, &d));
	CHECK(fcntl(d.handle.fd, F_GETFD) < 0);
	OK(cuExternalMemoryGetMappedBuffer(&p, external, &buffer));
	buffer.offset += 1000;
	OK(cuExternalMemoryGetMappedBuffer(&q, external, &buffer));
	OK(cuMemcpyHtoD_v2(p + 1500, in, 10));
	OK(cuMemcpyDtoH_v2(out, q + 500, 10));
	CHECK(!memcmp(in, out, 10));
	buffer.size = 4 * MIB;
	CHECK_EQUAL(
		cuExternalMemoryGetMappedBuffer(&q, external, &buffer), CUDA_ERROR_INVALID_VALUE);
	OK(cuExternalMemoryGetMappedMipmappedArray(&mipmap, external, &array));
	OK(cuMipmappedArrayGetLevel(&level, mipmap, 1));
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->live_bytes, 2 * MIB + 10 * 512 + 5 * 512);
	CHECK_EQUAL(kind(0, CUSIM_ARRAY)->allocations, 0);
	OK(cuDestroyExternalMemory(external));
	CHECK_EQUAL(cuDestroyExternalMemory(external), CUDA_ERROR_INVALID_HANDLE);
	OK(cuMemcpyDtoH_v2(out, q + 500, 10)); /* what is mapped stays */
	OK(cuMipmappedArrayDestroy(mipmap));
	OK(cuMemFree_v2(p));
	OK(cuMemFree_v2(q));
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->live_bytes, 0);
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->frees, 3);
	CHECK_EQUAL(free_now(), before);
}

TEST(graphics_resources)
{
	CUgraphicsResource all[2];
	CUdeviceptr p, again;
	CUdeviceptr_v1 low;
	unsigned int low_bytes;
	size_t bytes;

	start(0);
	all[0] = cusim_graphics_resource(3 * MIB);
	all[1] = cusim_graphics_resource(1000);
	CHECK_EQUAL(
		cuGraphicsResourceGetMappedPointer_v2(&p, &bytes, all[0]), CUDA_ERROR_NOT_MAPPED);
	OK(cuGraphicsMapResources(2, all, NULL));
	CHECK_EQUAL(cuGraphicsMapResources_ptsz(1, all, NULL), CUDA_ERROR_ALREADY_MAPPED);
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->live_bytes, 0);
	OK(cuGraphicsResourceGetMappedPointer_v2(&p, &bytes, all[0]));
	OK(cuGraphicsResourceGetMappedPointer_v2(&again, &bytes, all[0]));
	CHECK_EQUAL(p, again);
	CHECK_EQUAL(bytes, 3 * MIB);
	OK(cuGraphicsResourceGetMappedPointer(&low, &low_bytes, all[1]));
	CHECK_EQUAL(low_bytes, 1000);
	OK(cuMemsetD8_v2(p, 1, bytes));
	OK(cuMemsetD8(low, 1, low_bytes));
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->live_bytes, 3 * MIB + 1000);
	OK(cuGraphicsUnmapResources_ptsz(1, &all[1], NULL));
	OK(cuGraphicsUnmapResources(1, all, NULL));
	CHECK_EQUAL(cuGraphicsUnmapResources(1, all, NULL), CUDA_ERROR_NOT_MAPPED);
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->live_bytes, 0);
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->failed, 1);
	CHECK_EQUAL(ledger()->failed_frees, 1);
	OK(cuGraphicsMapResources(1, all, NULL));
	OK(cuGraphicsResourceGetMappedPointer_v2(&p, &bytes, all[0]));
	OK(cuDevicePrimaryCtxReset_v2(0));
	CHECK_EQUAL(kind(0, CUSIM_SHARED)->implicit_frees, 1);
}

TEST(nvml_agrees, "CUSIM_DEVICES", "2", "CUSIM_OTHER", "100M", "CUSIM_MEMORY", "1G")
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	__typeof__(nvmlInit_v2) *init;
	__typeof__(nvmlShutdown) *stop;
	__typeof__(nvmlDeviceGetHandleByUUID) *by_uuid;
	__typeof__(nvmlDeviceGetMemoryInfo) *info;
	__typeof__(nvmlDeviceGetMemoryInfo_v2) *info_v2;
	__typeof__(nvmlDeviceGetComputeRunningProcesses_v3) *processes;
	nvmlProcessInfo_t all[4];
	nvmlMemory_v2_t second = {.version = NVML_MEMORY_V2};
	nvmlMemory_t memory;
	nvmlDevice_t device;
	unsigned int n = 0;

	CHECK(library);
	*(void **)&init = dlsym(library, "nvmlInit_v2");
	*(void **)&stop = dlsym(library, "nvmlShutdown");
	*(void **)&by_uuid = dlsym(library, "nvmlDeviceGetHandleByUUID");
	*(void **)&info = dlsym(library, "nvmlDeviceGetMemoryInfo");
	*(void **)&info_v2 = dlsym(library, "nvmlDeviceGetMemoryInfo_v2");
	*(void **)&processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
	CHECK_EQUAL(stop(), NVML_ERROR_UNINITIALIZED);
	CHECK_EQUAL(init(), NVML_SUCCESS);
	CHECK_EQUAL(by_uuid("GPU-73696d75-6c61-7465-6420-637564618001", &device), NVML_SUCCESS);
	CHECK_EQUAL(
		by_uuid("GPU-73696d75-6c61-7465-6420-637564618002", &device), NVML_ERROR_NOT_FOUND);
	CHECK_EQUAL(info(device, &memory), NVML_SUCCESS);
	CHECK_EQUAL(memory.used, 100 * MIB); /* before any context */
	CHECK_EQUAL(memory.free, 924 * MIB);
	CHECK_EQUAL(memory.total, 1024 * MIB);
	CHECK_EQUAL(start(1), memory.free - 64 * MIB);
	CHECK_EQUAL(info_v2(device, &second), NVML_SUCCESS);
	CHECK_EQUAL(second.used, 164 * MIB);
	second.version = 1;
	CHECK_EQUAL(info_v2(device, &second), NVML_ERROR_ARGUMENT_VERSION);
	CHECK_EQUAL(processes(device, &n, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_EQUAL(n, 2);
	n = 4;
	CHECK_EQUAL(processes(device, &n, all), NVML_SUCCESS);
	CHECK_EQUAL(n, 2);
	CHECK_EQUAL(all[0].pid, getpid());
	CHECK_EQUAL(all[0].usedGpuMemory, 64 * MIB);
	CHECK_EQUAL(all[1].usedGpuMemory, 100 * MIB);
	CHECK_EQUAL(stop(), NVML_SUCCESS);
	CHECK_EQUAL(info(device, &memory), NVML_ERROR_UNINITIALIZED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(physical_memory_is_shared),
		cmocka_unit_test(physical_memory_of_another_process),
#if CUDA_VERSION >= 12010
		cmocka_unit_test(multicast_objects),
#endif
		cmocka_unit_test(pools_are_shared),
		cmocka_unit_test(ipc_within_a_process),
		cmocka_unit_test(external_memory),
		cmocka_unit_test(graphics_resources),
		cmocka_unit_test(nvml_agrees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
