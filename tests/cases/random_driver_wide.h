/*
 * random_driver_wide.h: the families of --families all for random_driver.h, which includes it.
 */
#ifndef RANDOM_DRIVER_WIDE_H
#define RANDOM_DRIVER_WIDE_H

#include <string.h>

#include "random_driver_box.h"
#include "random_driver_share.h"

static int true_size(struct array *a)
{
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	CUresult error = a->n_levels ? CU(cuMipmappedArrayGetMemoryRequirements)(
					       &needs, POINTER(a->handle), device_now)
				     : CU(cuArrayGetMemoryRequirements)(
					       &needs, POINTER(a->handle), device_now);

	a->bytes = error ? 0 : needs.size;
	return (int)error;
}

static int make_mipmap(struct array *a)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = a->width,
		.Height = a->height,
		.Depth = a->depth,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 1};
	CUmipmappedArray mipmap;
	CUarray level = NULL;
	CUresult error = CU(cuMipmappedArrayCreate)(&mipmap, &d, a->n_levels);

	if (!error)
		error = CU(cuMipmappedArrayGetLevel)(&level, mipmap, 0);
	a->handle = (u64)(uintptr_t)mipmap;
	a->level = (u64)(uintptr_t)level;
	return error ? (int)error : true_size(a);
}

static int array_make(unsigned form, struct array *a)
{
	unsigned int width = (unsigned int)a->width, height = (unsigned int)a->height;
	CUDA_ARRAY_DESCRIPTOR_v1 first = {width, height, CU_AD_FORMAT_UNSIGNED_INT8, 1};
	CUDA_ARRAY_DESCRIPTOR second = {a->width, a->height, CU_AD_FORMAT_UNSIGNED_INT8, 1};
	CUDA_ARRAY3D_DESCRIPTOR_v1 first_3d = {
		width, height, (unsigned int)a->depth, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
	CUDA_ARRAY3D_DESCRIPTOR second_3d = {
		a->width, a->height, a->depth, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
	CUarray array;
	CUresult error;

	if (a->n_levels)
		return make_mipmap(a);
	switch (a->depth ? 2 + CHOOSE(2) : CHOOSE(4)) {
	case 0:
		error = CU(cuArrayCreate)(&array, &first);
		break;
	case 1:
		error = CU(cuArrayCreate_v2)(&array, &second);
		break;
	case 2:
		error = CU(cuArray3DCreate)(&array, &first_3d);
		break;
	default:
		error = CU(cuArray3DCreate_v2)(&array, &second_3d);
	}
	a->handle = a->level = (u64)(uintptr_t)array;
	return error ? (int)error : true_size(a);
}

static int array_end(const struct array *a)
{
	return (int)(a->n_levels ? CU(cuMipmappedArrayDestroy)(POINTER(a->handle))
				 : CU(cuArrayDestroy)(POINTER(a->handle)));
}

#if CUDA_VERSION >= 13000
static CUresult migrate_batch(unsigned form, const CUmemLocation *to, u64 address, u64 bytes)
{
	CUdeviceptr all[2] = {address, address + bytes / 2};
	size_t sizes[2] = {bytes / 2, bytes - bytes / 2}, first = 0;
	size_t skip = bytes == 1; /* no part may be empty */
	CUmemLocation place = *to;

	return form & 1 ? CU(cuMemPrefetchBatchAsync)(all + skip, sizes + skip, 2 - skip, &place,
				  &first, 1, 0, streams[device_now])
			: CU(cuMemPrefetchBatchAsync_ptsz)(all + skip, sizes + skip, 2 - skip,
				  &place, &first, 1, 0, streams[device_now]);
}

static int discard(unsigned form, u64 address, u64 bytes)
{
	CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_HOST};
	CUdeviceptr all = address;
	CUstream stream = streams[device_now];
	size_t size = bytes, first = 0;

	switch (CHOOSE(4)) {
	case 0:
		return (int)CU(cuMemDiscardBatchAsync)(&all, &size, 1, 0, stream);
	case 1:
		return (int)CU(cuMemDiscardBatchAsync_ptsz)(&all, &size, 1, 0, stream);
	case 2:
		return (int)CU(cuMemDiscardAndPrefetchBatchAsync)(
			&all, &size, 1, &place, &first, 1, 0, stream);
	default:
		return (int)CU(cuMemDiscardAndPrefetchBatchAsync_ptsz)(
			&all, &size, 1, &place, &first, 1, 0, stream);
	}
}
#endif

static int migrate(unsigned form, int device, u64 address, u64 bytes)
{
	CUstream stream = stream_of(form);

#if CUDA_VERSION >= 13000
	CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};

	switch (CHOOSE(8)) {
	case 0:
		return (int)CU(cuMemPrefetchAsync_v2)(address, bytes, place, 0, stream);
	case 1:
		return (int)CU(cuMemPrefetchAsync_v2_ptsz)(address, bytes, place, 0, stream);
	case 2:
		return (int)CU(cuMemAdvise_v2)(
			address, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, place);
	case 3:
		return (int)migrate_batch(form, &place, address, bytes);
	default:
		break;
	}
#endif
	switch (CHOOSE(3)) {
	case 0:
		return (int)CU(cuMemPrefetchAsync)(address, bytes, device, stream);
	case 1:
		return (int)CU(cuMemPrefetchAsync_ptsz)(address, bytes, CU_DEVICE_CPU, stream);
	default:
		return (int)CU(cuMemAdvise)(address, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, device);
	}
}

