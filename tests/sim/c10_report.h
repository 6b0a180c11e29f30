/* libc10's functions by their mangled names, as allocators call them. */
#ifndef C10_REPORT_H
#define C10_REPORT_H

#include <stddef.h>
#include <stdint.h>

/* c10::Device; type 0 is the CPU, 1 CUDA. */
struct c10_device {
	int8_t type;
	int8_t index;
};

/* PyTorch 2.0 and later; 1.10 to 1.13. */
void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
	void *pointer, int64_t bytes, size_t allocated, size_t reserved, struct c10_device device);
void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void *pointer, int64_t bytes,
	int64_t allocated, int64_t reserved, struct c10_device device);

/* 2.0 and later; what comes after 2.11; 1.13. */
void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(
	int64_t bytes, size_t allocated, size_t reserved, struct c10_device device);
void _ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE(
	size_t bytes, size_t allocated, size_t reserved, struct c10_device device);
void _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(
	int64_t bytes, int64_t allocated, int64_t reserved, struct c10_device device);

#endif
