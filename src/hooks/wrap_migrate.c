#include "hooks/wrap.h"

/* Managed memory is told where to be. Nothing is allocated by that, and the bytes are never added
 * to those of a device. */

static void note(const struct call *call, enum vt_migrate_action action, CUdeviceptr address,
	size_t bytes, int device, CUstream stream)
{
	event_migrate(call, action, address, bytes, device, ADDRESS(stream));
}

/* A device of the first form may be the host: CU_DEVICE_CPU is -1, as in the trace. */
#define PREFETCH(export)                                                                           \
	CUresult CUDAAPI export(                                                                   \
		CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)            \
	{                                                                                          \
		FORWARD(export, devPtr, count, dstDevice, hStream);                                \
		note(&call, VT_MIGRATE_PREFETCH, devPtr, count, dstDevice, hStream);               \
		return LEAVE();                                                                    \
	}

PREFETCH(cuMemPrefetchAsync)
PREFETCH(cuMemPrefetchAsync_ptsz)

CUresult CUDAAPI cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
	FORWARD(cuMemAdvise, devPtr, count, advice, device);
	note(&call, VT_MIGRATE_ADVISE, devPtr, count, device, NULL);
	return LEAVE();
}

#if CUDA_VERSION >= 12020
#define PREFETCH_TO_LOCATION(export)                                                               \
	CUresult CUDAAPI export(CUdeviceptr devPtr, size_t count, CUmemLocation location,          \
		unsigned int flags, CUstream hStream)                                              \
	{                                                                                          \
		FORWARD(export, devPtr, count, location, flags, hStream);                          \
		note(&call, VT_MIGRATE_PREFETCH, devPtr, count, wrap_device_of(&location),         \
			hStream);                                                                  \
		return LEAVE();                                                                    \
	}

PREFETCH_TO_LOCATION(cuMemPrefetchAsync_v2)
PREFETCH_TO_LOCATION(cuMemPrefetchAsync_v2_ptsz)

CUresult CUDAAPI cuMemAdvise_v2(
	CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
	FORWARD(cuMemAdvise_v2, devPtr, count, advice, location);
	note(&call, VT_MIGRATE_ADVISE, devPtr, count, wrap_device_of(&location), NULL);
	return LEAVE();
}
#endif

#if CUDA_VERSION >= 13000
/* Location i holds from range indexes[i] on, up to the next index. */
static void note_ranges(const struct call *call, enum vt_migrate_action action,
	const CUdeviceptr *addresses, const size_t *sizes, size_t count,
	const CUmemLocation *locations, const size_t *indexes, size_t n_locations, CUstream stream)
{
	size_t at = 0;

	/* The ranges may be what is wrong with the call: they are not looked at. */
	if (call->result)
		note(call, action, 0, 0, -1, stream);
	for (size_t i = 0; !call->result && i < count; i++) {
		while (at + 1 < n_locations && indexes[at + 1] <= i)
			at++;
		note(call, action, addresses[i], sizes[i],
			n_locations ? wrap_device_of(&locations[at]) : -1, stream);
	}
}

#define RANGES(export, action)                                                                     \
	CUresult CUDAAPI export(CUdeviceptr * dptrs, size_t * sizes, size_t count,                 \
		CUmemLocation * prefetchLocs, size_t * prefetchLocIdxs, size_t numPrefetchLocs,    \
		unsigned long long flags, CUstream hStream)                                        \
	{                                                                                          \
		FORWARD(export, dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,                \
			numPrefetchLocs, flags, hStream);                                          \
		note_ranges(&call, action, dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,     \
			numPrefetchLocs, hStream);                                                 \
		return LEAVE();                                                                    \
	}

#define DISCARD(export)                                                                            \
	CUresult CUDAAPI export(CUdeviceptr * dptrs, size_t * sizes, size_t count,                 \
		unsigned long long flags, CUstream hStream)                                        \
	{                                                                                          \
		FORWARD(export, dptrs, sizes, count, flags, hStream);                              \
		note_ranges(                                                                       \
			&call, VT_MIGRATE_DISCARD, dptrs, sizes, count, NULL, NULL, 0, hStream);   \
		return LEAVE();                                                                    \
	}

RANGES(cuMemPrefetchBatchAsync, VT_MIGRATE_PREFETCH)
RANGES(cuMemPrefetchBatchAsync_ptsz, VT_MIGRATE_PREFETCH)
RANGES(cuMemDiscardAndPrefetchBatchAsync, VT_MIGRATE_DISCARD_PREFETCH)
RANGES(cuMemDiscardAndPrefetchBatchAsync_ptsz, VT_MIGRATE_DISCARD_PREFETCH)
DISCARD(cuMemDiscardBatchAsync)
DISCARD(cuMemDiscardBatchAsync_ptsz)
#endif