#if CUDA_VERSION >= 12000
static CUresult library(unsigned form)
{
	CUlibrary loaded;
	CUmodule module;
	CUkernel kernel;
	CUfunction function;
	CUresult error =
		form & 1 ? CU(cuLibraryLoadData)(&loaded, "code", NULL, NULL, 0, NULL, NULL, 0)
			 : CU(cuLibraryLoadFromFile)(
				   &loaded, "/dev/null", NULL, NULL, 0, NULL, NULL, 0);

	if (!error)
		error = CU(cuLibraryGetModule)(&module, loaded);
	if (!error)
		error = CU(cuLibraryGetKernel)(&kernel, loaded, "k");
	if (!error && (form & 2))
		error = CU(cuKernelGetFunction)(&function, kernel);
	return error ? error : CU(cuLibraryUnload)(loaded);
}
#endif

static int code(unsigned form)
{
	CUmodule module;
	CUfunction function;
	CUresult error;

	switch (CHOOSE(5)) {
	case 0:
		error = CU(cuModuleLoad)(&module, "/dev/null");
		break;
	case 1:
		error = CU(cuModuleLoadData)(&module, "image");
		break;
	case 2:
		error = CU(cuModuleLoadDataEx)(&module, "image", 0, NULL, NULL);
		break;
#if CUDA_VERSION >= 12000
	case 3:
		return (int)library(form);
#endif
	default:
		error = CU(cuModuleLoadFatBinary)(&module, "image");
	}
	if (!error && (form & 1))
		error = CU(cuModuleGetFunction)(&function, module, "f");
	return (int)(error ? error : CU(cuModuleUnload)(module));
}

#if CUDA_VERSION >= 12040
static CUresult green(int device)
{
	CUdevResource resource;
	CUdevResourceDesc description;
	CUgreenCtx made;
	CUresult error = CU(cuDeviceGetDevResource)(device, &resource, CU_DEV_RESOURCE_TYPE_SM);

	if (!error)
		error = CU(cuDevResourceGenerateDesc)(&description, &resource, 1);
	if (!error)
		error = CU(cuGreenCtxCreate)(
			&made, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
	return error ? error : CU(cuGreenCtxDestroy)(made);
}

static CUresult multicast(void)
{
	CUmulticastObjectProp properties = {.numDevices = 1, .size = 2 << 20};
	CUmemGenericAllocationHandle handle;
	CUresult error = CU(cuMulticastCreate)(&handle, &properties);

	return error ? error : CU(cuMemRelease)(handle);
}
#endif

static CUresult pool_adjust(unsigned form, int device)
{
	CUmemoryPool pool = pools[device];
	cuuint64_t value = (form & 3) << 25;

	switch (CHOOSE(4)) {
	case 0:
		return CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
	case 1:
		return CU(cuMemPoolTrimTo)(pool, value);
	case 2:
		return CU(cuDeviceSetMemPool)(device, pool);
	default:
		return CU(cuMemPoolGetAttribute)(
			pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value);
	}
}

#if CUDA_VERSION >= 13000
static CUresult place_adjust(unsigned form, int device)
{
	CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
	CUmemoryPool pool;
	CUresult error =
		form & 1 ? CU(cuMemGetMemPool)(&pool, &place, CU_MEM_ALLOCATION_TYPE_PINNED)
			 : CU(cuMemGetDefaultMemPool)(&pool, &place, CU_MEM_ALLOCATION_TYPE_PINNED);

	return error ? error : CU(cuMemSetMemPool)(&place, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
}
#endif

static int adjust(unsigned form, int device)
{
	cuuint64_t value;

	switch (CHOOSE(8)) {
	case 0:
		return (int)CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, (1 + (form & 3)) << 10);
	case 1:
		return (int)CU(cuDeviceGraphMemTrim)(device);
	case 2:
		return (int)CU(cuDeviceGetGraphMemAttribute)(
			device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value);
#if CUDA_VERSION >= 12040
	case 3:
		return (int)green(device);
	case 4:
		return (int)multicast();
#endif
#if CUDA_VERSION >= 13000
	case 5:
		return (int)place_adjust(form, device);
#endif
	default:
		return (int)pool_adjust(form / 8, device);
	}
}

static const struct wide wide = {
	.array_make = array_make,
	.array_end = array_end,
	.box = box,
#if CUDA_VERSION >= 12080
	.batch = batch,
#endif
	.share = share,
	.unshare = unshare,
	.has_share = {true, true, true, true, true},
	.graph_make = graph_make,
	.graph_launch = graph_launch,
	.graph_end = graph_end,
	.migrate = migrate,
#if CUDA_VERSION >= 13000
	.discard = discard,
#endif
	.code = code,
	.adjust = adjust,
};

#endif
