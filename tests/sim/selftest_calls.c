/* The simulated driver's calls: contexts, look-up, captures, faults, processes, threads. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "selftest_driver.h"

TEST(contexts)
{
	CUdeviceptr p, q;
	CUcontext mine, now;
	size_t before, limit;
	unsigned int flags;
	int active;

	CHECK_EQUAL(cuDeviceGetCount(&active), CUDA_ERROR_NOT_INITIALIZED);
	OK(cuInit(0));
	CHECK_EQUAL(cuMemAlloc_v2(&p, 1), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_EQUAL(ledger()->failed_elsewhere, 1);
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK_EQUAL(active, 0);
	before = start(0);
	CHECK_EQUAL(before, 8192 * MIB - 64 * MIB);
	OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16 << 10));
	CHECK_EQUAL(before - free_now(), 4 * 2048 * (15 << 10));
	OK(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
	CHECK_EQUAL(limit, 16 << 10);
	OK(cuMemAlloc_v2(&p, 3 * MIB));
	OK(cuCtxCreate_v2(&mine, 0, 0));
	OK(cuMemAlloc_v2(&q, 5 * MIB));
	OK(cuCtxGetCurrent(&now));
	CHECK(now == mine);
	OK(cuCtxDestroy_v2(mine));
	CHECK_EQUAL(cuCtxSetCurrent(mine), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuCtxGetCurrent(&now));
	CHECK(now == context);
	CHECK_EQUAL(kind(0, CUSIM_LINEAR)->live_bytes, 3 * MIB);
	CHECK_EQUAL(kind(0, CUSIM_LINEAR)->implicit_frees, 1);
	OK(cuDevicePrimaryCtxReset_v2(0));
	CHECK_EQUAL(kind(0, CUSIM_LINEAR)->live_bytes, 0);
	CHECK_EQUAL(ledger()->devices[0].page_bytes, 0);
	CHECK_EQUAL(cuMemFree_v2(p), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	CHECK_EQUAL(start(0), before);
}

TEST(scripted_faults, "CUSIM_FAIL", "cuMemAlloc_v2:3:2,cuMemFree_v2:1:700,cuMemsetD8_v2:1:1",
	"CUSIM_SLOW", "cuMemGetInfo_v2:20000")
{
	struct timespec t0, t1;
	CUdeviceptr p, q;
	size_t before;

	before = start(0);
	OK(cuMemAlloc_v2(&p, 512));
	OK(cuMemAlloc_v2(&q, 512));
	CHECK_EQUAL(cuMemAlloc_v2(&q, 3 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc_v2(&q, 512));
	CHECK_EQUAL(cuMemFree_v2(p), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuMemFree_v2(p));
	CHECK_EQUAL(cuMemsetD8_v2(q, 0, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemsetD8_v2(q, 0, 1));
	CHECK_EQUAL(kind(0, CUSIM_LINEAR)->failed, 1);
	CHECK_EQUAL(kind(0, CUSIM_LINEAR)->live_count, 2);
	CHECK_EQUAL(ledger()->failed_frees, 1);
	CHECK_EQUAL(ledger()->failed_sets, 1);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	CHECK_EQUAL(before - free_now(), 2 * MIB);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	CHECK((t1.tv_sec - t0.tv_sec) * 1000000000ll + t1.tv_nsec - t0.tv_nsec >= 20000000);
}

TEST(bad_settings_are_reported, "CUSIM_MEMORY", "12X", "CUSIM_FAIL", "cuMemAlloc_v2:x,nonsense",
	"CUSIM_DEVICES", "17")
{
	char text[1024] = "";
	int ends[2], n, count;
	size_t total;

	CHECK(pipe(ends) == 0);
	CHECK(dup2(ends[1], 2) == 2);
	start(0);
	n = (int)read(ends[0], text, sizeof(text) - 1);
	CHECK(n > 0 && strstr(text, "CUSIM_MEMORY=12X") && strstr(text, "CUSIM_DEVICES=17"));
	CHECK(strstr(text, "CUSIM_FAIL=cuMemAlloc_v2:x ") && strstr(text, "CUSIM_FAIL=nonsense "));
	OK(cuDeviceTotalMem_v2(&total, 0));
	OK(cuDeviceGetCount(&count));
	CHECK_EQUAL(total, 8192 * MIB);
	CHECK_EQUAL(count, 1);
}

TEST(no_device, "CUSIM_DEVICES", "0")
{
	CHECK_EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

/* This program's own symbol stands before the driver's, as a recorder's would. */
CUresult cuGetErrorName(CUresult error, const char **pStr)
{
	(void)error, (void)pStr;
	return CUDA_ERROR_UNKNOWN;
}

static void *driver;

static void *export_of(const char *name)
{
	void *address = dlsym(driver, name);

	CHECK(address);
	return address;
}

