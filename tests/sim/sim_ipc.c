/* IPC handles, exported pools and their pointers. What another process opens has addresses of its
 * own; the bytes are not shared with it. */
#include "sim.h"

#include <string.h>

_Static_assert(sizeof(struct sim_token) <= CU_IPC_HANDLE_SIZE, "fits");
_Static_assert(sizeof(struct sim_token) <= sizeof(CUmemPoolPtrExportData), "fits");

static void token_of(void *out, size_t bytes, const struct sim_range *range)
{
	struct sim_token token =
		sim_token_of(SIM_TOKEN_RANGE, range->dev, range->base, range->bytes, range->id);

	memset(out, 0, bytes);
	memcpy(out, &token, sizeof(token));
}

static CUresult get(CUipcMemHandle *out, u64 address)
{
	struct sim_range *range = sim_range_find(address);

	if (!out || !range || range->kind != CUSIM_LINEAR)
		return CUDA_ERROR_INVALID_VALUE;
	token_of(out, sizeof(*out), range);
	return CUDA_SUCCESS;
}

static CUresult open_handle(CUcontext ctx, CUdeviceptr *out, const CUipcMemHandle *from)
{
	struct sim_token token;
	struct sim_range *range;
	CUresult result;

	memcpy(&token, from, sizeof(token));
	if (!out || !sim_token_valid(&token, SIM_TOKEN_RANGE))
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_token_mine(&token) && !sim.ipc_self)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!sim_capture_allows_unsafe())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	result = sim_share_token(ctx, ctx->dev, SIM_SHARE_IPC, &token, &range);
	if (result == CUDA_SUCCESS)
		*out = range->base;
	return result;
}

static CUresult close_handle(u64 address)
{
	struct sim_range *range = sim_index_get(&sim.ranges, address);

	if (!range || range->kind != CUSIM_SHARED || range->share != SIM_SHARE_IPC)
		return CUDA_ERROR_INVALID_VALUE;
	sim_range_free(range, false);
	return CUDA_SUCCESS;
}

static CUresult export_pointer(CUmemPoolPtrExportData *out, u64 address)
{
	struct sim_range *range = sim_range_find(address);

	if (!out || !range || range->kind != CUSIM_POOL || !range->pool->handle_types)
		return CUDA_ERROR_INVALID_VALUE;
	token_of(out, sizeof(*out), range);
	return CUDA_SUCCESS;
}

static CUresult import_pointer(
	CUcontext ctx, CUdeviceptr *out, CUmemoryPool pool, const CUmemPoolPtrExportData *data)
{
	struct sim_token token;
	struct sim_range *range;
	CUresult result;

	if (!out || !data || !sim_handle_known(&sim.pools, pool) || !pool->imported)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&token, data, sizeof(token));
	if (!sim_token_valid(&token, SIM_TOKEN_RANGE))
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_share_token(ctx, pool->dev, SIM_SHARE_POOL, &token, &range);
	if (result == CUDA_SUCCESS)
		*out = range->base;
	return result;
}

/* A failure counts for the device of the pool, if it is one. */
static void import_failed(CUcontext ctx, CUmemoryPool pool)
{
	if (sim_handle_known(&sim.pools, pool))
		sim.ledger.devices[pool->dev->ordinal].kinds[CUSIM_SHARED].failed++;
	else
		sim_ledger_failed(ctx, CUSIM_SHARED);
}

static CUresult pool_export(int *out, CUmemoryPool pool, CUmemAllocationHandleType type, u64 flags)
{
	struct sim_token token;

	if (!out || flags || !sim_handle_known(&sim.pools, pool) ||
		type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || pool->handle_types != (int)type)
		return CUDA_ERROR_INVALID_VALUE;
	token = sim_token_of(SIM_TOKEN_POOL, pool->dev, 0, 0, pool->id);
	*out = sim_token_write(&token);
	return *out >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

/* A pool of its own, of which only pointers can be imported. */
static CUresult pool_import(
	CUmemoryPool *out, const void *os_handle, CUmemAllocationHandleType type, u64 flags)
{
	struct sim_token token;
	struct sim_device *dev;

	if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
		!sim_token_read((int)(intptr_t)os_handle, SIM_TOKEN_POOL, &token))
		return CUDA_ERROR_INVALID_VALUE;
	dev = sim_device_get(token.device);
	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	*out = sim_pool_new(dev, CUSIM_BY_POOLS);
	if (!*out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*out)->imported = true;
	return CUDA_SUCCESS;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	return SIM_CALL(NEED_CONTEXT, get(pHandle, dptr));
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	(void)Flags;
	return SIM_ALLOC(CUSIM_SHARED, open_handle(ctx, pdptr, &handle));
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	(void)Flags;
	return SIM_ALLOC(CUSIM_SHARED, open_handle(ctx, pdptr, &handle));
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	return SIM_FREE(NEED_CONTEXT, close_handle(dptr));
}

CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
	CUmemAllocationHandleType handleType, unsigned long long flags)
{
	return SIM_CALL(NEED_INIT, pool_export(handle_out, pool, handleType, flags));
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
	CUmemAllocationHandleType handleType, unsigned long long flags)
{
	return SIM_CALL(NEED_INIT, pool_import(pool_out, handle, handleType, flags));
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
	return SIM_CALL(NEED_CONTEXT, export_pointer(shareData_out, ptr));
}

CUresult cuMemPoolImportPointer(
	CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
	return SIM_CALL_THEN(NEED_CONTEXT, import_pointer(ctx, ptr_out, pool, shareData),
		if (result != CUDA_SUCCESS) import_failed(ctx, pool));
}
