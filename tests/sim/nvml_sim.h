/* nvml_sim.h: as much of NVML's interface as the simulated libnvidia-ml.so.1 has. NVML's own header
 * need not be there. */
#ifndef NVML_SIM_H
#define NVML_SIM_H

#define NVML_SUCCESS		      0
#define NVML_ERROR_UNINITIALIZED      1
#define NVML_ERROR_INVALID_ARGUMENT   2
#define NVML_ERROR_NOT_FOUND	      6
#define NVML_ERROR_INSUFFICIENT_SIZE  7
#define NVML_ERROR_ARGUMENT_VERSION   25
#define NVML_ERROR_LIBRARY_NOT_FOUND  12
#define NVML_VALUE_NOT_AVAILABLE_INST 0xffffffffu

typedef int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;

typedef struct {
	unsigned long long total, free, used; /* bytes */
} nvmlMemory_t;

typedef struct {
	unsigned int version; /* NVML_MEMORY_V2, set by the caller */
	unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

#define NVML_MEMORY_V2 ((unsigned int)(sizeof(nvmlMemory_v2_t) | 2u << 24))

typedef struct {
	unsigned int pid;
	unsigned long long usedGpuMemory;
	unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlShutdown(void);
/* The uuid is "GPU-" and the bytes of cuDeviceGetUuid in hexadecimal, in groups of 4 2 2 2 6. */
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
/* This process while it has memory of the device, and process 1 while CUSIM_OTHER bytes are held.
 */
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
	nvmlDevice_t device, unsigned int *infoCount, nvmlProcessInfo_t *infos);

#endif
