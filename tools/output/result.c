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
	{46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device unavailable"},
	{100, "CUDA_ERROR_NO_DEVICE", "no device"},
	{101, "CUDA_ERROR_INVALID_DEVICE", "invalid device"},
	{201, "CUDA_ERROR_INVALID_CONTEXT", "invalid context"},
	{208, "CUDA_ERROR_ALREADY_MAPPED", "already mapped"},
	{211, "CUDA_ERROR_NOT_MAPPED", "not mapped"},
	{214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable memory error"},
	{304, "CUDA_ERROR_OPERATING_SYSTEM", "operating system error"},
	{400, "CUDA_ERROR_INVALID_HANDLE", "invalid handle"},
	{600, "CUDA_ERROR_NOT_READY", "not ready"},
	{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "illegal address in a kernel"},
	{702, "CUDA_ERROR_LAUNCH_TIMEOUT", "kernel timed out"},
	{709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
	{712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "host memory already registered"},
	{713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "host memory not registered"},
	{719, "CUDA_ERROR_LAUNCH_FAILED", "kernel failed"},
	{800, "CUDA_ERROR_NOT_PERMITTED", "not permitted"},
	{801, "CUDA_ERROR_NOT_SUPPORTED", "not supported"},
	{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not allowed during stream capture"},
	{901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "stream capture invalidated"},
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
