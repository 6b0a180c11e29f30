/* The simulated driver's memory against the rules measured on a real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "selftest_driver.h"

TEST(packed_requests)
{
	static const struct {
		size_t bytes, step;
	} rows[] = {{1, 512}, {256, 512}, {512, 512}, {513, 1024}, {65536, 65536}, {65537, 66048},
		{MIB, MIB}};
	CUdeviceptr p[64];

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		size_t before = start(0), per_page = 2 * MIB / rows[r].step;
		int n = per_page < 64 ? (int)per_page + 1 : 64;

		for (int i = 0; i < n; i++)
			OK(cuMemAlloc_v2(&p[i], rows[r].bytes));
		for (int i = 1; i < n && i < (int)per_page; i++)
			CHECK_EQUAL(p[i] - p[i - 1], rows[r].step);
		CHECK_EQUAL(before - free_now(), n > (int)per_page ? 4 * MIB : 2 * MIB);
		for (int i = 0; i < n; i++)
			OK(cuMemFree_v2(p[i]));
		CHECK_EQUAL(free_now(), before);
	}
	CHECK_EQUAL(kind(0, CUSIM_LINEAR)->live_bytes, 0);
}

TEST(page_requests)
{
	static const struct {
		size_t bytes, taken, step;
	} rows[] = {{MIB + 1, 2 * MIB, 2 * MIB}, {2 * MIB, 2 * MIB, 2 * MIB},
		{2 * MIB + 1, 4 * MIB, 4 * MIB}, {3 * MIB, 4 * MIB, 4 * MIB},
		{5 * MIB, 6 * MIB, 6 * MIB}, {20 * MIB, 20 * MIB, 32 * MIB}};
	CUdeviceptr p[8];

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		size_t before = start(0);

		for (int i = 0; i < 8; i++) {
			OK(cuMemAlloc_v2(&p[i], rows[r].bytes));
			CHECK_EQUAL(before - free_now(), (size_t)(i + 1) * rows[r].taken);
			if (i)
				CHECK_EQUAL(p[i] - p[i - 1], rows[r].step);
		}
		CHECK_EQUAL(kind(0, CUSIM_LINEAR)->live_bytes, 8 * rows[r].bytes);
		for (int i = 0; i < 8; i++)
			OK(cuMemFree_v2(p[i]));
		CHECK_EQUAL(free_now(), before);
	}
}

TEST(large_requests_share_no_page)
{
	size_t before = start(0);
	CUdeviceptr large, small;

	OK(cuMemAlloc_v2(&large, MIB + 1));
	OK(cuMemAlloc_v2(&small, 512));
	CHECK_EQUAL(before - free_now(), 4 * MIB);
	OK(cuMemFree_v2(small));
	CHECK_EQUAL(before - free_now(), 2 * MIB);
}

/* Fills the device with blocks, frees every other one, and asks for the freed bytes in one piece.
 */
static CUresult after_every_other(size_t block)
{
	size_t before = start(0), n = 0;
	CUdeviceptr *p = calloc(before / block + 1, sizeof(*p)), big;
	CUresult result;

	CHECK(p);
	while (cuMemAlloc_v2(&p[n], block) == CUDA_SUCCESS)
		n++;
	CHECK_EQUAL(n, before / block);
	CHECK_EQUAL(free_now(), 0);
	for (size_t i = 0; i < n; i += 2)
		OK(cuMemFree_v2(p[i]));
	CHECK_EQUAL(free_now(), block > MIB ? (n + 1) / 2 * block : 0);
	result = cuMemAlloc_v2(&big, block > MIB ? free_now() : 2 * MIB);
	free(p);
	return result;
}

