#include "hooks/sample.h"

#include <stdatomic.h>
#include <string.h>

#include "hooks/driver.h"
#include "record/options.h"

#define INTERVAL_NS 10000000u
#define MAX_DEVICES 64

static _Atomic uint64_t last_ns[MAX_DEVICES];
static _Atomic int n_captures;

/* True for one caller an interval. */
static bool is_time(int device, uint64_t now_ns)
{
	uint64_t last = atomic_load_explicit(&last_ns[device], memory_order_relaxed);

	return now_ns - last >= INTERVAL_NS &&
	       atomic_compare_exchange_strong_explicit(&last_ns[device], &last, now_ns, memory_order_relaxed,
		       memory_order_relaxed);
}

void sample_memory(const struct call *call)
{
	bool full = call->result == CUDA_ERROR_OUT_OF_MEMORY;
	__typeof__(&cuMemGetInfo_v2) get_info;
	size_t free_bytes, total_bytes;

	if (!call->recorded || !options.memory_samples || !session_is_on() || call->device < 0 ||
		call->device >= MAX_DEVICES || (call->result && !full) ||
		atomic_load_explicit(&n_captures, memory_order_relaxed))
		return;
	if (!is_time(call->device, call->end_ns) && !full)
		return;
	get_info = DRIVER_ORIGINAL(cuMemGetInfo_v2);
	if (get_info && !get_info(&free_bytes, &total_bytes))
		event_memory(call->device, free_bytes, total_bytes);
}

void sample_capture(bool begun)
{
	if (begun)
		atomic_fetch_add_explicit(&n_captures, 1, memory_order_relaxed);
	else if (atomic_fetch_sub_explicit(&n_captures, 1, memory_order_relaxed) <= 0)
		atomic_fetch_add_explicit(&n_captures, 1, memory_order_relaxed);
}

static void describe_device(CUdevice device)
{
	__typeof__(&cuDeviceGetName) get_name = DRIVER_ORIGINAL(cuDeviceGetName);
	__typeof__(&cuDeviceGetUuid) get_uuid = DRIVER_ORIGINAL(cuDeviceGetUuid);
	__typeof__(&cuDeviceTotalMem_v2) get_total = DRIVER_ORIGINAL(cuDeviceTotalMem_v2);
	__typeof__(&cuMemGetAllocationGranularity) get_granularity =
		DRIVER_ORIGINAL(cuMemGetAllocationGranularity);
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
	};
	size_t total_bytes = 0, page_bytes = 0;
	char name[256] = "";
	CUuuid uuid = {{0}};

	if (get_name && get_name(name, sizeof(name), device))
		name[0] = '\0';
	if (get_uuid && get_uuid(&uuid, device))
		memset(&uuid, 0, sizeof(uuid));
	if (get_total && get_total(&total_bytes, device))
		total_bytes = 0;
	if (get_granularity && get_granularity(&page_bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM))
		page_bytes = 0;
	event_device((unsigned int)device, name, &uuid, total_bytes, page_bytes);
}

void sample_describe(void)
{
	__typeof__(&cuDriverGetVersion) get_version = DRIVER_ORIGINAL(cuDriverGetVersion);
	__typeof__(&cuDeviceGetCount) get_count = DRIVER_ORIGINAL(cuDeviceGetCount);
	int version = 0, n_devices = 0;

	if (get_version && !get_version(&version))
		event_driver((unsigned int)version, driver_path());
	if (!get_count || get_count(&n_devices))
		return;
	for (int i = 0; i < n_devices; i++)
		describe_device(i);
}

void sample_forget(void)
{
	for (int i = 0; i < MAX_DEVICES; i++)
		atomic_store_explicit(&last_ns[i], 0, memory_order_relaxed);
	atomic_store_explicit(&n_captures, 0, memory_order_relaxed);
}
