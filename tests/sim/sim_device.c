/* Device queries, pointer queries, error names. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

static CUresult device_count(int *out)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (int)sim.n_devices;
	return CUDA_SUCCESS;
}

static CUresult device_get(CUdevice *out, int ordinal)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_get(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = ordinal;
	return CUDA_SUCCESS;
}

static CUresult device_name(char *out, int n, CUdevice ordinal)
{
	if (!sim_device_get(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!out || n <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(out, (size_t)n, "Simulated GPU");
	return CUDA_SUCCESS;
}

static CUresult device_uuid(CUuuid *out, CUdevice ordinal)
{
	static const char bytes[] = "simulated cuda\x80";

	if (!sim_device_get(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(out->bytes, bytes, sizeof(out->bytes));
	out->bytes[15] = (char)sim.machine_number[ordinal];
	return CUDA_SUCCESS;
}

static CUresult device_total(u64 *out, CUdevice ordinal)
{
	struct sim_device *dev = sim_device_get(ordinal);

	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	*out = dev->total_bytes;
	return CUDA_SUCCESS;
}

static CUresult device_attribute(int *out, CUdevice_attribute attribute, CUdevice ordinal)
{
	if (!out || (unsigned int)attribute == 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_get(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	switch ((int)attribute) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*out = 9;
		break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*out = (int)SIM_N_SM;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
		*out = (int)SIM_THREADS_PER_SM;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*out = 1024;
		break;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
		*out = 32;
		break;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		*out = sim.machine_number[ordinal] + 1;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
		*out = 0x7fffffff;
		break;
	case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
	case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
		*out = (int)SIM_PITCH_BYTES;
		break;
	case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
	case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
		*out = 1;
		break;
	default:
		*out = 0;
	}
	return CUDA_SUCCESS;
}

static CUresult can_access_peer(int *out, CUdevice a, CUdevice b)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_get(a) || !sim_device_get(b))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = a != b;
	return CUDA_SUCCESS;
}

static u64 free_bytes(const struct sim_device *dev)
{
	return dev->n_free * SIM_PAGE_BYTES + sim_other_bytes() - sim_others_use(dev);
}

static CUresult mem_info(CUcontext ctx, size_t *free_out, size_t *total_out)
{
	if (free_out)
		*free_out = free_bytes(ctx->dev);
	if (total_out)
		*total_out = ctx->dev->total_bytes;
	return CUDA_SUCCESS;
}

/* The first version has 32 bits for what may be more. */
static unsigned int clamp(u64 bytes)
{
	return bytes < UINT32_MAX ? (unsigned int)bytes : UINT32_MAX;
}

static CUresult mem_info_v1(CUcontext ctx, unsigned int *free_out, unsigned int *total_out)
{
	if (free_out)
		*free_out = clamp(free_bytes(ctx->dev));
	if (total_out)
		*total_out = clamp(ctx->dev->total_bytes);
	return CUDA_SUCCESS;
}

static bool is_host(const struct sim_range *range)
{
	return range->kind == CUSIM_PINNED || range->kind == CUSIM_REGISTERED;
}

static bool host_reads(const struct sim_range *range)
{
	return is_host(range) || range->kind == CUSIM_MANAGED;
}

static CUresult pointer_attribute(void *out, CUpointer_attribute attribute, u64 address)
{
	struct sim_range *range = sim_range_find(address);

	if (!out || !range || !range->dev || range->kind == CUSIM_ARRAY || range->mipmap)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)out = range->ctx;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(CUmemorytype *)out = is_host(range) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)out = address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(void **)out = host_reads(range) ? (void *)(uintptr_t)address : NULL;
		return host_reads(range) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)out = range->id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned int *)out = range->kind == CUSIM_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)out = range->dev->ordinal;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)out = range->base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)out = range->bytes;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned int *)out = 1;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)out = range->kind == CUSIM_POOL ? range->pool : NULL;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

