#include "hooks/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

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

/* nvmlProcessInfo_t of the third version of the calls that fill it. */
struct process_info {
	unsigned int pid;
	unsigned long long used_bytes;
	unsigned int gpu_instance, compute_instance;
};

#define MAX_PROCESSES	  64
#define BYTES_NOT_KNOWN	  (~0ull)
#define MEMORY_V2_VERSION (sizeof(struct memory_v2) | (2u << 24))

typedef int init_function(void);
typedef int by_uuid_function(const char *uuid, void **device);
typedef int memory_function(void *device, struct memory_v2 *memory);
typedef int processes_function(void *device, unsigned int *count, struct process_info *infos);

static struct {
	_Atomic int state; /* 0 not opened, 1 being opened, 2 usable, 3 not usable */
	by_uuid_function *by_uuid;
	memory_function *memory;
	processes_function *processes; /* NULL: cannot tell */
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
	nvml.processes = (processes_function *)dl_real_dlsym(
		library, "nvmlDeviceGetComputeRunningProcesses_v3");
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

/* False: what one of them uses is not told, or this process is not among them, since NVML numbers
 * processes as the host does. */
static bool add_up(const struct process_info *infos, unsigned int n, struct event_others *others)
{
	bool own_found = false;

	for (unsigned int i = 0; i < n; i++) {
		if (infos[i].pid == (unsigned int)getpid()) {
			own_found = true;
			continue;
		}
		if (infos[i].used_bytes == BYTES_NOT_KNOWN)
			return false;
		others->n_processes++;
		others->used_bytes += infos[i].used_bytes;
		if (infos[i].used_bytes > others->largest_bytes) {
			others->largest_pid = infos[i].pid;
			others->largest_bytes = infos[i].used_bytes;
		}
	}
	return own_found;
}

struct nvml_others nvml_read_others(int device)
{
	struct nvml_others others = {.found = {.at_refusal = true}};
	struct process_info infos[MAX_PROCESSES];
	unsigned int n = MAX_PROCESSES;
	int saved = errno;
	char uuid[64];
	void *handle;

	others.known = atomic_load(&nvml.state) == 2 && nvml.processes &&
		       format_uuid(device, uuid, sizeof(uuid)) && !nvml.by_uuid(uuid, &handle) &&
		       !nvml.processes(handle, &n, infos) && n <= MAX_PROCESSES &&
		       add_up(infos, n, &others.found);
	errno = saved;
	return others;
}
