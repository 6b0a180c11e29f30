#include "hooks/sample.h"

#include <stdatomic.h>
#include <string.h>

#include "hooks/driver.h"
#include "record/options.h"

#define INTERVAL_NS 10000000u
#define MAX_DEVICES 64

/* What is asked for, each with a clock of its own. */
enum question {
	ASK_DEVICE,
	ASK_POOL,
	ASK_GRAPHS,
	N_QUESTIONS
};

static _Atomic uint64_t last_ns[MAX_DEVICES][N_QUESTIONS];
static _Atomic int n_captures;

bool sample_captures_open(void)
{
	return atomic_load_explicit(&n_captures, memory_order_relaxed) > 0;
}

/* Whether anything may be asked after this call at all. */
static bool is_allowed(const struct call *call)
{
	return call->recorded && options.memory_samples && session_is_on() && call->device >= 0 &&
	       call->device < MAX_DEVICES && !sample_captures_open();
}

/* True for one caller an interval. */
static bool is_time(const struct call *call, enum question question)
{
	_Atomic uint64_t *clock = &last_ns[call->device][question];
	uint64_t last = atomic_load_explicit(clock, memory_order_relaxed);

	return call->end_ns - last >= INTERVAL_NS &&
	       atomic_compare_exchange_strong_explicit(clock, &last, call->end_ns, memory_order_relaxed,
		       memory_order_relaxed);
}

void sample_memory(const struct call *call)
{
	bool full = call->result == CUDA_ERROR_OUT_OF_MEMORY;
	__typeof__(&cuMemGetInfo_v2) get_info;
	size_t free_bytes, total_bytes;

	if ((call->result && !full) || !is_allowed(call) || (!is_time(call, ASK_DEVICE) && !full))
		return;
	get_info = DRIVER_ORIGINAL(cuMemGetInfo_v2);
	if (get_info && !get_info(&free_bytes, &total_bytes))
		event_memory(call->device, free_bytes, total_bytes);
}

void sample_pool(const struct call *call, CUmemoryPool pool)
{
	__typeof__(&cuMemPoolGetAttribute) get = DRIVER_ORIGINAL(cuMemPoolGetAttribute);
	__typeof__(&cuDeviceGetMemPool) get_current = DRIVER_ORIGINAL(cuDeviceGetMemPool);
	cuuint64_t reserved, used;

	if (call->result || !get || !get_current || !is_allowed(call) || !is_time(call, ASK_POOL) ||
		(!pool && get_current(&pool, call->device)))
		return;
	if (!get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) &&
		!get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used))
		event_pool_memory(call->device, (uint64_t)(uintptr_t)pool, reserved, used);
}

void sample_graphs(const struct call *call)
{
	__typeof__(&cuDeviceGetGraphMemAttribute) get = DRIVER_ORIGINAL(cuDeviceGetGraphMemAttribute);
	cuuint64_t reserved, used;

	if (call->result || !get || !is_allowed(call) || !is_time(call, ASK_GRAPHS))
		return;
	if (!get(call->device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) &&
		!get(call->device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used))
		event_graph_memory(call->device, reserved, used);
}

/* The twin of an entry point for which NULL is the default stream of the thread. */
static bool is_per_thread(const char *export)
{
	size_t length = strlen(export);

	return length > 5 && (!strcmp(export + length - 5, "_ptsz") || !strcmp(export + length - 5, "_ptds"));
}

bool sample_is_capturing(const struct call *call, CUstream stream, CUgraph *graph)
{
	__typeof__(&cuStreamGetCaptureInfo_v2) ask;
	CUstreamCaptureStatus status;

	if (!call->recorded || !sample_captures_open())
		return false;
	ask = is_per_thread(call->name) ? DRIVER_ORIGINAL(cuStreamGetCaptureInfo_v2_ptsz)
					: DRIVER_ORIGINAL(cuStreamGetCaptureInfo_v2);
	return ask && !ask(stream, &status, NULL, graph, NULL, NULL) && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
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
		for (int question = 0; question < N_QUESTIONS; question++)
			atomic_store_explicit(&last_ns[i][question], 0, memory_order_relaxed);
	atomic_store_explicit(&n_captures, 0, memory_order_relaxed);
}
