#include "hooks/sample.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "hooks/contexts.h"
#include "hooks/driver.h"
#include "hooks/nvml.h"
#include "record/objects.h"
#include "record/options.h"
#include "record/pause.h"

#define INTERVAL_NS	   10000000u
#define OTHERS_INTERVAL_NS 1000000000u
#define MAX_DEVICES	   64
#define MAX_POOLS	   64 /* more than this are sampled only after calls on them */

/* What is asked for, each with a clock of its own. */
enum question { ASK_DEVICE, ASK_POOL, ASK_OTHERS, N_QUESTIONS };

static _Atomic uint64_t last_ns[MAX_DEVICES][N_QUESTIONS];
static _Atomic int n_captures;

/* The longest a call that ends a pool waits for another thread's question about it. */
#define WAIT_NS	    100000
#define WAIT_ROUNDS 100

/* What is asked about whenever free memory is: pools by handle, with their devices, and per device
 * whether its current pool and its graphs were ever used. A pool that is gone must not be named to
 * the driver: before it goes it is taken out here, and then questions under way are waited for, for
 * a while and with no lock, since they are calls of the driver. */
static struct {
	_Atomic int n_asking;
	struct {
		_Atomic(CUmemoryPool) pool;
		_Atomic int device_plus_one; /* 0: none yet */
	} pools[MAX_POOLS];
	_Atomic bool current_pool[MAX_DEVICES];
	_Atomic bool graphs[MAX_DEVICES];
	_Atomic int n_retains[MAX_DEVICES]; /* of its primary context */
} in_use;

/* Both sides of this are sequentially consistent: either the asker finds the pool gone, or its end
 * finds the asker. */
void sample_asking_begins(void)
{
	atomic_fetch_add(&in_use.n_asking, 1);
}

void sample_asking_ends(void)
{
	atomic_fetch_sub(&in_use.n_asking, 1);
}

void sample_wait_for_askers(void)
{
	struct timespec pause = {0, WAIT_NS};
	int saved = errno;

	for (int i = 0; i < WAIT_ROUNDS && atomic_load(&in_use.n_asking); i++)
		nanosleep(&pause, NULL);
	errno = saved;
}

bool sample_captures_open(void)
{
	return atomic_load(&n_captures) > 0;
}

static bool is_wanted(const struct call *call)
{
	return call->recorded && options.memory_samples && session_is_on();
}

/* Whether anything may be asked after this call at all, */
static bool is_possible(const struct call *call)
{
	return is_wanted(call) && call->device >= 0 && call->device < MAX_DEVICES &&
	       !sample_captures_open();
}

/* and is worth it when nothing was refused. */
static bool is_allowed(const struct call *call)
{
	return is_possible(call) && !pause_is_on();
}

/* True for one caller an interval. */
static bool is_time(const struct call *call, int device, enum question question)
{
	_Atomic uint64_t *clock = &last_ns[device][question];
	uint64_t last = atomic_load_explicit(clock, memory_order_relaxed);
	uint64_t interval_ns = question == ASK_OTHERS ? OTHERS_INTERVAL_NS : INTERVAL_NS;

	return call->end_ns - last >= interval_ns &&
	       atomic_compare_exchange_strong_explicit(
		       clock, &last, call->end_ns, memory_order_relaxed, memory_order_relaxed);
}

static int device_of_slot(unsigned int i)
{
	return atomic_load_explicit(&in_use.pools[i].device_plus_one, memory_order_acquire) - 1;
}

static void empty_slot(unsigned int i)
{
	atomic_store_explicit(&in_use.pools[i].device_plus_one, 0, memory_order_relaxed);
	atomic_store(&in_use.pools[i].pool, NULL);
}

static void note_pool(CUmemoryPool pool, int device)
{
	for (unsigned int i = 0; i < MAX_POOLS; i++) {
		CUmemoryPool there =
			atomic_load_explicit(&in_use.pools[i].pool, memory_order_acquire);

		if (there == pool)
			return;
		if (!there && atomic_compare_exchange_strong(&in_use.pools[i].pool, &there, pool)) {
			atomic_store_explicit(
				&in_use.pools[i].device_plus_one, device + 1, memory_order_release);
			return;
		}
		if (there == pool)
			return;
	}
}

static void ask_pool(CUmemoryPool pool, int device)
{
	__typeof__(&cuMemPoolGetAttribute) get = DRIVER_ORIGINAL(cuMemPoolGetAttribute);
	cuuint64_t reserved, used;

	if (get && !get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) &&
		!get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used))
		event_pool_memory(device, (uint64_t)(uintptr_t)pool, reserved, used);
}

static void ask_graphs(int device)
{
	__typeof__(&cuDeviceGetGraphMemAttribute) get =
		DRIVER_ORIGINAL(cuDeviceGetGraphMemAttribute);
	cuuint64_t reserved, used;

	if (get && !get(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) &&
		!get(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used))
		event_graph_memory(device, reserved, used);
}

/* The pool that allocations which name none come from, NULL: not told. */
static CUmemoryPool current_pool(int device)
{
	__typeof__(&cuDeviceGetMemPool) get = DRIVER_ORIGINAL(cuDeviceGetMemPool);
	CUmemoryPool pool;

	return get && !get(&pool, device) ? pool : NULL;
}

static void ask_in_use(int device)
{
	CUmemoryPool current = NULL;

	sample_asking_begins();
	if (atomic_load_explicit(&in_use.current_pool[device], memory_order_relaxed))
		current = current_pool(device);
	if (current)
		note_pool(current, device);
	for (unsigned int i = 0; i < MAX_POOLS; i++) {
		CUmemoryPool pool = atomic_load(&in_use.pools[i].pool);

		if (pool && device_of_slot(i) == device)
			ask_pool(pool, device);
	}
	if (atomic_load_explicit(&in_use.graphs[device], memory_order_relaxed))
		ask_graphs(device);
	sample_asking_ends();
}

