/* The driver, errors, devices and contexts. */
#include "cudart.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEVICES 64

struct rt_driver rt_driver;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct {
	CUcontext primary;
	unsigned int n_resets;
} devices[MAX_DEVICES];
static cudaError_t start_error;
static int n_devices;

static __thread cudaError_t last_error;
static __thread int device;
static __thread unsigned int n_resets_seen;

typedef CUresult (*look_up_fn)(const char *, void **, int, cuuint64_t);
typedef CUresult (*look_up_v2_fn)(const char *, void **, int, cuuint64_t, int *);

static struct {
	look_up_fn first;
	look_up_v2_fn second;
} look_up;

static CUresult ask(const char *name, int version, cuuint64_t flags, void **out)
{
	int status = 0;

	*out = NULL;
	return look_up.second ? look_up.second(name, out, version, flags, &status)
			      : look_up.first(name, out, version, flags);
}

/* The steps, and their order, are those seen of NVIDIA's runtime. */
static cudaError_t find_driver(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);
	void *again, *ignored;
	CUresult (*init)(unsigned int);

	if (!handle)
		return cudaErrorInsufficientDriver;
	look_up.second = (look_up_v2_fn)dlsym(handle, "cuGetProcAddress_v2");
	if (!look_up.second)
		look_up.first = (look_up_fn)dlsym(handle, "cuGetProcAddress");
	if (!look_up.second && !look_up.first)
		return cudaErrorInsufficientDriver;
	ask("", 0, 0, &ignored);
	if (ask("cuInit", 2000, 0, &again) != CUDA_SUCCESS)
		return cudaErrorInsufficientDriver;
	init = (CUresult(*)(unsigned int))again;
	if (ask("cuGetProcAddress", 11030, 0, &again) == CUDA_SUCCESS)
		look_up.first = (look_up_fn)again;
	if (ask("cuGetProcAddress", 12000, 0, &again) == CUDA_SUCCESS &&
		again != (void *)look_up.first)
		look_up.second = (look_up_v2_fn)again;
	return rt_error(init(0));
}

static cudaError_t find_entries(void)
{
	static const struct {
		const char *name;
		int version, flags;
		size_t offset;
	} rows[] = {
#define ROW(field, name, version, flags, type)                                                     \
	{#name, version, flags, offsetof(struct rt_driver, field)},
#include "cudart.def"
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void **field = (void **)((char *)&rt_driver + rows[i].offset);

		if (ask(rows[i].name, rows[i].version, (cuuint64_t)rows[i].flags, field) !=
			CUDA_SUCCESS) {
			fprintf(stderr, "simulated CUDA runtime: the driver has no %s\n",
				rows[i].name);
			return cudaErrorInsufficientDriver;
		}
	}
	return cudaSuccess;
}

static void start(void)
{
	start_error = find_driver();
	if (start_error == cudaSuccess)
		start_error = find_entries();
	if (start_error == cudaSuccess)
		start_error = rt_error(rt_driver.cuDeviceGetCount(&n_devices));
	if (n_devices > MAX_DEVICES)
		n_devices = MAX_DEVICES;
}

cudaError_t rt_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start);
	return start_error;
}

cudaError_t rt_result(cudaError_t error)
{
	if (error != cudaSuccess && error != cudaErrorNotReady)
		last_error = error;
	return error;
}

/* Retains the primary context when the process needs it first, or again after a reset. */
static cudaError_t retain(int ordinal, CUcontext *out)
{
	cudaError_t error = cudaSuccess;

	pthread_mutex_lock(&lock);
	if (!devices[ordinal].primary)
		error = rt_error(
			rt_driver.cuDevicePrimaryCtxRetain(&devices[ordinal].primary, ordinal));
	*out = devices[ordinal].primary;
	n_resets_seen = devices[ordinal].n_resets;
	pthread_mutex_unlock(&lock);
	return error;
}

