/* The simulated driver's arrays, and copies whose descriptors say what is copied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "selftest_driver.h"

static CUarray array_2d(size_t width, size_t height, CUarray_format format, unsigned int n_channels)
{
	CUDA_ARRAY_DESCRIPTOR d = {width, height, format, n_channels};
	CUarray array;

	OK(cuArrayCreate_v2(&array, &d));
	return array;
}

static size_t array_bytes(CUarray array)
{
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;

	OK(cuArrayGetMemoryRequirements(&needs, array, 0));
	return needs.size;
}

TEST(arrays_take_what_they_say)
{
	CUDA_ARRAY_DESCRIPTOR_v1 low = {100, 7, CU_AD_FORMAT_FLOAT, 4};
	CUDA_ARRAY3D_DESCRIPTOR_v1 low_3d = {256, 256, 16, CU_AD_FORMAT_HALF, 2, 0};
	CUDA_ARRAY3D_DESCRIPTOR layers = {.Width = 1000,
		.Height = 1000,
		.Depth = 3,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_LAYERED};
	size_t before = start(0);
	CUarray a, b, c, line;

	OK(cuArrayCreate(&a, &low));
	OK(cuArray3DCreate(&b, &low_3d));
	OK(cuArray3DCreate_v2(&c, &layers));
	line = array_2d(3000, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1);
	CHECK_EQUAL(array_bytes(a), 7 * 2048);
	CHECK_EQUAL(array_bytes(b), 4 * MIB);
	CHECK_EQUAL(array_bytes(c), 4 * MIB); /* 3000 rows of 1024 bytes */
	CHECK_EQUAL(array_bytes(line), 3072);
	CHECK_EQUAL(kind(0, CUSIM_ARRAY)->live_bytes, 8 * MIB + 7 * 2048 + 3072);
	CHECK_EQUAL(before - free_now(), 10 * MIB); /* the small ones share a page */
	CHECK_EQUAL(ledger()->devices[0].owned_bytes[CUSIM_BY_ARRAYS], 10 * MIB);
	CHECK_EQUAL(ledger()->devices[0].owned_bytes[CUSIM_BY_LINEAR], 0);
	check_sums();
	layers.Flags = CUDA_ARRAY3D_SPARSE;
	CHECK_EQUAL(cuArray3DCreate_v2(&c, &layers), CUDA_ERROR_NOT_SUPPORTED);
	layers.Flags = 0;
	layers.NumChannels = 3;
	CHECK_EQUAL(cuArray3DCreate_v2(&c, &layers), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(kind(0, CUSIM_ARRAY)->failed, 2);
	OK(cuArrayDestroy(a));
	OK(cuArrayDestroy(b));
	CHECK_EQUAL(cuArrayDestroy(b), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQUAL(ledger()->failed_frees, 1);
	OK(cuDevicePrimaryCtxReset_v2(0));
	CHECK_EQUAL(kind(0, CUSIM_ARRAY)->implicit_frees, 2);
	start(0);
	CHECK_EQUAL(cuArrayDestroy(line), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQUAL(free_now(), before);
}

TEST(arrays_whose_size_is_a_secret, "CUSIM_ARRAY_QUERY", "0")
{
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;

	start(0);
	CHECK_EQUAL(cuArrayGetMemoryRequirements(&needs, array_2d(10, 10, CU_AD_FORMAT_HALF, 1), 0),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(mipmapped_arrays)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {
		.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 4};
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	size_t before = start(0);
	unsigned char in[64], out[64] = "";
	CUmipmappedArray mipmap;
	CUarray level;

	OK(cuMipmappedArrayCreate(&mipmap, &d, 7));
	OK(cuMipmappedArrayGetMemoryRequirements(&needs, mipmap, 0));
	/* rows of 1024, 512, and 512 bytes where fewer would do */
	CHECK_EQUAL(needs.size, 64 * 1024 + (32 + 16 + 8 + 4 + 2 + 1) * 512);
	CHECK_EQUAL(kind(0, CUSIM_ARRAY)->live_bytes, needs.size);
	CHECK_EQUAL(before - free_now(), 2 * MIB);
	OK(cuMipmappedArrayGetLevel(&level, mipmap, 6));
	CHECK_EQUAL(cuArrayDestroy(level), CUDA_ERROR_ARRAY_IS_MAPPED);
	memset(in, 5, sizeof(in));
	OK(cuMemcpyHtoA_v2(level, 0, in, 16)); /* the last level has one element */
	CHECK_EQUAL(cuMemcpyHtoA_v2(level, 0, in, 17), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyAtoH_v2(out, level, 0, 16));
	CHECK(!memcmp(in, out, 16));
	CHECK_EQUAL(cuMipmappedArrayGetLevel(&level, mipmap, 7), CUDA_ERROR_INVALID_VALUE);
	OK(cuMipmappedArrayDestroy(mipmap));
	CHECK_EQUAL(cuMemcpyAtoH_v2(out, level, 0, 1), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQUAL(cuMipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQUAL(free_now(), before);
}

static void fill(unsigned char *bytes, size_t n, int seed)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (unsigned char)(seed + (int)(i * 31 + i / 256));
}

TEST(rows_of_arrays, "CUSIM_DEVICES", "2")
{
	unsigned char in[4000], out[4000];
	CUarray a, b;
	CUdeviceptr p;
	CUdeviceptr_v1 low;

	start(0);
	fill(in, sizeof(in), 1);
	a = array_2d(4000, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1);
	b = array_2d(2000, 1, CU_AD_FORMAT_HALF, 1);
	OK(cuMemAlloc_v2(&p, 4000));
	OK(cuMemAlloc(&low, 4000));
	OK(cuMemcpyHtoA(a, 0, in, 1000));
	OK(cuMemcpyHtoAAsync_v2_ptsz(a, 1000, in + 1000, 3000, NULL));
	OK(cuMemcpyAtoA_v2_ptds(b, 100, a, 100, 3900));
	OK(cuMemcpyHtoA_v2(b, 0, in, 100));
	OK(cuMemcpyAtoD(low, b, 0, 4000));
	OK(cuMemcpyDtoD_v2(p, low, 4000));
	OK(cuMemcpyDtoA_v2(a, 500, p + 500, 500));
	OK(cuMemcpyAtoHAsync(out, a, 0, 4000, NULL));
	CHECK(!memcmp(in, out, sizeof(in)));
	CHECK_EQUAL(copies(0, CUSIM_H2D)->calls, 3);
	CHECK_EQUAL(copies(0, CUSIM_H2D)->bytes, 4100);
	CHECK_EQUAL(copies(0, CUSIM_D2D)->calls, 4);
	CHECK_EQUAL(copies(0, CUSIM_D2D)->bytes, 3900 + 4000 + 4000 + 500);
	CHECK_EQUAL(copies(0, CUSIM_D2H)->bytes, 4000);
	CHECK_EQUAL(cuMemcpyHtoA_v2(a, 1, in, 4000), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cuMemcpyAtoH_v2(out, (CUarray)(void *)out, 0, 1), CUDA_ERROR_INVALID_HANDLE);
	a = array_2d(10, 10, CU_AD_FORMAT_FLOAT, 1);
	CHECK_EQUAL(cuMemcpyHtoA_v2(a, 0, in, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(ledger()->failed_copies, 3);
}

TEST(rectangles)
{
	unsigned char in[64 * 50], out[64 * 50] = "";
	CUarray array = NULL;
	CUdeviceptr pitched;
	CUdeviceptr_v1 low;
	size_t pitch;
	CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = in,
		.srcPitch = 64,
		.srcXInBytes = 8,
		.srcY = 2,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstXInBytes = 4,
		.dstY = 1,
		.WidthInBytes = 40,
		.Height = 30};
	CUDA_MEMCPY2D_v1 first = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcPitch = 40,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = out,
		.dstPitch = 64,
		.dstXInBytes = 8,
		.dstY = 2,
		.WidthInBytes = 40,
		.Height = 30};

	start(0);
	fill(in, sizeof(in), 3);
	array = array_2d(16, 40, CU_AD_FORMAT_FLOAT, 1);
	OK(cuMemAllocPitch_v2(&pitched, &pitch, 40, 30, 4));
	OK(cuMemAlloc(&low, 1200));
	c.dstArray = array;
	OK(cuMemcpy2D_v2(&c)); /* host to array */
	c = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcArray = array,
		.srcXInBytes = 4,
		.srcY = 1,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = pitched,
		.dstPitch = pitch,
		.WidthInBytes = 40,
		.Height = 30};
	OK(cuMemcpy2DAsync_v2_ptsz(&c, NULL)); /* array to pitched */
	c.WidthInBytes = 61;
	CHECK_EQUAL(cuMemcpy2D_v2(&c), CUDA_ERROR_INVALID_VALUE);
	c = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = pitched,
		.srcPitch = pitch,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = low,
		.dstPitch = 40,
		.WidthInBytes = 40,
		.Height = 30};
	OK(cuMemcpy2DUnaligned_v2_ptds(&c)); /* pitched to close rows */
	c.dstPitch = 39;
	CHECK_EQUAL(cuMemcpy2D_v2_ptds(&c), CUDA_ERROR_INVALID_VALUE);
	first.srcDevice = low;
	OK(cuMemcpy2D(&first)); /* and to where it came from */
	for (int y = 0; y < 50; y++)
		for (int x = 0; x < 64; x++)
			CHECK_EQUAL(out[y * 64 + x],
				x >= 8 && x < 48 && y >= 2 && y < 32 ? in[y * 64 + x] : 0);
	CHECK_EQUAL(copies(0, CUSIM_H2D)->bytes, 1200);
	CHECK_EQUAL(copies(0, CUSIM_D2D)->calls, 2);
	CHECK_EQUAL(copies(0, CUSIM_D2H)->bytes, 1200);
	first.Height = 0;
	OK(cuMemcpy2DAsync(&first, NULL));
	CHECK_EQUAL(copies(0, CUSIM_D2H)->calls, 1);
	CHECK_EQUAL(cuMemcpy2D_v2(NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(ledger()->failed_copies, 3);
}

TEST(boxes, "CUSIM_DEVICES", "2")
{
	unsigned char in[16 * 8 * 4], out[16 * 8 * 4] = "";
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 8,
		.Height = 6,
		.Depth = 3,
		.Format = CU_AD_FORMAT_UNSIGNED_INT16,
		.NumChannels = 1};
	CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = in,
		.srcPitch = 16,
		.srcHeight = 8,
		.srcZ = 1,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.WidthInBytes = 16,
		.Height = 6,
		.Depth = 3};
	CUDA_MEMCPY3D_v1 first = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcPitch = 16,
		.srcHeight = 6,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = out,
		.dstPitch = 16,
		.dstHeight = 8,
		.dstZ = 1,
		.WidthInBytes = 16,
		.Height = 6,
		.Depth = 3};
	CUDA_MEMCPY3D_PEER peer = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstPitch = 16,
		.dstHeight = 6,
		.WidthInBytes = 16,
		.Height = 6,
		.Depth = 3};
	CUcontext second;
	CUdeviceptr other;
	CUdeviceptr_v1 low;

	start(0);
	fill(in, sizeof(in), 7);
	OK(cuArray3DCreate_v2(&c.dstArray, &d));
	OK(cuMemAlloc(&low, 288));
	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuCtxPushCurrent_v2(second));
	OK(cuMemAlloc_v2(&other, 288));
	OK(cuCtxPopCurrent_v2(NULL));
	OK(cuMemcpy3D_v2(&c));
	c.srcZ = 2;
	c.dstZ = 1;
	CHECK_EQUAL(cuMemcpy3D_v2_ptds(&c), CUDA_ERROR_INVALID_VALUE); /* too deep */
	peer.srcArray = c.dstArray;
	peer.dstDevice = other;
	CHECK_EQUAL(cuMemcpy3DPeer(&peer), CUDA_ERROR_INVALID_CONTEXT);
	peer.dstContext = second;
	OK(cuMemcpy3DPeerAsync_ptsz(&peer, NULL));
	OK(cuMemcpyPeer(low, context, other, second, 288));
	first.srcDevice = low;
	OK(cuMemcpy3DAsync(&first, NULL));
	CHECK(!memcmp(out + 128, in + 128, 96) && !memcmp(out + 384, in + 384, 96));
	CHECK(out[0] == 0 && out[127] == 0 && out[128 + 96] == 0);
	CHECK_EQUAL(copies(0, CUSIM_H2D)->bytes, 288);
	CHECK_EQUAL(copies(1, CUSIM_P2P)->bytes, 288);
	CHECK_EQUAL(copies(0, CUSIM_P2P)->bytes, 288);
	CHECK_EQUAL(copies(0, CUSIM_D2H)->calls, 1);
	CHECK_EQUAL(ledger()->failed_copies, 2);
}