/* Of the device of this thread's context. First what is part of the memory in use: the account is
 * made at the sample of free memory. */
static void ask_memory(int device)
{
	__typeof__(&cuMemGetInfo_v2) get_info;
	size_t free_bytes, total_bytes;

	ask_in_use(device);
	objects_write();
	get_info = DRIVER_ORIGINAL(cuMemGetInfo_v2);
	if (get_info && !get_info(&free_bytes, &total_bytes))
		event_memory(device, free_bytes, total_bytes);
}

void sample_memory(const struct call *call)
{
	if (!call->result && is_allowed(call) && is_time(call, call->device, ASK_DEVICE))
		ask_memory(call->device);
}

void sample_refusal(const struct call *call)
{
	struct call here = *call;
	struct nvml_others others;

	if (!is_wanted(call))
		return;
	/* The memory may have been wanted on another device than the one that can be asked. */
	here.device = contexts_current().device;
	if (!is_possible(&here))
		return;
	if (is_time(&here, here.device, ASK_OTHERS)) {
		others = nvml_read_others(here.device);
		if (others.known)
			event_others(here.device, &others.found);
	}
	ask_memory(here.device);
}

static bool may_ask_about(const struct call *call, int device)
{
	return !call->result && is_allowed(call) && device >= 0 && device < MAX_DEVICES;
}

void sample_pool(const struct call *call, CUmemoryPool pool, int device)
{
	bool is_new;

	if (call->result || !is_wanted(call) || device < 0 || device >= MAX_DEVICES)
		return;
	if (pool)
		note_pool(pool, device); /* also while a capture is open */
	if (!is_allowed(call))
		return;
	is_new = !pool && !atomic_exchange_explicit(
				  &in_use.current_pool[device], true, memory_order_relaxed);
	if (!is_time(call, device, ASK_POOL) && !is_new)
		return;
	sample_asking_begins();
	if (!pool)
		pool = current_pool(device);
	if (pool) {
		note_pool(pool, device);
		ask_pool(pool, device);
	}
	sample_asking_ends();
}

void sample_pool_changes(int device)
{
	if (device >= 0 && device < MAX_DEVICES)
		atomic_store_explicit(&in_use.current_pool[device], false, memory_order_relaxed);
}

void sample_pool_ends(CUmemoryPool pool)
{
	for (unsigned int i = 0; i < MAX_POOLS; i++)
		if (atomic_load(&in_use.pools[i].pool) == pool)
			empty_slot(i);
	sample_wait_for_askers();
}

void sample_reset(int device)
{
	for (unsigned int i = 0; i < MAX_POOLS; i++)
		if (device >= 0 && device_of_slot(i) == device)
			empty_slot(i);
	sample_wait_for_askers();
}

void sample_retained(int device)
{
	if (device >= 0 && device < MAX_DEVICES)
		atomic_fetch_add_explicit(&in_use.n_retains[device], 1, memory_order_relaxed);
}

bool sample_release(int device)
{
	if (device < 0 || device >= MAX_DEVICES ||
		atomic_fetch_sub_explicit(&in_use.n_retains[device], 1, memory_order_relaxed) > 1)
		return false;
	sample_reset(device);
	return true;
}

void sample_launch(const struct call *call)
{
	if (!may_ask_about(call, call->device))
		return;
	atomic_store_explicit(&in_use.graphs[call->device], true, memory_order_relaxed);
	sample_memory(call);
}

void sample_graphs(const struct call *call, int device)
{
	if (may_ask_about(call, device))
		ask_graphs(device);
}

bool sample_is_capturing(const struct call *call, CUstream stream, CUgraph *graph)
{
	__typeof__(&cuStreamGetCaptureInfo_v2) ask;
	CUstreamCaptureStatus status;

	if (!call->recorded || !sample_captures_open())
		return false;
	ask = call->per_thread ? DRIVER_ORIGINAL(cuStreamGetCaptureInfo_v2_ptsz)
			       : DRIVER_ORIGINAL(cuStreamGetCaptureInfo_v2);
	return ask && !ask(stream, &status, NULL, graph, NULL, NULL) &&
	       status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

bool sample_is_blocking(const struct call *call, CUstream stream)
{
	static __thread struct {
		CUstream stream;
		unsigned int context_id;
		bool blocking;
	} last __attribute__((tls_model("initial-exec")));
	__typeof__(&cuStreamGetFlags) ask;
	unsigned int flags;

	if (!call->recorded || call->result || !session_is_on() || sample_captures_open())
		return false;
	if (last.stream == stream && last.context_id == call->context_id)
		return last.blocking;
	ask = DRIVER_ORIGINAL(cuStreamGetFlags);
	if (!ask || ask(stream, &flags))
		return false;
	last.stream = stream;
	last.context_id = call->context_id;
	last.blocking = !(flags & CU_STREAM_NON_BLOCKING);
	return last.blocking;
}

void sample_capture_begins(void)
{
	atomic_fetch_add(&n_captures, 1);
	if (options.copy_timing)
		sample_wait_for_askers();
}

void sample_capture_ended(void)
{
	if (atomic_fetch_sub_explicit(&n_captures, 1, memory_order_relaxed) <= 0)
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
	if (get_granularity &&
		get_granularity(&page_bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM))
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
	memset(&in_use, 0, sizeof(in_use));
	atomic_store(&in_use.n_asking, 0);
	objects_forget();
}
