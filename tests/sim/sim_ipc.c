/* IPC handles. What another process opens is an alias with addresses of its own; the bytes are not
 * shared. */
#include "sim.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define IPC_MAGIC 0x6375736970630001ull

struct ipc_handle {
	u64 magic, base, bytes;
	int pid, device;
};
_Static_assert(sizeof(struct ipc_handle) <= CU_IPC_HANDLE_SIZE, "fits");

static CUresult get(CUipcMemHandle *out, u64 address)
{
	struct sim_range *range = sim_range_find(address);
	struct ipc_handle handle;

	if (!out || !range || range->kind != CUSIM_LINEAR)
		return CUDA_ERROR_INVALID_VALUE;
	handle = (struct ipc_handle){
		IPC_MAGIC, range->base, range->bytes, getpid(), range->dev->ordinal};
	memset(out, 0, sizeof(*out));
	memcpy(out, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

static CUresult open_handle(CUcontext ctx, CUdeviceptr *out, const CUipcMemHandle *from)
{
	struct ipc_handle handle;
	struct sim_range *range;
	char *host;

	memcpy(&handle, from, sizeof(handle));
	if (!out || handle.magic != IPC_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	if (handle.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	host = mmap(NULL, handle.bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (host == MAP_FAILED)
		return CUDA_ERROR_MAP_FAILED;
	range = sim_range_new(SIM_RANGE_IPC, ctx->dev, ctx, (u64)(uintptr_t)host, handle.bytes);
	if (!range) {
		munmap(host, handle.bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	range->host = host;
	range->host_bytes = handle.bytes;
	*out = range->base;
	return CUDA_SUCCESS;
}

static CUresult close_handle(u64 address)
{
	struct sim_range *range = sim_index_get(&sim.ranges, address);

	if (!range || range->kind != SIM_RANGE_IPC)
		return CUDA_ERROR_INVALID_VALUE;
	sim_range_free(range, false);
	return CUDA_SUCCESS;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	return SIM_CALL(NEED_CONTEXT, get(pHandle, dptr));
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	(void)Flags;
	return SIM_CALL(NEED_CONTEXT, open_handle(ctx, pdptr, &handle));
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	(void)Flags;
	return SIM_CALL(NEED_CONTEXT, open_handle(ctx, pdptr, &handle));
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	return SIM_CALL(NEED_CONTEXT, close_handle(dptr));
}
