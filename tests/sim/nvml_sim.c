/*
 * The simulated libnvidia-ml.so.1: the machine's view of the simulated driver of the same process,
 * which it asks through that driver's cusim_device_memory.
 */
#include "nvml_sim.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cusim.h"

#define OTHER_PID 1

typedef bool (*device_memory_fn)(int, struct cusim_memory *);

static _Atomic(device_memory_fn) device_memory;
static atomic_int n_inits;

nvmlReturn_t nvmlInit_v2(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	device_memory_fn found = NULL;

	if (driver)
		found = (device_memory_fn)dlsym(driver, "cusim_device_memory");
	if (!found)
		return NVML_ERROR_LIBRARY_NOT_FOUND;
	atomic_store(&device_memory, found);
	atomic_fetch_add(&n_inits, 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void)
{
	if (atomic_load(&n_inits) == 0)
		return NVML_ERROR_UNINITIALIZED;
	atomic_fetch_sub(&n_inits, 1);
	return NVML_SUCCESS;
}

/* Handles are ordinals, counted from one. */
static nvmlReturn_t look_at(nvmlDevice_t device, const void *out, struct cusim_memory *memory)
{
	if (atomic_load(&n_inits) == 0)
		return NVML_ERROR_UNINITIALIZED;
	if (!out || !atomic_load(&device_memory)((int)(long)device - 1, memory))
		return NVML_ERROR_INVALID_ARGUMENT;
	return NVML_SUCCESS;
}

static void write_uuid(char out[64], const unsigned char *bytes)
{
	char *at = out + sprintf(out, "GPU");

	for (int i = 0; i < 16; i++)
		at += sprintf(at, "%s%02x",
			i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	struct cusim_memory memory;
	char text[64];

	if (atomic_load(&n_inits) == 0)
		return NVML_ERROR_UNINITIALIZED;
	if (!uuid || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; atomic_load(&device_memory)(i, &memory); i++) {
		write_uuid(text, memory.uuid);
		if (!strcmp(text, uuid)) {
			*device = (nvmlDevice_t)(long)(i + 1);
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *out)
{
	struct cusim_memory memory;
	nvmlReturn_t result = look_at(device, out, &memory);

	if (result == NVML_SUCCESS)
		*out = (nvmlMemory_t){memory.total_bytes, memory.free_bytes,
			memory.total_bytes - memory.free_bytes};
	return result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *out)
{
	struct cusim_memory memory;
	nvmlReturn_t result = look_at(device, out, &memory);

	if (result != NVML_SUCCESS)
		return result;
	if (out->version != NVML_MEMORY_V2)
		return NVML_ERROR_ARGUMENT_VERSION;
	out->total = memory.total_bytes;
	out->reserved = 0;
	out->free = memory.free_bytes;
	out->used = memory.total_bytes - memory.free_bytes;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
	nvmlDevice_t device, unsigned int *infoCount, nvmlProcessInfo_t *infos)
{
	struct cusim_memory memory;
	nvmlProcessInfo_t all[2];
	unsigned int n = 0;
	nvmlReturn_t result = look_at(device, infoCount, &memory);

	if (result != NVML_SUCCESS)
		return result;
	if (memory.own_bytes)
		all[n++] = (nvmlProcessInfo_t){(unsigned int)getpid(), memory.own_bytes,
			NVML_VALUE_NOT_AVAILABLE_INST, NVML_VALUE_NOT_AVAILABLE_INST};
	if (memory.other_bytes)
		all[n++] = (nvmlProcessInfo_t){OTHER_PID, memory.other_bytes,
			NVML_VALUE_NOT_AVAILABLE_INST, NVML_VALUE_NOT_AVAILABLE_INST};
	result = *infoCount < n ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
	if (n > 0 && result == NVML_SUCCESS && !infos)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (result == NVML_SUCCESS)
		memcpy(infos, all, n * sizeof(*all));
	*infoCount = n;
	return result;
}