/* How a look-up ends, by whichever versions of it the toolkit declares. */
static CUresult look_up(const char *name, void **out, int version, cuuint64_t flags, int *status)
{
	CUresult result = cuGetProcAddress(name, out, version, flags);

	*status = -1;
#if CUDA_VERSION >= 12000
	CUdriverProcAddressQueryResult second_status;
	void *first = *out;

	CHECK_EQUAL(cuGetProcAddress_v2(name, out, version, flags, &second_status), result);
	CHECK(*out == first);
	CHECK_EQUAL(cuGetProcAddress_v2(name, out, version, flags, NULL), result);
	*status = (int)second_status;
#endif
	return result;
}

static void *asked(const char *name, int version, cuuint64_t flags)
{
	void *address = NULL;
	int status;

	OK(look_up(name, &address, version, flags, &status));
	CHECK(status <= 0);
	return address;
}

TEST(every_row_is_found)
{
	enum { NONE = 0, PTDS = 2, PTSZ = 2 };

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	CHECK(driver);
#define ROW(export, name, version, stream, ...)                                                    \
	CHECK(asked(#name, version, stream) == export_of(#export));
#include "hooks/driver.def"
#define ROW(export, name, version, stream)                                                         \
	CHECK(asked(#name, version, stream) == export_of(#export));
#include "extra.def"
	CHECK(dlsym(RTLD_DEFAULT, "cuGetErrorName") == (void *)cuGetErrorName);
	CHECK(asked("cuGetErrorName", 6000, 0) != (void *)cuGetErrorName);
}

TEST(names_versions_and_flags)
{
	int status;
	void *p = &p;

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	CHECK(asked("cuMemAlloc", 13000, 0) == export_of("cuMemAlloc_v2"));
	CHECK(asked("cuMemAlloc", 3010, 0) == export_of("cuMemAlloc"));
	CHECK(asked("cuMemAlloc", 13000, 2) == export_of("cuMemAlloc_v2"));
	CHECK(asked("cuMemcpyHtoDAsync", 12000, 2) == export_of("cuMemcpyHtoDAsync_v2_ptsz"));
	CHECK(asked("cuMemcpyHtoDAsync", 12000, 1) == export_of("cuMemcpyHtoDAsync_v2"));
	CHECK(asked("cuMemcpyHtoDAsync", 3020, 2) == export_of("cuMemcpyHtoDAsync_v2"));
	CHECK(asked("cuGetProcAddress", 11080, 0) == export_of("cuGetProcAddress"));
#if CUDA_VERSION >= 12000
	CHECK(asked("cuGetProcAddress", 12000, 2) == export_of("cuGetProcAddress_v2"));
#endif
	CHECK(asked("cuCtxCreate", 12040, 0) == export_of("cuCtxCreate_v3"));
	CHECK_EQUAL(look_up("cuMemAlloc_v2", &p, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
	CHECK(status == -1 || status == 1); /* no such symbol */
	CHECK(p == NULL);
	CHECK_EQUAL(look_up("cuMemCreate", &p, 10010, 0, &status), CUDA_ERROR_NOT_FOUND);
	CHECK(status == -1 || status == 2); /* version not sufficient */
	CHECK_EQUAL(look_up("", &p, 0, 0, &status), CUDA_ERROR_NOT_FOUND);
	CHECK_EQUAL(look_up("cuInit", &p, 99000, 0, &status), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cuGetProcAddress("cuInit", NULL, 12000, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(first_version_of_the_api)
{
	CUdeviceptr_v1 p, q;
	unsigned int pitch;
	char out[100];

	start(0);
	OK(cuMemAlloc(&p, 3000000));
	OK(cuMemAllocPitch(&q, &pitch, 100, 10, 4));
	CHECK_EQUAL(pitch, 512);
	CHECK_EQUAL(kind(0, CUSIM_LINEAR)->live_bytes, 3000000 + 5120);
	OK(cuMemsetD8(p, 5, 3000000));
	OK(cuMemcpyDtoD(q, p, 100));
	OK(cuMemcpyDtoH(out, q, 100));
	CHECK(out[0] == 5 && out[99] == 5);
	OK(cuMemFree(p));
	OK(cuMemFree(q));
	CHECK_EQUAL(kind(0, CUSIM_LINEAR)->live_count, 0);
}

TEST(captures)
{
	CUstream stream, other;
	CUgraph graph;
	CUdeviceptr p;
	CUstreamCaptureStatus status;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	start(0);
	OK(cuMemAlloc_v2(&p, 64));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	free_now(); /* is allowed */
	OK(cuMemsetD8Async(p, 1, 64, stream));
	CHECK_EQUAL(ledger()->devices[0].sets.calls, 0);
	OK(cuMemsetD8Async(p, 1, 64, other));
	CHECK_EQUAL(ledger()->devices[0].sets.calls, 1);
	OK(cuStreamIsCapturing(stream, &status));
	CHECK_EQUAL(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	OK(cuMemAlloc_v2(&p, 64));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphDestroy(graph));
	OK(cuStreamBeginCapture_v2_ptsz(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK_EQUAL(cuMemAlloc_v2(&p, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	OK(cuStreamIsCapturing(stream, &status));
	CHECK_EQUAL(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	CHECK_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CHECK(graph == NULL);
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemFree_v2(p));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphDestroy(graph));
	CHECK_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
	OK(cuStreamDestroy_v2(stream));
	CHECK_EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQUAL(kind(0, CUSIM_LINEAR)->failed, 1);
}

TEST(a_child_starts_anew)
{
	CUdeviceptr p;
	CUipcMemHandle handle;
	int status, ends[2];
	pid_t pid;

	CHECK(pipe(ends) == 0);
	pid = fork();
	if (pid == 0) { /* before CUDA was used: a process like any other, which can open what the
			   parent shares */
		CHECK(read(ends[0], &handle, sizeof(handle)) == sizeof(handle));
		start(0);
		OK(cuIpcOpenMemHandle_v2(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
		OK(cuMemsetD8_v2(p, 1, 4096));
		CHECK_EQUAL(kind(0, CUSIM_LINEAR)->live_bytes, 0);
		OK(cuIpcCloseMemHandle(p));
		CHECK_EQUAL(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
		_exit(0);
	}
	start(0);
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuIpcGetMemHandle(&handle, p));
	CHECK_EQUAL(cuIpcOpenMemHandle_v2(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
		CUDA_ERROR_INVALID_CONTEXT);
	CHECK(write(ends[1], &handle, sizeof(handle)) == sizeof(handle));
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	pid = fork();
	if (pid == 0) {
		CHECK_EQUAL(cuMemAlloc_v2(&p, 4096), CUDA_ERROR_NOT_INITIALIZED);
		CHECK_EQUAL(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	OK(cuMemFree_v2(p));
}

TEST(ledger_is_written_at_exit)
{
	char path[64], text[8192];
	int status;
	size_t n;
	FILE *file;
	pid_t pid = fork();

	if (pid == 0) {
		CUdeviceptr p;

		setenv("CUSIM_LEDGER", "/tmp/cusim-selftest-%p.json", 1);
		start(0);
		OK(cuMemAlloc_v2(&p, 12345));
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	snprintf(path, sizeof(path), "/tmp/cusim-selftest-%d.json", (int)pid);
	file = fopen(path, "r");
	CHECK(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	fclose(file);
	unlink(path);
	CHECK(strstr(text, "\"linear\": {\"live_bytes\": 12345, \"live_count\": 1, "
			   "\"peak_live_bytes\": 12345"));
	CHECK(strstr(text, "\"footprint_bytes\": 67108864"));
}

static void *allocate_and_free(void *seed)
{
	unsigned int state = (unsigned int)(uintptr_t)seed;
	CUdeviceptr p[32] = {0};

	OK(cuCtxSetCurrent(context));
	for (int i = 0; i < 4000; i++) {
		int at = rand_r(&state) % 32;

		if (p[at])
			OK(at % 2 ? cuMemFreeAsync(p[at], NULL) : cuMemFree_v2(p[at]));
		p[at] = 0;
		if (rand_r(&state) % 2)
			OK(at % 2 ? cuMemAllocAsync(
					    &p[at], (size_t)rand_r(&state) % 100000 + 1, NULL)
				  : cuMemAlloc_v2(&p[at], (size_t)rand_r(&state) % 3000000 + 1));
	}
	for (int i = 0; i < 32; i++)
		OK(cuMemFree_v2(p[i]));
	return NULL;
}

TEST(threads)
{
	pthread_t threads[8];
	size_t before = start(0);

	for (uintptr_t i = 0; i < 8; i++)
		CHECK(pthread_create(&threads[i], NULL, allocate_and_free, (void *)(i + 1)) == 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	OK(cuCtxSynchronize());
	CHECK_EQUAL(free_now(), before);
	CHECK_EQUAL(kind(0, CUSIM_LINEAR)->live_count + kind(0, CUSIM_POOL)->live_count, 0);
	CHECK(kind(0, CUSIM_LINEAR)->allocations > 4000);
	CHECK_EQUAL(kind(0, CUSIM_LINEAR)->allocations, kind(0, CUSIM_LINEAR)->frees);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contexts),
		cmocka_unit_test(scripted_faults),
		cmocka_unit_test(bad_settings_are_reported),
		cmocka_unit_test(no_device),
		cmocka_unit_test(every_row_is_found),
		cmocka_unit_test(names_versions_and_flags),
		cmocka_unit_test(first_version_of_the_api),
		cmocka_unit_test(captures),
		cmocka_unit_test(a_child_starts_anew),
		cmocka_unit_test(ledger_is_written_at_exit),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
