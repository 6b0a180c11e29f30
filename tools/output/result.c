#include "output/result.h"

#include <stddef.h>

/* The results that memory calls are known to give. */
static const struct {
	uint64_t number;
	const char *name;
	const char *text;
} results[] = {
	{1, "CUDA_ERROR_INVALID_VALUE", "invalid value"},
	{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{3, "CUDA_ERROR_NOT_INITIALIZED", "driver not initialized"},
	{4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
	{5, "CUDA_ERROR_PROFILER_DISABLED", "profiler disabled"},
	{34, "CUDA_ERROR_STUB_LIBRARY", "stub library"},
	{46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device unavailable"},
	{100, "CUDA_ERROR_NO_DEVICE", "no device"},
	{101, "CUDA_ERROR_INVALID_DEVICE", "invalid device"},
	{200, "CUDA_ERROR_INVALID_IMAGE", "invalid code image"},
	{201, "CUDA_ERROR_INVALID_CONTEXT", "invalid context"},
	{202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", "context already current"},
	{205, "CUDA_ERROR_MAP_FAILED", "mapping failed"},
	{206, "CUDA_ERROR_UNMAP_FAILED", "unmapping failed"},
	{207, "CUDA_ERROR_ARRAY_IS_MAPPED", "array is mapped"},
	{208, "CUDA_ERROR_ALREADY_MAPPED", "already mapped"},
	{209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no code for this device"},
	{210, "CUDA_ERROR_ALREADY_ACQUIRED", "already acquired"},
	{211, "CUDA_ERROR_NOT_MAPPED", "not mapped"},
	{212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY", "not mapped as an array"},
	{213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER", "not mapped as a pointer"},
	{214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable memory error"},
	{215, "CUDA_ERROR_UNSUPPORTED_LIMIT", "limit not supported"},
	{216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "context already in use"},
	{217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "no peer access"},
	{218, "CUDA_ERROR_INVALID_PTX", "invalid PTX"},
	{219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "invalid graphics context"},
	{300, "CUDA_ERROR_INVALID_SOURCE", "invalid source"},
	{301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
	{302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "shared object symbol not found"},
	{303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "shared object initialization failed"},
	{304, "CUDA_ERROR_OPERATING_SYSTEM", "operating system error"},
	{400, "CUDA_ERROR_INVALID_HANDLE", "invalid handle"},
	{401, "CUDA_ERROR_ILLEGAL_STATE", "illegal state"},
	{402, "CUDA_ERROR_LOSSY_QUERY", "value would be lost"},
	{500, "CUDA_ERROR_NOT_FOUND", "not found"},
	{600, "CUDA_ERROR_NOT_READY", "not ready"},
	{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "illegal address in a kernel"},
	{701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "kernel asked for too many resources"},
	{702, "CUDA_ERROR_LAUNCH_TIMEOUT", "kernel timed out"},
	{704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access already enabled"},
	{705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access not enabled"},
	{708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "primary context is active"},
	{709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
	{711, "CUDA_ERROR_TOO_MANY_PEERS", "too many peers"},
	{712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "host memory already registered"},
	{713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "host memory not registered"},
	{715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "illegal instruction"},
	{716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
	{717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "invalid address space"},
	{718, "CUDA_ERROR_INVALID_PC", "invalid program counter"},
	{719, "CUDA_ERROR_LAUNCH_FAILED", "kernel failed"},
	{720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "cooperative launch too large"},
	{800, "CUDA_ERROR_NOT_PERMITTED", "not permitted"},
	{801, "CUDA_ERROR_NOT_SUPPORTED", "not supported"},
	{802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not ready"},
	{803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "driver and library do not fit together"},
	{804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "forward compatibility not supported"},
	{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not allowed during stream capture"},
	{901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "stream capture invalidated"},
	{902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "stream captures would merge"},
	{903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "stream capture not matched"},
	{904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "stream capture not joined"},
	{905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "stream captures would depend on one another"},
	{906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "legacy stream would depend on a capture"},
	{907, "CUDA_ERROR_CAPTURED_EVENT", "event was captured"},
	{908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "stream capture of another thread"},
	{909, "CUDA_ERROR_TIMEOUT", "timed out"},
	{910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "executable graph cannot be updated so"},
	{911, "CUDA_ERROR_EXTERNAL_DEVICE", "external device failed"},
	{912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "invalid cluster size"},
	{914, "CUDA_ERROR_INVALID_RESOURCE_TYPE", "invalid resource type"},
	{999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

#define N_RESULTS (sizeof(results) / sizeof(*results))

const char *result_name(uint64_t result)
{
	for (size_t i = 0; i < N_RESULTS; i++)
		if (results[i].number == result)
			return results[i].name;
	return NULL;
}

const char *result_text(uint64_t result)
{
	for (size_t i = 0; i < N_RESULTS; i++)
		if (results[i].number == result)
			return results[i].text;
	return NULL;
}
