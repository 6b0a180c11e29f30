/*
 * random_driver.h: the driver API as a route of the random program, for both ways to find its entry
 * points. The file that includes it defines ROUTE_NAME and CU(export), the function of that name.
 */
#ifndef RANDOM_DRIVER_H
#define RANDOM_DRIVER_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stdlib.h>

#include "random_route.h"

#define MAX_DEVICES 16

static CUcontext contexts[MAX_DEVICES];
static CUmemoryPool pools[MAX_DEVICES];
static __thread CUstream streams[MAX_DEVICES];
static __thread int device_now;

#define POINTER(address) ((void *)(uintptr_t)(address))
#define CHOOSE(n)	 ((form >> 4) % (n))

static bool is_low(u64 address, u64 bytes)
{
	return address + bytes <= UINT32_MAX;
}

static int start(int n_devices)
{
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	int error = (int)CU(cuInit)(0);

	for (int i = 0; !error && i < n_devices; i++) {
		error = (int)CU(cuDevicePrimaryCtxRetain)(&contexts[i], i);
		properties.location.id = i;
		if (!error)
			error = (int)CU(cuMemPoolCreate)(&pools[i], &properties);
	}
	return error;
}

/* Each thread has a stream on each device, which lives as long as the process. */
static int use(int device)
{
	int error = (int)CU(cuCtxSetCurrent)(contexts[device]);

	device_now = device;
	if (!error && !streams[device])
		error = (int)CU(cuStreamCreate)(&streams[device], CU_STREAM_NON_BLOCKING);
	return error;
}

static CUstream stream_of(unsigned form)
{
	return form & 8 ? streams[device_now] : NULL;
}

static int alloc(unsigned form, u64 bytes, u64 *out)
{
	CUdeviceptr_v1 low;
	CUdeviceptr address;
	int error;

	if (CHOOSE(4) == 0 && bytes <= 65536) {
		error = (int)CU(cuMemAlloc)(&low, (unsigned int)bytes);
		*out = low;
	} else {
		error = (int)CU(cuMemAlloc_v2)(&address, bytes);
		*out = address;
	}
	return error;
}

static int alloc_pitch(unsigned form, u64 width, u64 height, u64 *pitch, u64 *out)
{
	CUdeviceptr_v1 low;
	CUdeviceptr address;
	unsigned int low_pitch;
	size_t high_pitch;
	int error;

	if (CHOOSE(4) == 0 && width * height <= 8192) {
		error = (int)CU(cuMemAllocPitch)(
			&low, &low_pitch, (unsigned int)width, (unsigned int)height, 4);
		*out = low;
		*pitch = low_pitch;
	} else {
		error = (int)CU(cuMemAllocPitch_v2)(&address, &high_pitch, width, height, 8);
		*out = address;
		*pitch = high_pitch;
	}
	return error;
}

static int alloc_managed(u64 bytes, u64 *out)
{
	CUdeviceptr address;
	int error = (int)CU(cuMemAllocManaged)(&address, bytes, CU_MEM_ATTACH_GLOBAL);

	*out = address;
	return error;
}

static int free_memory(unsigned form, u64 address)
{
	if (CHOOSE(2) && is_low(address, 0))
		return (int)CU(cuMemFree)((CUdeviceptr_v1)address);
	return (int)CU(cuMemFree_v2)(address);
}

static int alloc_pinned(unsigned form, u64 bytes, u64 *out)
{
	void *p = NULL;
	int error;

	if (CHOOSE(3) == 0 && bytes <= UINT32_MAX)
		error = (int)CU(cuMemAllocHost)(&p, (unsigned int)bytes);
	else if (CHOOSE(3) == 1)
		error = (int)CU(cuMemAllocHost_v2)(&p, bytes);
	else
		error = (int)CU(cuMemHostAlloc)(&p, bytes, CU_MEMHOSTALLOC_PORTABLE);
	*out = (u64)(uintptr_t)p;
	return error;
}

static int free_pinned(u64 address)
{
	return (int)CU(cuMemFreeHost)(POINTER(address));
}

static int register_host(unsigned form, void *p, u64 bytes)
{
	return (int)(CHOOSE(2) ? CU(cuMemHostRegister)(p, bytes, 0)
			       : CU(cuMemHostRegister_v2)(p, bytes, 0));
}

static int unregister_host(void *p)
{
	return (int)CU(cuMemHostUnregister)(p);
}

static int alloc_async(unsigned form, int device, u64 bytes, u64 *out)
{
	CUdeviceptr address;
	CUresult error;

	switch (CHOOSE(device == device_now ? 4 : 2)) {
	case 0:
		error = CU(cuMemAllocFromPoolAsync)(
			&address, bytes, pools[device], stream_of(form));
		break;
	case 1:
		error = CU(cuMemAllocFromPoolAsync_ptsz)(
			&address, bytes, pools[device], stream_of(form));
		break;
	case 2:
		error = CU(cuMemAllocAsync)(&address, bytes, stream_of(form));
		break;
	default:
		error = CU(cuMemAllocAsync_ptsz)(&address, bytes, stream_of(form));
	}
	*out = address;
	return (int)error;
}

static int free_async(unsigned form, u64 address)
{
	return (int)(CHOOSE(2) ? CU(cuMemFreeAsync)(address, stream_of(form))
			       : CU(cuMemFreeAsync_ptsz)(address, stream_of(form)));
}

#include "random_driver_copy.h"

