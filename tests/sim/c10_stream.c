/* Settings, devices and streams. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c10_cuda.h"

struct c10_device_state c10_devices[C10SIM_MAX_DEVICES];

static struct c10_settings settings;
static cudaStream_t handles[C10SIM_MAX_DEVICES][C10SIM_MAX_STREAMS];
static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int64_t current[C10SIM_MAX_DEVICES];

static void start(void)
{
	const char *conf = getenv("PYTORCH_CUDA_ALLOC_CONF"), *names = getenv("C10SIM_NAMES");
	const char *uncached = getenv("PYTORCH_NO_CUDA_MEMORY_CACHING"), *split;

	if (!conf)
		conf = getenv("PYTORCH_ALLOC_CONF");
	if (!conf)
		conf = "";
	settings.expandable = strstr(conf, "expandable_segments:True");
	settings.async = strstr(conf, "backend:cudaMallocAsync");
	settings.uncached = uncached && *uncached;
	split = strstr(conf, "max_split_size_mb:");
	settings.max_split_bytes =
		split ? strtoull(strchr(split, ':') + 1, NULL, 10) * MIB : UINT64_MAX;
	settings.names = !names			  ? NAMES_2
			 : !strcmp(names, "1.13") ? NAMES_1_13
			 : !strcmp(names, "next") ? NAMES_NEXT
						  : NAMES_2;
	for (int i = 0; i < C10SIM_MAX_DEVICES; i++) {
		struct c10_device_state *device = &c10_devices[i];

		pthread_mutex_init(&device->lock, NULL);
		device->ordinal = i;
		device->last_wait = &device->waits;
		device->pools[0] = (struct c10_pool){.device = device, .small = true};
		device->pools[1] = (struct c10_pool){.device = device};
	}
}

const struct c10_settings *c10_settings(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start);
	return &settings;
}

void c10_device_use(int device)
{
	int now;

	if (cudaGetDevice(&now) || now != device)
		cudaSetDevice(device);
}

cudaStream_t c10_stream_handle(int device, int64_t stream)
{
	cudaStream_t *handle = &handles[device][stream];

	pthread_mutex_lock(&handles_lock);
	if (stream && !*handle) {
		c10_device_use(device);
		if (cudaStreamCreateWithFlags(handle, cudaStreamNonBlocking))
			abort();
	}
	pthread_mutex_unlock(&handles_lock);
	return *handle;
}

cudaStream_t c10sim_stream_handle(int device, int64_t stream)
{
	c10_settings();
	return c10_stream_handle(device, stream);
}

int64_t c10_stream_current(int device)
{
	return current[device];
}

void c10sim_set_stream(int device, int64_t stream)
{
	c10_stream_handle(device, stream);
	current[device] = stream;
}

/* c10::cuda::CUDAStream, returned in two registers. */
struct c10_stream {
	struct c10_device device;
	int64_t id;
};
struct c10_stream _ZN3c104cuda20getCurrentCUDAStreamEa(int8_t device);

struct c10_stream _ZN3c104cuda20getCurrentCUDAStreamEa(int8_t device)
{
	if (device < 0 || device >= C10SIM_MAX_DEVICES)
		abort();
	return (struct c10_stream){{1, device}, current[device]};
}

__attribute__((noinline)) void c10sim_record_event(int device, unsigned int depth)
{
	static __thread cudaEvent_t event;
	volatile unsigned int here = depth;

	c10_device_use(device);
	if (depth)
		c10sim_record_event(device, depth - 1);
	else if ((!event && cudaEventCreateWithFlags(&event, cudaEventDisableTiming)) ||
		 cudaEventRecord(event, c10sim_stream_handle(device, current[device])))
		abort();
	depth = here; /* no tail call */
}