#if CUDA_VERSION >= 12080
TEST(batches)
{
	unsigned char in[1000], out[1000] = "";
	CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	size_t sizes[3] = {100, 200, 300}, firsts[1] = {0}, failed = 77;
	CUdeviceptr p, dsts[3], srcs[3];
	CUDA_MEMCPY3D_BATCH_OP boxes[2] = {0};
	CUarray array;
	CUstream stream;

	start(0);
	fill(in, sizeof(in), 9);
	OK(cuStreamCreate(&stream, 0));
	OK(cuMemAlloc_v2(&p, 1000));
	for (int i = 0; i < 3; i++) {
		dsts[i] = p + (size_t)i * 300;
		srcs[i] = (CUdeviceptr)(uintptr_t)(in + i * 300);
	}
	OK(cuMemcpyBatchAsync(
		dsts, srcs, sizes, 3, &attributes, firsts, 1, &failed, CU_STREAM_PER_THREAD));
	CHECK_EQUAL(failed, 77);
	CHECK_EQUAL(copies(0, CUSIM_H2D)->calls, 3);
	CHECK_EQUAL(copies(0, CUSIM_H2D)->bytes, 600);
	CHECK_EQUAL(ledger()->batches.calls, 1);
	CHECK_EQUAL(ledger()->batches.bytes, 600);
	OK(cuMemcpyDtoH_v2(out, p + 300, 200));
	CHECK(!memcmp(out, in + 300, 200));
	dsts[1] = p + 900; /* not so much is left of it */
	CHECK_EQUAL(cuMemcpyBatchAsync_ptsz(
			    dsts, srcs, sizes, 3, &attributes, firsts, 1, &failed, stream),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(failed, 1);
	CHECK_EQUAL(cuMemcpyBatchAsync(dsts, srcs, sizes, 3, &attributes, firsts, 1, &failed, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(failed, SIZE_MAX);
	array = array_2d(20, 5, CU_AD_FORMAT_UNSIGNED_INT16, 1);
	boxes[0].src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	boxes[0].src.op.ptr.ptr = (CUdeviceptr)(uintptr_t)in;
	boxes[0].src.op.ptr.rowLength = 25;
	boxes[0].dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
	boxes[0].dst.op.array.array = array;
	boxes[0].extent.width = 20;
	boxes[0].extent.height = 5;
	boxes[0].extent.depth = 1;
	boxes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
	boxes[1] = boxes[0];
	boxes[1].dst = boxes[0].src;
	boxes[1].dst.op.ptr.ptr = p;
	boxes[1].dst.op.ptr.rowLength = 0;
	boxes[1].src = boxes[0].dst;
	OK(cuMemcpy3DBatchAsync(2, boxes, &failed, 0, stream));
	CHECK_EQUAL(copies(0, CUSIM_H2D)->bytes, 800);
	CHECK_EQUAL(copies(0, CUSIM_D2D)->bytes, 200);
	CHECK_EQUAL(ledger()->batches.bytes, 1000);
	OK(cuMemcpyDtoH_v2(out, p, 200));
	for (int y = 0; y < 5; y++)
		CHECK(!memcmp(out + 40 * y, in + 50 * y, 40));
	boxes[1].extent.height = 6;
	CHECK_EQUAL(
		cuMemcpy3DBatchAsync_ptsz(2, boxes, &failed, 0, stream), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(failed, 1);
#if CUDA_VERSION >= 13000
	boxes[1].extent.height = 5;
	OK(cuMemcpy3DBatchAsync_v2_ptsz(2, boxes, 0, stream));
	dsts[1] = p + 300;
	OK(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 3, &attributes, firsts, 1, stream));
	CHECK_EQUAL(ledger()->batches.calls, 4);
#endif
	CHECK_EQUAL(ledger()->failed_copies, 3);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_take_what_they_say),
		cmocka_unit_test(arrays_whose_size_is_a_secret),
		cmocka_unit_test(mipmapped_arrays),
		cmocka_unit_test(rows_of_arrays),
		cmocka_unit_test(rectangles),
		cmocka_unit_test(boxes),
#if CUDA_VERSION >= 12080
		cmocka_unit_test(batches),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