static int reserve(u64 bytes, u64 *out)
{
	CUdeviceptr address;
	int error = (int)CU(cuMemAddressReserve)(&address, bytes, 0, 0, 0);

	*out = address;
	return error;
}

static int unreserve(u64 address, u64 bytes)
{
	return (int)CU(cuMemAddressFree)(address, bytes);
}

static int create(int device, u64 bytes, u64 *out)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
	CUmemGenericAllocationHandle handle;
	int error = (int)CU(cuMemCreate)(&handle, bytes, &properties, 0);

	*out = handle;
	return error;
}

static int release(u64 handle)
{
	return (int)CU(cuMemRelease)(handle);
}

static int map(u64 address, u64 bytes, u64 handle)
{
	return (int)CU(cuMemMap)(address, bytes, 0, handle, 0);
}

static int unmap(u64 address, u64 bytes)
{
	return (int)CU(cuMemUnmap)(address, bytes);
}

static int allow(u64 address, u64 bytes, int device)
{
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	return (int)CU(cuMemSetAccess)(address, bytes, &access, 1);
}

static CUresult begin_capture(unsigned form, CUgraph *given)
{
	CUstream stream = streams[device_now];

	*given = NULL;
#if CUDA_VERSION >= 12030
	if (CHOOSE(4) >= 2) {
		CUresult error = CU(cuGraphCreate)(given, 0);

		if (error)
			return error;
		return CHOOSE(4) == 2 ? CU(cuStreamBeginCaptureToGraph)(stream, *given, NULL, NULL,
						0, CU_STREAM_CAPTURE_MODE_RELAXED)
				      : CU(cuStreamBeginCaptureToGraph_ptsz)(stream, *given, NULL,
						NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED);
	}
#endif
	return form & 1 ? CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED)
			: CU(cuStreamBeginCapture_v2_ptsz)(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
}

static int capture(unsigned form)
{
	CUgraph given, graph;
	CUresult error = begin_capture(form, &given);

	if (!error)
		error = form & 2 ? CU(cuStreamEndCapture)(streams[device_now], &graph)
				 : CU(cuStreamEndCapture_ptsz)(streams[device_now], &graph);
	if (!error)
		error = CU(cuGraphDestroy)(graph);
	return (int)error;
}

static int query(unsigned form)
{
	size_t free_bytes, total;
	CUmemoryPool pool;
	CUdevice device;

	switch (CHOOSE(5)) {
	case 0:
		return (int)CU(cuCtxGetDevice)(&device);
	case 1:
		return (int)CU(cuCtxSynchronize)();
	case 2:
		return (int)CU(cuStreamSynchronize)(streams[device_now]);
	case 3:
		return (int)(form & 1 ? CU(cuDeviceGetDefaultMemPool)(&pool, device_now)
				      : CU(cuDeviceGetMemPool)(&pool, device_now));
	default:
		return (int)CU(cuMemGetInfo_v2)(&free_bytes, &total);
	}
}

static CUresult visit_begin(unsigned form, int device, CUcontext *made)
{
	*made = NULL;
	switch (CHOOSE(5)) {
	case 0:
		return CU(cuCtxCreate)(made, 0, device);
	case 1:
		return CU(cuCtxCreate_v2)(made, 0, device);
	case 2:
		return CU(cuCtxCreate_v3)(made, NULL, 0, 0, device);
#if CUDA_VERSION >= 12050
	case 3:
		return CU(cuCtxCreate_v4)(made, NULL, 0, device);
#endif
	default: /* no new one: the primary one of the other device, for a while */
		return form & 1 ? CU(cuCtxPushCurrent)(contexts[device])
				: CU(cuCtxPushCurrent_v2)(contexts[device]);
	}
}

static int visit(unsigned form, int device, u64 bytes)
{
	CUcontext made, retained;
	CUdeviceptr address;
	CUresult error = visit_begin(form, device, &made);

	if (!error)
		error = CU(cuMemAlloc_v2)(&address, bytes);
	if (!error)
		error = CU(cuMemFree_v2)(address);
	if (made && !error)
		return (int)(form & 1 ? CU(cuCtxDestroy)(made) : CU(cuCtxDestroy_v2)(made));
	if (!error)
		error = form & 1 ? CU(cuCtxPopCurrent)(&made) : CU(cuCtxPopCurrent_v2)(&made);
	if (!error)
		error = CU(cuDevicePrimaryCtxRetain)(&retained, device);
	if (!error)
		error = form & 2 ? CU(cuDevicePrimaryCtxRelease)(device)
				 : CU(cuDevicePrimaryCtxRelease_v2)(device);
	return (int)error;
}

#include "random_driver_graph.h"
#include "random_driver_wide.h"

const struct route route = {
	.name = ROUTE_NAME,
	.wide = &wide,
	.start = start,
	.use = use,
	.alloc = alloc,
	.alloc_pitch = alloc_pitch,
	.alloc_managed = alloc_managed,
	.free = free_memory,
	.alloc_pinned = alloc_pinned,
	.free_pinned = free_pinned,
	.register_host = register_host,
	.unregister_host = unregister_host,
	.alloc_async = alloc_async,
	.free_async = free_async,
	.copy = copy,
	.set = set,
	.reserve = reserve,
	.unreserve = unreserve,
	.create = create,
	.release = release,
	.map = map,
	.unmap = unmap,
	.allow = allow,
	.capture = capture,
	.query = query,
	.visit = visit,
};

#endif
