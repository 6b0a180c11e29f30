/* selftest_driver.h: what the tests of the simulated driver share. */
#ifndef SELFTEST_DRIVER_H
#define SELFTEST_DRIVER_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "cusim.h"
#include "selftest.h"

#define MIB	 (1ull << 20)
#define OK(call) CHECK_EQUAL(call, CUDA_SUCCESS)

static CUcontext context;

/* A context on the device; returns its free memory. */
static inline size_t start(int device)
{
	size_t free_bytes, total;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, device));
	OK(cuCtxSetCurrent(context));
	OK(cuMemGetInfo_v2(&free_bytes, &total));
	return free_bytes;
}

static inline size_t free_now(void)
{
	size_t free_bytes;

	OK(cuMemGetInfo_v2(&free_bytes, NULL));
	return free_bytes;
}

static inline struct cusim_ledger *ledger(void)
{
	static struct cusim_ledger now;

	cusim_ledger_get(&now);
	return &now;
}

static inline struct cusim_kind_ledger *kind(int device, enum cusim_kind which)
{
	return &ledger()->devices[device].kinds[which];
}

static inline struct cusim_traffic *copies(int device, enum cusim_direction direction)
{
	return &ledger()->devices[device].copies[direction];
}

/* total = other + this process + free, and this process = the sum of what its pages are for. */
static inline void check_sums(void)
{
	const struct cusim_ledger *now = ledger();

	for (uint64_t i = 0; i < now->n_devices; i++) {
		const struct cusim_device_ledger *device = &now->devices[i];
		uint64_t owned = 0;

		for (int owner = 0; owner < CUSIM_N_OWNERS; owner++)
			owned += device->owned_bytes[owner];
		CHECK_EQUAL(owned, device->page_bytes);
		CHECK_EQUAL(device->total_bytes,
			device->other_bytes + device->page_bytes + device->free_bytes);
	}
}

#endif
