/*
 * random_driver_share.h: memory shared with others for random_driver.h, which includes it: every
 * way there is, within the process.
 */
#ifndef RANDOM_DRIVER_SHARE_H
#define RANDOM_DRIVER_SHARE_H

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

static CUresult share_ipc(u64 base, CUdeviceptr *out)
{
	CUipcMemHandle handle;
	CUresult error = CU(cuIpcGetMemHandle)(&handle, base);

	if (error)
		return error;
	return base & 512
		       ? CU(cuIpcOpenMemHandle)(out, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		       : CU(cuIpcOpenMemHandle_v2)(out, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

static CUresult share_external(u64 bytes, CUdeviceptr *out)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC d = {
		.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .size = bytes};
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = bytes};
	CUexternalMemory external;
	CUresult error;

	d.handle.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	error = CU(cuImportExternalMemory)(&external, &d);
	if (!error)
		error = CU(cuExternalMemoryGetMappedBuffer)(out, external, &buffer);
	return error ? error : CU(cuDestroyExternalMemory)(external);
}

static CUresult share_pool(int device, u64 base, CUdeviceptr *out)
{
	CUmemPoolPtrExportData data;
	CUmemoryPool imported;
	int fd = -1;
	CUresult error = CU(cuMemPoolExportToShareableHandle)(
		&fd, pools[device], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);

	if (!error)
		error = CU(cuMemPoolExportPointer)(&data, base);
	if (!error)
		error = CU(cuMemPoolImportFromShareableHandle)(&imported, (void *)(intptr_t)fd,
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	close(fd);
	if (!error)
		error = CU(cuMemPoolImportPointer)(out, imported, &data);
	return error ? error : CU(cuMemPoolDestroy)(imported);
}

/* The handle of mapped memory once more, and no longer. */
static CUresult retain(u64 handle, u64 bytes)
{
	CUmemGenericAllocationHandle again;
	CUdeviceptr va;
	CUresult error = CU(cuMemAddressReserve)(&va, bytes, 0, 0, 0);

	if (!error)
		error = CU(cuMemMap)(va, bytes, 0, handle, 0);
	if (!error)
		error = CU(cuMemRetainAllocationHandle)(&again, POINTER(va));
	if (!error)
		error = CU(cuMemUnmap)(va, bytes);
	if (!error)
		error = CU(cuMemAddressFree)(va, bytes);
	return error ? error : CU(cuMemRelease)(again);
}

static CUresult share_import(u64 base, u64 bytes, u64 *out)
{
	CUmemGenericAllocationHandle handle = 0;
	int fd = -1;
	CUresult error = retain(base, bytes);

	if (!error)
		error = CU(cuMemExportToShareableHandle)(
			&fd, base, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);

	if (!error)
		error = CU(cuMemImportFromShareableHandle)(
			&handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	close(fd);
	*out = handle;
	return error;
}

/* A resource of a graphics API, which only the simulated driver can make up. */
static CUresult share_graphics(u64 *base, u64 bytes, CUdeviceptr *out)
{
	void *(*make)(size_t) = NULL;
	CUgraphicsResource resource;
	CUdeviceptr_v1 low;
	unsigned int low_bytes;
	size_t high_bytes;
	CUresult error;

	*(void **)&make = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cusim_graphics_resource");
	resource = make ? make(bytes) : NULL;
	*base = (u64)(uintptr_t)resource;
	error = bytes & 1 ? CU(cuGraphicsMapResources)(1, &resource, NULL)
			  : CU(cuGraphicsMapResources_ptsz)(1, &resource, NULL);
	if (error)
		return error;
	if (bytes > 65536 || bytes % 64 != 5) /* there are few addresses of 32 bits */
		return CU(cuGraphicsResourceGetMappedPointer_v2)(out, &high_bytes, resource);
	error = CU(cuGraphicsResourceGetMappedPointer)(&low, &low_bytes, resource);
	*out = low;
	return error;
}

static int share(enum share share, int device, u64 *base, u64 bytes, u64 *out)
{
	CUdeviceptr address = 0;
	CUresult error;

	switch (share) {
	case SHARE_IPC:
		error = share_ipc(*base, &address);
		break;
	case SHARE_EXTERNAL:
		error = share_external(bytes, &address);
		break;
	case SHARE_POOL:
		error = share_pool(device, *base, &address);
		break;
	case SHARE_GRAPHICS:
		error = share_graphics(base, bytes, &address);
		break;
	default:
		return (int)share_import(*base, bytes, out);
	}
	*out = address;
	return (int)error;
}

static int unshare(enum share share, u64 base, u64 address)
{
	CUgraphicsResource resource = POINTER(base);

	if (share == SHARE_GRAPHICS)
		return (int)(address >> 21 & 1
				     ? CU(cuGraphicsUnmapResources)(1, &resource, NULL)
				     : CU(cuGraphicsUnmapResources_ptsz)(1, &resource, NULL));
	return share == SHARE_IMPORT ? release(address) : (int)CU(cuIpcCloseMemHandle)(address);
}

#endif