CUcontext rt_primary(int ordinal)
{
	unsigned int seen = n_resets_seen;
	CUcontext context = NULL;

	if (ordinal >= 0 && ordinal < n_devices && retain(ordinal, &context) != cudaSuccess)
		context = NULL;
	n_resets_seen = seen;
	return context;
}

static cudaError_t make_current(int ordinal)
{
	CUcontext context;
	cudaError_t error = retain(ordinal, &context);

	return error == cudaSuccess ? rt_error(rt_driver.cuCtxSetCurrent(context)) : error;
}

static unsigned int n_resets(int ordinal)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = devices[ordinal].n_resets;
	pthread_mutex_unlock(&lock);
	return n;
}

cudaError_t rt_enter(void)
{
	cudaError_t error = rt_start();
	CUcontext context = NULL;

	if (error == cudaSuccess)
		error = rt_error(rt_driver.cuCtxGetCurrent(&context));
	if (error != cudaSuccess || (context && n_resets_seen == n_resets(device)))
		return error;
	return make_current(device);
}

/* The device of the context that is current, which the program may have set itself. */
static cudaError_t current_device(int *out)
{
	CUcontext context = NULL;
	cudaError_t error = rt_start();

	*out = device;
	if (error == cudaSuccess)
		error = rt_error(rt_driver.cuCtxGetCurrent(&context));
	if (error == cudaSuccess && context && rt_driver.cuCtxGetDevice(out) != CUDA_SUCCESS)
		*out = device;
	return error;
}

static cudaError_t reset(void)
{
	int ordinal;
	cudaError_t error = current_device(&ordinal);

	if (error != cudaSuccess)
		return error;
	pthread_mutex_lock(&lock);
	error = rt_error(rt_driver.cuDevicePrimaryCtxReset(ordinal));
	devices[ordinal].primary = NULL;
	devices[ordinal].n_resets++;
	pthread_mutex_unlock(&lock);
	return error;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	cudaError_t error = rt_start();

	if (!count)
		return rt_result(cudaErrorInvalidValue);
	*count = error == cudaSuccess ? n_devices : 0;
	return rt_result(error);
}

cudaError_t cudaSetDevice(int ordinal)
{
	cudaError_t error = rt_start();

	if (error == cudaSuccess && (ordinal < 0 || ordinal >= n_devices))
		error = cudaErrorInvalidDevice;
	if (error == cudaSuccess)
		error = make_current(ordinal);
	if (error == cudaSuccess)
		device = ordinal;
	return rt_result(error);
}

cudaError_t cudaGetDevice(int *out)
{
	return rt_result(out ? current_device(out) : cudaErrorInvalidValue);
}

cudaError_t cudaDeviceSynchronize(void)
{
	return RT_CALL(cuCtxSynchronize);
}

cudaError_t cudaDeviceReset(void)
{
	return rt_result(reset());
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	return RT_CALL(cuCtxSetLimit, (CUlimit)limit, value);
}

cudaError_t cudaDeviceGetLimit(size_t *pValue, enum cudaLimit limit)
{
	return RT_CALL(cuCtxGetLimit, pValue, (CUlimit)limit);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int ordinal)
{
	cudaError_t error = rt_start();

	if (error == cudaSuccess)
		error = rt_error(
			rt_driver.cuDeviceGetAttribute(value, (CUdevice_attribute)attr, ordinal));
	return rt_result(error);
}

cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int ordinal, int peerDevice)
{
	cudaError_t error = rt_start();

	if (error == cudaSuccess)
		error = rt_error(
			rt_driver.cuDeviceCanAccessPeer(canAccessPeer, ordinal, peerDevice));
	return rt_result(error);
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
	cudaError_t error = rt_enter();
	CUcontext peer = error == cudaSuccess ? rt_primary(peerDevice) : NULL;

	if (error == cudaSuccess)
		error = peer ? rt_error(rt_driver.cuCtxEnablePeerAccess(peer, flags))
			     : cudaErrorInvalidDevice;
	return rt_result(error);
}

static int attribute(CUdevice_attribute which, int ordinal)
{
	int value = 0;

	rt_driver.cuDeviceGetAttribute(&value, which, ordinal);
	return value;
}