static const struct {
	CUresult code;
	const char *name, *text;
} errors[] = {
#define ERROR(code, text)                                                                          \
	{                                                                                          \
		code, #code, text                                                                  \
	}
	ERROR(CUDA_SUCCESS, "no error"),
	ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
	ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
	ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
	ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
	ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
	ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
	ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
	ERROR(CUDA_ERROR_MAP_FAILED, "mapping failed"),
	ERROR(CUDA_ERROR_ARRAY_IS_MAPPED, "array is mapped"),
	ERROR(CUDA_ERROR_ALREADY_MAPPED, "resource already mapped"),
	ERROR(CUDA_ERROR_NOT_MAPPED, "resource not mapped"),
	ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
	ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
	ERROR(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed"),
	ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
	ERROR(CUDA_ERROR_ILLEGAL_STATE, "not permitted in this state"),
	ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
	ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
	ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
	ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
	ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "memory range is already registered"),
	ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer is not registered"),
	ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
	ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
		"operation not permitted when stream is capturing"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
		"operation failed: a capture was invalidated before"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "capture was begun by another thread"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
		"operation depends on an uncaptured legacy stream"),
	ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef ERROR
};

static CUresult error_text(CUresult code, const char **out, bool name)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]) && !*out; i++)
		if (errors[i].code == code)
			*out = name ? errors[i].name : errors[i].text;
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool cusim_device_memory(int ordinal, struct cusim_memory *out)
{
	struct sim_device *dev;
	CUuuid uuid;

	sim_configure();
	pthread_mutex_lock(&sim.lock);
	dev = sim_device_get(ordinal);
	if (dev) {
		device_uuid(&uuid, ordinal);
		memcpy(out->uuid, uuid.bytes, sizeof(out->uuid));
		out->total_bytes = sim.memory_bytes;
		out->other_bytes = sim_others_use(dev);
		out->own_bytes = sim.ledger.devices[ordinal].page_bytes;
		out->free_bytes = out->total_bytes - out->other_bytes - out->own_bytes;
	}
	pthread_mutex_unlock(&sim.lock);
	return dev;
}

CUresult cuDeviceGetCount(int *count)
{
	return SIM_CALL(NEED_INIT, device_count(count));
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	return SIM_CALL(NEED_INIT, device_get(device, ordinal));
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	return SIM_CALL(NEED_INIT, device_name(name, len, dev));
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return SIM_CALL(NEED_INIT, device_uuid(uuid, dev));
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	return SIM_CALL(NEED_INIT, device_uuid(uuid, dev));
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	u64 total;

	return SIM_CALL_THEN(NEED_INIT,
		bytes ? device_total(&total, dev) : CUDA_ERROR_INVALID_VALUE,
		if (result == CUDA_SUCCESS) * bytes = clamp(total));
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	u64 total;

	return SIM_CALL_THEN(NEED_INIT,
		bytes ? device_total(&total, dev) : CUDA_ERROR_INVALID_VALUE,
		if (result == CUDA_SUCCESS) * bytes = total);
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	return SIM_CALL(NEED_INIT, device_attribute(pi, attrib, dev));
}

CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	return SIM_CALL(NEED_INIT, can_access_peer(canAccessPeer, dev, peerDev));
}

CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
	return SIM_CALL(NEED_CONTEXT, mem_info_v1(ctx, free, total));
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	return SIM_CALL(NEED_CONTEXT, mem_info(ctx, free, total));
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	return SIM_CALL(NEED_INIT, pointer_attribute(data, attribute, ptr));
}

CUresult cuGetErrorName(CUresult error, const char **pStr)
{
	return SIM_CALL(NEED_NOTHING, error_text(error, pStr, true));
}

CUresult cuGetErrorString(CUresult error, const char **pStr)
{
	return SIM_CALL(NEED_NOTHING, error_text(error, pStr, false));
}

/* NVIDIA's private tables: nobody can do without the real driver who needs them. */
CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	(void)pExportTableId;
	return SIM_CALL(NEED_NOTHING, ppExportTable ? (*ppExportTable = NULL, CUDA_ERROR_NOT_FOUND)
						    : CUDA_ERROR_INVALID_VALUE);
}
