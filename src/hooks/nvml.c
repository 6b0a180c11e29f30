#include "hooks/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "hooks/dl.h"
#include "hooks/driver.h"

/* nvmlMemory_v2_t, as documented in NVML's API reference. */
struct memory_v2 {
	unsigned int version;
	unsigned long long total;
	unsigned long long reserved;
	unsigned long long free;
	unsigned long long used;
};

#define MEMORY_V2_VERSION (sizeof(struct memory_v2) | (2u << 24))

typedef int init_function(void);
typedef int by_uuid_function(const char *uuid, void **device);
typedef int memory_function(void *device, struct memory_v2 *memory);

static struct {
	_Atomic int state; /* 0 not opened, 1 being opened, 2 usable, 3 not usable */
	by_uuid_function *by_uuid;
	memory_function *memory;
} nvml;

static bool open_library(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	init_function *init;

	if (!library)
		return false;
	init = (init_function *)dl_real_dlsym(library, "nvmlInit_v2");
	nvml.by_uuid = (by_uuid_function *)dl_real_dlsym(library, "nvmlDeviceGetHandleByUUID");
	nvml.memory = (memory_function *)dl_real_dlsym(library, "nvmlDeviceGetMemoryInfo_v2");
	return init && nvml.by_uuid && nvml.memory && !init();
}

static bool is_usable(void)
{
	int state = 0;

	if (atomic_compare_exchange_strong(&nvml.state, &state, 1)) {
		state = open_library() ? 2 : 3;
		dlerror(); /* the program is not to hear of it */
		atomic_store(&nvml.state, state);
	}
	return state == 2;
}

/* NVML numbers devices in its own order; the UUID is the same for both. */
static bool format_uuid(int device, char *out, size_t size)
{
	__typeof__(&cuDeviceGetUuid_v2) get_uuid = DRIVER_ORIGINAL(cuDeviceGetUuid_v2);
	CUuuid uuid;
	size_t used;

	if (!get_uuid || get_uuid(&uuid, device))
		return false;
	used = (size_t)snprintf(out, size, "GPU-");
	for (int i = 0; i < 16 && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			(unsigned char)uuid.bytes[i]);
	return true;
}

struct nvml_reading nvml_read(int device)
{
	struct memory_v2 memory = {.version = MEMORY_V2_VERSION};
	struct nvml_reading reading = {false, 0};
	int saved = errno;
	char uuid[64];
	void *handle;

	if (is_usable() && format_uuid(device, uuid, sizeof(uuid)) &&
		!nvml.by_uuid(uuid, &handle) && !nvml.memory(handle, &memory))
		reading = (struct nvml_reading){true, memory.used};
	errno = saved;
	return reading;
}
