/* Managed memory on the move: nothing moves here, but what real calls refuse is refused. */
#include "sim.h"

static CUresult managed(u64 address, u64 n)
{
	struct sim_range *range = sim_range_find(address);

	return n > 0 && range && range->kind == CUSIM_MANAGED &&
			       n <= range->base + range->bytes - address
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult ordinal_check(CUdevice ordinal)
{
	return ordinal == CU_DEVICE_CPU || sim_device_get(ordinal) ? CUDA_SUCCESS
								   : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult stream_check(CUstream stream)
{
	return sim_stream_known(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static void count(enum cusim_migration migration, u64 n)
{
	sim_ledger_traffic(&sim.ledger.migrations[migration], n);
}

static CUresult prefetch(u64 address, u64 n, CUresult location, CUstream stream)
{
	CUresult result = managed(address, n);

	result = result == CUDA_SUCCESS ? location : result;
	result = result == CUDA_SUCCESS ? stream_check(stream) : result;
	if (result == CUDA_SUCCESS && !sim_stream_capturing(stream))
		count(CUSIM_PREFETCH, n);
	return result;
}

/* Some advice is about a place. */
static CUresult advise(u64 address, u64 n, CUmem_advise advice, CUresult location)
{
	CUresult result = managed(address, n);

	if (result != CUDA_SUCCESS)
		return result;
	switch (advice) {
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		result = location;
		break;
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	if (result == CUDA_SUCCESS)
		count(CUSIM_ADVISE, n);
	return result;
}

#define MIGRATE(expr)                                                                              \
	SIM_CALL_THEN(                                                                             \
		NEED_CONTEXT, expr,                                                                \
		if (result != CUDA_SUCCESS) { sim.ledger.failed_migrations++; } else(void) ctx)

#define PREFETCH(name)                                                                             \
	CUresult name(CUdeviceptr devPtr, size_t n, CUdevice dstDevice, CUstream hStream)          \
	{                                                                                          \
		return MIGRATE(prefetch(devPtr, n, ordinal_check(dstDevice), hStream));            \
	}

PREFETCH(cuMemPrefetchAsync)
PREFETCH(cuMemPrefetchAsync_ptsz)

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t n, CUmem_advise advice, CUdevice device)
{
	return MIGRATE(advise(devPtr, n, advice, ordinal_check(device)));
}

#if CUDA_VERSION >= 12020
static CUresult place_check(const CUmemLocation *place)
{
	switch (place->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return sim_device_get(place->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

#define PREFETCH_TO(name)                                                                          \
	CUresult name(CUdeviceptr devPtr, size_t n, CUmemLocation location, unsigned int flags,    \
		CUstream hStream)                                                                  \
	{                                                                                          \
		return MIGRATE(flags ? CUDA_ERROR_INVALID_VALUE                                    \
				     : prefetch(devPtr, n, place_check(&location), hStream));      \
	}

PREFETCH_TO(cuMemPrefetchAsync_v2)
PREFETCH_TO(cuMemPrefetchAsync_v2_ptsz)

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t n, CUmem_advise advice, CUmemLocation location)
{
	return MIGRATE(advise(devPtr, n, advice, place_check(&location)));
}
#endif

#if CUDA_VERSION >= 13000
struct batch {
	const CUdeviceptr *addresses;
	const size_t *sizes;
	size_t n;
	u64 flags;
	CUstream stream;
	const CUmemLocation *places; /* NULL: the batch has none */
	const size_t *firsts;
	size_t n_places;
};

static CUresult places_check(const struct batch *b)
{
	if (!b->places || !b->firsts || b->n_places == 0 || b->n_places > b->n || b->firsts[0] != 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < b->n_places; i++) {
		CUresult result = place_check(&b->places[i]);

		if (b->firsts[i] >= b->n || (i > 0 && b->firsts[i] <= b->firsts[i - 1]))
			result = CUDA_ERROR_INVALID_VALUE;
		if (result != CUDA_SUCCESS)
			return result;
	}
	return CUDA_SUCCESS;
}

/* Discards, prefetches, or both, each part of a batch, if all parts are valid. */
static CUresult submit(const struct batch *b, bool discard, bool fetch)
{
	CUresult result = stream_check(b->stream);

	if (!b->addresses || !b->sizes || b->n == 0 || b->flags || !b->stream ||
		b->stream == CU_STREAM_LEGACY)
		return CUDA_ERROR_INVALID_VALUE;
	if (fetch && result == CUDA_SUCCESS)
		result = places_check(b);
	for (size_t i = 0; result == CUDA_SUCCESS && i < b->n; i++)
		result = managed(b->addresses[i], b->sizes[i]);
	if (result != CUDA_SUCCESS || sim_stream_capturing(b->stream))
		return result;
	for (size_t i = 0; i < b->n; i++) {
		if (discard)
			count(CUSIM_DISCARD, b->sizes[i]);
		if (fetch)
			count(CUSIM_PREFETCH, b->sizes[i]);
	}
	return CUDA_SUCCESS;
}

#define DISCARD_BATCH(name)                                                                        \
	CUresult name(CUdeviceptr *dptrs, size_t *sizes, size_t n, unsigned long long flags,       \
		CUstream hStream)                                                                  \
	{                                                                                          \
		return MIGRATE(                                                                    \
			submit(&(struct batch){dptrs, sizes, n, flags, hStream, NULL, NULL, 0},    \
				true, false));                                                     \
	}
#define PREFETCH_BATCH(name, discard)                                                              \
	CUresult name(CUdeviceptr *dptrs, size_t *sizes, size_t n, CUmemLocation *prefetchLocs,    \
		size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,         \
		CUstream hStream)                                                                  \
	{                                                                                          \
		return MIGRATE(submit(&(struct batch){dptrs, sizes, n, flags, hStream,             \
					      prefetchLocs, prefetchLocIdxs, numPrefetchLocs},     \
			discard, true));                                                           \
	}

PREFETCH_BATCH(cuMemPrefetchBatchAsync, false)
PREFETCH_BATCH(cuMemPrefetchBatchAsync_ptsz, false)
DISCARD_BATCH(cuMemDiscardBatchAsync)
DISCARD_BATCH(cuMemDiscardBatchAsync_ptsz)
PREFETCH_BATCH(cuMemDiscardAndPrefetchBatchAsync, true)
PREFETCH_BATCH(cuMemDiscardAndPrefetchBatchAsync_ptsz, true)
#endif
