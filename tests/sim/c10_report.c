/* libc10.so: the functions that allocators report to. */
#include <stdatomic.h>

#include "c10sim.h"
#include "c10_report.h"

static _Atomic uint64_t n_allocations, n_frees, n_refusals;

static void count(int64_t bytes)
{
	atomic_fetch_add(bytes > 0 ? &n_allocations : &n_frees, 1);
}

void c10sim_reports_get(struct c10sim_reports *out)
{
	*out = (struct c10sim_reports){n_allocations, n_frees, n_refusals};
}

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
	void *pointer, int64_t bytes, size_t allocated, size_t reserved, struct c10_device device)
{
	(void)pointer, (void)allocated, (void)reserved, (void)device;
	count(bytes);
}

void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(
	void *pointer, int64_t bytes, int64_t allocated, int64_t reserved, struct c10_device device)
{
	(void)pointer, (void)allocated, (void)reserved, (void)device;
	count(bytes);
}

void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(
	int64_t bytes, size_t allocated, size_t reserved, struct c10_device device)
{
	(void)bytes, (void)allocated, (void)reserved, (void)device;
	atomic_fetch_add(&n_refusals, 1);
}

void _ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE(
	size_t bytes, size_t allocated, size_t reserved, struct c10_device device)
{
	(void)bytes, (void)allocated, (void)reserved, (void)device;
	atomic_fetch_add(&n_refusals, 1);
}

void _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(
	int64_t bytes, int64_t allocated, int64_t reserved, struct c10_device device)
{
	(void)bytes, (void)allocated, (void)reserved, (void)device;
	atomic_fetch_add(&n_refusals, 1);
}