static cudaError_t properties(struct cudaDeviceProp *prop, int ordinal)
{
	cudaError_t error = rt_start();

	if (error != cudaSuccess)
		return error;
	if (!prop)
		return cudaErrorInvalidValue;
	memset(prop, 0, sizeof(*prop));
	error = rt_error(rt_driver.cuDeviceGetName(prop->name, sizeof(prop->name), ordinal));
	if (error == cudaSuccess)
		error = rt_error(rt_driver.cuDeviceTotalMem(&prop->totalGlobalMem, ordinal));
	if (error == cudaSuccess)
		error = rt_error(rt_driver.cuDeviceGetUuid((CUuuid *)&prop->uuid, ordinal));
	if (error != cudaSuccess)
		return error;
	prop->major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal);
	prop->minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal);
	prop->multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ordinal);
	prop->warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, ordinal);
	prop->pciBusID = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, ordinal);
	prop->unifiedAddressing = attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, ordinal);
	prop->managedMemory = attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, ordinal);
	return cudaSuccess;
}

/* Toolkit 12 renames it to _v2 in its header, others do not: the definition is whatever the header
 * declares. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int ordinal)
{
	return rt_result(properties(prop, ordinal));
}

cudaError_t cudaDriverGetVersion(int *driverVersion)
{
	cudaError_t error = rt_start();

	if (error == cudaSuccess)
		error = rt_error(rt_driver.cuDriverGetVersion(driverVersion));
	return rt_result(error);
}

cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
	if (!runtimeVersion)
		return rt_result(cudaErrorInvalidValue);
	*runtimeVersion = CUDART_VERSION;
	return cudaSuccess;
}

/* An address of the driver. *found stays untouched where there is an error. */
static cudaError_t entry_point(
	const char *symbol, void **out, unsigned int version, unsigned long long flags, bool *found)
{
	cudaError_t error = out && symbol ? rt_start() : cudaErrorInvalidValue;
	CUresult result;

	if (error != cudaSuccess)
		return rt_result(error);
	result = ask(symbol, (int)version, flags, out);
	*found = result == CUDA_SUCCESS;
	return rt_result(result == CUDA_ERROR_NOT_FOUND ? cudaSuccess : rt_error(result));
}

#if CUDART_VERSION >= 12000
static void tell(enum cudaDriverEntryPointQueryResult *status, bool found)
{
	if (status)
		*status = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
	enum cudaDriverEntryPointQueryResult *driverStatus)
{
	bool found = false;
	cudaError_t error = entry_point(symbol, funcPtr, CUDART_VERSION, flags, &found);

	tell(driverStatus, found);
	return error;
}
#else
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags)
{
	bool found = false;
	cudaError_t error = entry_point(symbol, funcPtr, CUDART_VERSION, flags, &found);

	return error == cudaSuccess && !found ? rt_result(cudaErrorSymbolNotFound) : error;
}
#endif

#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr,
	unsigned int cudaVersion, unsigned long long flags,
	enum cudaDriverEntryPointQueryResult *driverStatus)
{
	bool found = false;
	cudaError_t error = entry_point(symbol, funcPtr, cudaVersion, flags, &found);

	tell(driverStatus, found);
	return error;
}
#endif

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last_error;

	last_error = cudaSuccess;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

const char *cudaGetErrorName(cudaError_t error)
{
	const char *text = NULL;

	if (error == cudaErrorInsufficientDriver)
		return "cudaErrorInsufficientDriver";
	if (rt_start() == cudaSuccess)
		rt_driver.cuGetErrorName((CUresult)(int)error, &text);
	return text ? text : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
	const char *text = NULL;

	if (error == cudaErrorInsufficientDriver)
		return "CUDA driver version is insufficient for CUDA runtime version";
	if (rt_start() == cudaSuccess)
		rt_driver.cuGetErrorString((CUresult)(int)error, &text);
	return text ? text : "unrecognized error code";
}