TEST(small_blocks_pin_pages, "CUSIM_MEMORY", "512M")
{
	CHECK_EQUAL(after_every_other(MIB), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(holes_between_pages_are_free, "CUSIM_MEMORY", "512M")
{
	CHECK_EQUAL(after_every_other(2 * MIB), CUDA_SUCCESS);
}

TEST(memory_runs_out, "CUSIM_MEMORY", "256M", "CUSIM_OTHER", "101M", "CUSIM_DEVICES", "2")
{
	size_t total, before = start(1);
	CUdeviceptr p, q;

	OK(cuDeviceTotalMem_v2(&total, 1));
	CHECK_EQUAL(total, 256 * MIB);
	CHECK_EQUAL(before, (256 - 102 - 64) * MIB);
	CHECK_EQUAL(cuMemAlloc_v2(&p, before + 1), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cuMemAlloc_v2(&p, 1ull << 60), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(free_now(), before);
	OK(cuMemAlloc_v2(&p, before));
	CHECK_EQUAL(cuMemAlloc_v2(&q, 1), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cuMemAllocAsync(&q, 1, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cuMemAlloc_v2(&q, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(kind(1, CUSIM_LINEAR)->failed, 4);
	CHECK_EQUAL(kind(1, CUSIM_POOL)->failed, 1);
	CHECK_EQUAL(kind(1, CUSIM_LINEAR)->peak_live_bytes, before);
	CHECK_EQUAL(ledger()->devices[1].peak_page_bytes, (256 - 102) * MIB);
	CHECK_EQUAL(cuMemFree_v2(p + 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree_v2(p));
	CHECK_EQUAL(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree_v2(0));
	CHECK_EQUAL(ledger()->failed_frees, 2);
	CHECK_EQUAL(kind(1, CUSIM_LINEAR)->frees, 1);
	CHECK_EQUAL(free_now(), before);
}

static CUmemGenericAllocationHandle create(size_t bytes, int device)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
	CUmemGenericAllocationHandle handle;

	OK(cuMemCreate(&handle, bytes, &properties, 0));
	return handle;
}

static void allow(CUdeviceptr address, size_t bytes, int device, CUmemAccess_flags flags)
{
	CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}, .flags = flags};

	OK(cuMemSetAccess(address, bytes, &access, 1));
}

TEST(physical_memory_lives_while_held_or_mapped)
{
	size_t before = start(0);
	CUmemGenericAllocationHandle handle = create(6 * MIB, 0), again;
	CUdeviceptr va;

	CHECK_EQUAL(before - free_now(), 6 * MIB);
	OK(cuMemAddressReserve(&va, 32 * MIB, 0, 0, 0));
	OK(cuMemMap(va, 6 * MIB, 0, handle, 0));
	CHECK_EQUAL(cuMemMap(va + 2 * MIB, 6 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemMap(va + 8 * MIB, 6 * MIB, 0, handle, 0));
	OK(cuMemRelease(handle));
	CHECK_EQUAL(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(kind(0, CUSIM_VMM)->live_bytes, 6 * MIB);
	OK(cuMemUnmap(va, 6 * MIB));
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(va + 9 * MIB)));
	CHECK_EQUAL(again, handle);
	CHECK_EQUAL(cuMemUnmap(va + 8 * MIB, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cuMemAddressFree(va, 32 * MIB), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemUnmap(va + 8 * MIB, 6 * MIB));
	CHECK_EQUAL(before - free_now(), 6 * MIB);
	OK(cuMemRelease(again));
	CHECK_EQUAL(free_now(), before);
	CHECK_EQUAL(kind(0, CUSIM_VMM)->live_bytes, 0);
	CHECK_EQUAL(kind(0, CUSIM_VMM)->frees, 1);
	CHECK_EQUAL(cuMemAddressFree(va, 16 * MIB), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAddressFree(va, 32 * MIB));
}

TEST(mappings_need_access, "CUSIM_DEVICES", "2")
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr va;
	char in[4096], out[4096];
	unsigned long long flags;
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};

	start(0);
	handle = create(2 * MIB, 0);
	OK(cuMemAddressReserve(&va, 8 * MIB, 4 * MIB, 0, 0));
	CHECK_EQUAL(va % (4 * MIB), 0);
	OK(cuMemMap(va, 2 * MIB, 0, handle, 0));
	OK(cuMemMap(va + 2 * MIB, 2 * MIB, 0, handle, 0));
	memset(in, 7, sizeof(in));
	CHECK_EQUAL(cuMemcpyHtoD_v2(va, in, sizeof(in)), CUDA_ERROR_INVALID_VALUE);
	allow(va, 4 * MIB, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemGetAccess(&flags, &location, va));
	CHECK_EQUAL(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemcpyHtoD_v2(va, in, sizeof(in)));
	OK(cuMemcpyDtoH_v2(out, va + 2 * MIB, sizeof(out))); /* the same memory, mapped twice */
	CHECK(!memcmp(in, out, sizeof(in)));
	OK(cuMemsetD8_v2(va + 2 * MIB - 10, 3, 20)); /* across two mappings */
	allow(va, 2 * MIB, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
	CHECK_EQUAL(cuMemcpyHtoD_v2(va, in, sizeof(in)), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyDtoH_v2(out, va, sizeof(out)));
	OK(cuMemUnmap(va, 4 * MIB));
	CHECK_EQUAL(cuMemcpyDtoH_v2(out, va, sizeof(out)), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(ledger()->failed_copies, 3);
}

TEST(copies_move_bytes, "CUSIM_DEVICES", "2")
{
	size_t n = 5 * MIB + 3;
	unsigned char *in = malloc(n), *out = calloc(n, 1), *pinned;
	CUdeviceptr a, b, managed, other;
	CUcontext second;

	CHECK(in && out);
	for (size_t i = 0; i < n; i++)
		in[i] = (unsigned char)(i * 31 + i / 4096);
	start(0);
	OK(cuMemAlloc_v2(&a, n));
	OK(cuMemAllocAsync(&b, n, NULL));
	OK(cuMemAllocManaged(&managed, n, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemHostAlloc((void **)&pinned, n, 0));
	OK(cuMemcpyHtoD_v2(a, in, n));
	OK(cuMemcpyDtoDAsync_v2(b, a, n, NULL));
	OK(cuMemcpyDtoH_v2_ptds(out, b, n));
	CHECK(!memcmp(in, out, n));
	OK(cuMemcpy(managed, b, n));
	CHECK(!memcmp(in, (void *)(uintptr_t)managed, n));
	OK(cuMemcpyAsync((CUdeviceptr)(uintptr_t)pinned, managed, n, NULL));
	CHECK(!memcmp(in, pinned, n));
	OK(cuMemcpy((CUdeviceptr)(uintptr_t)out, (CUdeviceptr)(uintptr_t)pinned, n));
	OK(cuMemcpy(a, (CUdeviceptr)(uintptr_t)pinned, n));
	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuCtxPushCurrent_v2(second));
	OK(cuMemAlloc_v2(&other, n));
	OK(cuCtxPopCurrent_v2(NULL));
	OK(cuMemcpyPeer(other, second, a, context, n));
	OK(cuMemcpy(a, other, n));
	CHECK_EQUAL(cuMemcpyHtoD_v2(a, in, n + 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cuMemcpyHtoD_v2(a + n, in, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cuMemcpyPeer(other, NULL, a, context, n), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_EQUAL(copies(0, CUSIM_H2D)->calls, 2);
	CHECK_EQUAL(copies(0, CUSIM_H2D)->bytes, 2 * n);
	CHECK_EQUAL(copies(0, CUSIM_D2H)->bytes, 2 * n);
	CHECK_EQUAL(copies(0, CUSIM_D2D)->bytes, 2 * n);
	CHECK_EQUAL(copies(0, CUSIM_H2H)->bytes, n);
	CHECK_EQUAL(copies(0, CUSIM_P2P)->bytes, n);
	CHECK_EQUAL(copies(1, CUSIM_P2P)->bytes, n);
	CHECK_EQUAL(ledger()->failed_copies, 3);
	CHECK_EQUAL(kind(1, CUSIM_LINEAR)->live_bytes, n);
	free(in);
	free(out);
}

TEST(sets_write_patterns)
{
	unsigned char out[64 * 16];
	CUdeviceptr p;

	start(0);
	OK(cuMemAlloc_v2(&p, sizeof(out)));
	OK(cuMemsetD8_v2(p, 1, sizeof(out)));
	OK(cuMemsetD16_v2(p, 0x0302, 8));
	OK(cuMemsetD32Async(p + 16, 0x07060504, 4, NULL));
	OK(cuMemsetD2D8_v2_ptds(p + 64, 64, 9, 3, 10));
	OK(cuMemcpyDtoH_v2(out, p, sizeof(out)));
	for (int i = 0; i < 16; i++)
		CHECK_EQUAL(out[i], i % 2 ? 3 : 2);
	for (int i = 16; i < 32; i++)
		CHECK_EQUAL(out[i], 4 + i % 4);
	for (int i = 32; i < (int)sizeof(out); i++)
		CHECK_EQUAL(out[i], i >= 64 && i < 64 * 11 && i % 64 < 3 ? 9 : 1);
	CHECK_EQUAL(cuMemsetD16_v2(p + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cuMemsetD2D8_v2(p, 2, 0, 3, 2), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cuMemsetD8_v2(p, 0, sizeof(out) + 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(ledger()->devices[0].sets.calls, 4);
	CHECK_EQUAL(ledger()->devices[0].sets.bytes, sizeof(out) + 16 + 16 + 30);
	CHECK_EQUAL(ledger()->failed_sets, 3);
}

#if CUDA_VERSION >= 12040
TEST(pools_have_a_most)
{
	size_t before = start(0);
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
		.maxSize = 50 * MIB};
	CUdeviceptr p, q;
	CUmemoryPool pool;

	OK(cuMemPoolCreate(&pool, &properties));
	OK(cuMemAllocFromPoolAsync(&p, 30 * MIB, pool, NULL));
	CHECK_EQUAL(cuMemAllocFromPoolAsync(&q, 22 * MIB, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(before - free_now(), 32 * MIB);
	OK(cuMemAllocFromPoolAsync(&q, 20 * MIB, pool, NULL));
	CHECK_EQUAL(before - free_now(), 50 * MIB);
	OK(cuMemFreeAsync(p, NULL));
	OK(cuMemFreeAsync(q, NULL));
	OK(cuMemPoolDestroy(pool));
	CHECK_EQUAL(free_now(), before);
}
#endif

/* What is freed on a stream is there at once for that stream, and for others once it is done. */
TEST(frees_wait_for_their_stream, "CUSIM_MEMORY", "192M")
{
	size_t before = start(0);
	cuuint64_t used;
	CUmemoryPool pool;
	CUdeviceptr p, q;
	CUstream stream;

	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuStreamCreate(&stream, 0));
	OK(cuMemAllocAsync(&p, 96 * MIB, stream));
	cusim_hold_events(true);
	OK(cuMemFreeAsync(p, stream));
	CHECK_EQUAL(kind(0, CUSIM_POOL)->live_bytes, 0);
	CHECK_EQUAL(cuMemFreeAsync(p, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	CHECK_EQUAL(used, 96 * MIB);
	CHECK_EQUAL(cuMemAllocAsync(&q, 64 * MIB, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAllocAsync(&p, 96 * MIB, stream));
	OK(cuMemFreeAsync(p, stream));
	OK(cuStreamSynchronize(stream));
	CHECK_EQUAL(free_now(), before);
	OK(cuMemAllocAsync(&q, 64 * MIB, NULL));
	cusim_hold_events(false);
	OK(cuMemFreeAsync(q, NULL));
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	CHECK_EQUAL(used, 0);
}

TEST(pools_reserve_in_steps)
{
	size_t before = start(0);
	cuuint64_t reserved, used, threshold = 64 * MIB;
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUmemoryPool pool, own;
	CUdeviceptr p[16], q;

	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	for (int i = 0; i < 16; i++)
		OK(cuMemAllocAsync_ptsz(&p[i], 10 * MIB, NULL));
	for (int i = 0; i < 16; i += 2)
		OK(cuMemFreeAsync(p[i], NULL));
	OK(cuStreamSynchronize(NULL));
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	CHECK_EQUAL(reserved, 160 * MIB);
	CHECK_EQUAL(used, 80 * MIB);
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	for (int i = 1; i < 16; i += 2)
		OK(cuMemFree_v2(p[i]));
	CHECK_EQUAL(ledger()->devices[0].pool_reserved_bytes, 160 * MIB);
	OK(cuCtxSynchronize());
	CHECK_EQUAL(before - free_now(), 64 * MIB);
	OK(cuMemPoolTrimTo(pool, 0));
	CHECK_EQUAL(free_now(), before);
	OK(cuMemPoolCreate(&own, &properties));
	OK(cuMemAllocFromPoolAsync(&q, 100, own, NULL));
	CHECK_EQUAL(before - free_now(), 32 * MIB);
	OK(cuMemPoolDestroy(own));
	CHECK_EQUAL(cuMemAllocFromPoolAsync(&p[0], 100, own, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(kind(0, CUSIM_POOL)->live_bytes, 100);
	OK(cuMemFreeAsync_ptsz(q, NULL));
	CHECK_EQUAL(free_now(), before);
	CHECK_EQUAL(kind(0, CUSIM_POOL)->frees, 17);
}

TEST(host_memory)
{
	char *heap = malloc(10000), *p;
	unsigned int type = 0;
	CUdeviceptr device;

	CHECK(heap);
	start(0);
	OK(cuMemAllocHost_v2((void **)&p, 5000));
	p[4999] = 1;
	OK(cuPointerGetAttribute(
		&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)p + 4999));
	CHECK_EQUAL(type, CU_MEMORYTYPE_HOST);
	CHECK_EQUAL(cuMemFreeHost(p + 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemHostRegister_v2(heap, 10000, 0));
	CHECK_EQUAL(cuMemHostRegister_v2(heap + 5000, 10, 0),
		CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	OK(cuMemHostGetDevicePointer_v2(&device, heap + 7, 0));
	CHECK_EQUAL(device, (uintptr_t)heap + 7);
	CHECK_EQUAL(cuMemHostUnregister(p), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	CHECK_EQUAL(kind(0, CUSIM_PINNED)->live_bytes, 5000);
	CHECK_EQUAL(kind(0, CUSIM_REGISTERED)->live_bytes, 10000);
	OK(cuMemFreeHost(p));
	OK(cuMemHostUnregister(heap));
	CHECK_EQUAL(cuMemHostUnregister(heap), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	CHECK_EQUAL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)heap),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(kind(0, CUSIM_REGISTERED)->live_count + kind(0, CUSIM_PINNED)->live_count, 0);
	CHECK_EQUAL(kind(0, CUSIM_REGISTERED)->failed, 1);
	CHECK_EQUAL(ledger()->failed_frees, 3);
	free(heap);
}

TEST(arrays)
{
	CUDA_ARRAY_DESCRIPTOR small = {100, 7, CU_AD_FORMAT_FLOAT, 4};
	CUDA_ARRAY3D_DESCRIPTOR large = {.Width = 256,
		.Height = 256,
		.Depth = 16,
		.Format = CU_AD_FORMAT_HALF,
		.NumChannels = 2};
	size_t before = start(0);
	CUarray a, b;

	OK(cuArrayCreate_v2(&a, &small));
	OK(cuArray3DCreate_v2(&b, &large));
	CHECK_EQUAL(kind(0, CUSIM_ARRAY)->live_bytes, 7 * 2048 + 4 * MIB);
	CHECK_EQUAL(before - free_now(), 6 * MIB);
	CHECK_EQUAL(cuMemFree_v2((CUdeviceptr)(uintptr_t)a), CUDA_ERROR_INVALID_VALUE);
	OK(cuArrayDestroy(a));
	OK(cuArrayDestroy(b));
	CHECK_EQUAL(cuArrayDestroy(b), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQUAL(free_now(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_requests),
		cmocka_unit_test(page_requests),
		cmocka_unit_test(large_requests_share_no_page),
		cmocka_unit_test(small_blocks_pin_pages),
		cmocka_unit_test(holes_between_pages_are_free),
		cmocka_unit_test(memory_runs_out),
		cmocka_unit_test(physical_memory_lives_while_held_or_mapped),
		cmocka_unit_test(mappings_need_access),
		cmocka_unit_test(copies_move_bytes),
		cmocka_unit_test(sets_write_patterns),
#if CUDA_VERSION >= 12040
		cmocka_unit_test(pools_have_a_most),
#endif
		cmocka_unit_test(frees_wait_for_their_stream),
		cmocka_unit_test(pools_reserve_in_steps),
		cmocka_unit_test(host_memory),
		cmocka_unit_test(arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
