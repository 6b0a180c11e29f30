/* The runtime API; what it does not have, it finds as PyTorch does, by cudaGetDriverEntryPoint. */
#include <cuda_runtime_api.h>
#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdlib.h>

#include "random_route.h"

#define MAX_DEVICES	 16
#define POINTER(address) ((void *)(uintptr_t)(address))
#define CHOOSE(n)	 ((form >> 4) % (n))

/* The twins for the per-thread default stream, which the header declares only to the runtime
 * itself. */
cudaError_t cudaMallocAsync_ptsz(void **devPtr, size_t size, cudaStream_t hStream);
cudaError_t cudaMallocFromPoolAsync_ptsz(
	void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void *devPtr, cudaStream_t hStream);
cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync_ptsz(
	void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemset_ptds(void *devPtr, int value, size_t count);
cudaError_t cudaMemsetAsync_ptsz(void *devPtr, int value, size_t count, cudaStream_t stream);
cudaError_t cudaMemset2D_ptds(void *devPtr, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemset2DAsync_ptsz(
	void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream);
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t *pGraph);

static struct {
	PFN_cuMemAddressReserve_v10020 reserve;
	PFN_cuMemAddressFree_v10020 unreserve;
	PFN_cuMemCreate_v10020 create;
	PFN_cuMemRelease_v10020 release;
	PFN_cuMemMap_v10020 map;
	PFN_cuMemUnmap_v10020 unmap;
	PFN_cuMemSetAccess_v10020 allow;
} cu;

static cudaMemPool_t pools[MAX_DEVICES];
static __thread cudaStream_t streams[MAX_DEVICES];
static __thread int device_now;

/* The address in *out stays NULL where the driver has no such name. */
static int find(const char *name, void *out)
{
	cudaError_t error;

	*(void **)out = NULL;
#if CUDART_VERSION >= 12050
	error = cudaGetDriverEntryPointByVersion(name, out, 10020, cudaEnableDefault, NULL);
#elif CUDART_VERSION >= 12000
	error = cudaGetDriverEntryPoint(name, out, cudaEnableDefault, NULL);
#else
	error = cudaGetDriverEntryPoint(name, out, cudaEnableDefault);
#endif
	return (int)(!error && !*(void **)out ? cudaErrorSymbolNotFound : error);
}

static int start(int n_devices)
{
	struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
		.location = {.type = cudaMemLocationTypeDevice}};
	int error = find("cuMemAddressReserve", &cu.reserve);

	error = error ? error : find("cuMemAddressFree", &cu.unreserve);
	error = error ? error : find("cuMemCreate", &cu.create);
	error = error ? error : find("cuMemRelease", &cu.release);
	error = error ? error : find("cuMemMap", &cu.map);
	error = error ? error : find("cuMemUnmap", &cu.unmap);
	error = error ? error : find("cuMemSetAccess", &cu.allow);
	for (int i = 0; !error && i < n_devices; i++) {
		properties.location.id = i;
		error = (int)cudaMemPoolCreate(&pools[i], &properties);
	}
	return error;
}

static int use(int device)
{
	int error = (int)cudaSetDevice(device);

	device_now = device;
	if (!error && !streams[device])
		error = (int)cudaStreamCreateWithFlags(&streams[device], cudaStreamNonBlocking);
	return error;
}

static cudaStream_t stream_of(unsigned form)
{
	return form & 8 ? streams[device_now] : NULL;
}

static int alloc(unsigned form, u64 bytes, u64 *out)
{
	void *p = NULL;
	int error = (int)cudaMalloc(&p, bytes);

	(void)form;
	*out = (u64)(uintptr_t)p;
	return error;
}

static int alloc_pitch(unsigned form, u64 width, u64 height, u64 *pitch, u64 *out)
{
	void *p = NULL;
	size_t got = 0;
	int error = (int)cudaMallocPitch(&p, &got, width, height);

	(void)form;
	*out = (u64)(uintptr_t)p;
	*pitch = got;
	return error;
}

static int alloc_managed(u64 bytes, u64 *out)
{
	void *p = NULL;
	int error = (int)cudaMallocManaged(&p, bytes, cudaMemAttachGlobal);

	*out = (u64)(uintptr_t)p;
	return error;
}

static int free_memory(unsigned form, u64 address)
{
	(void)form;
	return (int)cudaFree(POINTER(address));
}

static int alloc_pinned(unsigned form, u64 bytes, u64 *out)
{
	void *p = NULL;
	int error = (int)(CHOOSE(2) ? cudaMallocHost(&p, bytes)
				    : cudaHostAlloc(&p, bytes, cudaHostAllocPortable));

	*out = (u64)(uintptr_t)p;
	return error;
}

static int free_pinned(u64 address)
{
	return (int)cudaFreeHost(POINTER(address));
}

static int register_host(unsigned form, void *p, u64 bytes)
{
	(void)form;
	return (int)cudaHostRegister(p, bytes, cudaHostRegisterDefault);
}

static int unregister_host(void *p)
{
	return (int)cudaHostUnregister(p);
}

static int alloc_async(unsigned form, int device, u64 bytes, u64 *out)
{
	void *p = NULL;
	cudaError_t error;

	switch (CHOOSE(device == device_now ? 4 : 2)) {
	case 0:
		error = cudaMallocFromPoolAsync(&p, bytes, pools[device], stream_of(form));
		break;
	case 1:
		error = cudaMallocFromPoolAsync_ptsz(&p, bytes, pools[device], stream_of(form));
		break;
	case 2:
		error = cudaMallocAsync(&p, bytes, stream_of(form));
		break;
	default:
		error = cudaMallocAsync_ptsz(&p, bytes, stream_of(form));
	}
	*out = (u64)(uintptr_t)p;
	return (int)error;
}

static int free_async(unsigned form, u64 address)
{
	return (int)(CHOOSE(2) ? cudaFreeAsync(POINTER(address), stream_of(form))
			       : cudaFreeAsync_ptsz(POINTER(address), stream_of(form)));
}

static int copy(unsigned form, const struct copy *c)
{
	static const enum cudaMemcpyKind kinds[N_COPY_DIRECTIONS] = {
		[COPY_H2D] = cudaMemcpyHostToDevice,
		[COPY_D2H] = cudaMemcpyDeviceToHost,
		[COPY_D2D] = cudaMemcpyDeviceToDevice,
		[COPY_UNIFIED] = cudaMemcpyDefault};
	void *dst = POINTER(c->dst), *src = POINTER(c->src);

	if (c->direction == COPY_P2P)
		return (int)(CHOOSE(2) ? cudaMemcpyPeer(
						 dst, c->dst_device, src, c->src_device, c->bytes)
				       : cudaMemcpyPeerAsync(dst, c->dst_device, src, c->src_device,
						 c->bytes, stream_of(form)));
	switch (CHOOSE(4)) {
	case 0:
		return (int)cudaMemcpy(dst, src, c->bytes, kinds[c->direction]);
	case 1:
		return (int)cudaMemcpy_ptds(dst, src, c->bytes, kinds[c->direction]);
	case 2:
		return (int)cudaMemcpyAsync(
			dst, src, c->bytes, kinds[c->direction], stream_of(form));
	default:
		return (int)cudaMemcpyAsync_ptsz(
			dst, src, c->bytes, kinds[c->direction], stream_of(form));
	}
}

static int set_rows(unsigned form, const struct set *s)
{
	void *p = POINTER(s->address);
	size_t n_rows = s->bytes / 64;

	switch (CHOOSE(4)) {
	case 0:
		return (int)cudaMemset2D(p, 64, s->value, 64, n_rows);
	case 1:
		return (int)cudaMemset2D_ptds(p, 64, s->value, 64, n_rows);
	case 2:
		return (int)cudaMemset2DAsync(p, 64, s->value, 64, n_rows, stream_of(form));
	default:
		return (int)cudaMemset2DAsync_ptsz(p, 64, s->value, 64, n_rows, stream_of(form));
	}
}

static int set(unsigned form, const struct set *s)
{
	void *p = POINTER(s->address);

	if (s->bytes % 64 == 0 && (form & 4))
		return set_rows(form, s);
	switch (CHOOSE(4)) {
	case 0:
		return (int)cudaMemset(p, s->value, s->bytes);
	case 1:
		return (int)cudaMemset_ptds(p, s->value, s->bytes);
	case 2:
		return (int)cudaMemsetAsync(p, s->value, s->bytes, stream_of(form));
	default:
		return (int)cudaMemsetAsync_ptsz(p, s->value, s->bytes, stream_of(form));
	}
}

static int reserve(u64 bytes, u64 *out)
{
	CUdeviceptr address;
	int error = (int)cu.reserve(&address, bytes, 0, 0, 0);

	*out = address;
	return error;
}

static int unreserve(u64 address, u64 bytes)
{
	return (int)cu.unreserve(address, bytes);
}

static int create(int device, u64 bytes, u64 *out)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
	CUmemGenericAllocationHandle handle;
	int error = (int)cu.create(&handle, bytes, &properties, 0);

	*out = handle;
	return error;
}

static int release(u64 handle)
{
	return (int)cu.release(handle);
}

static int map(u64 address, u64 bytes, u64 handle)
{
	return (int)cu.map(address, bytes, 0, handle, 0);
}

static int unmap(u64 address, u64 bytes)
{
	return (int)cu.unmap(address, bytes);
}

static int allow(u64 address, u64 bytes, int device)
{
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	return (int)cu.allow(address, bytes, &access, 1);
}

static int capture(unsigned form)
{
	cudaStream_t stream = streams[device_now];
	cudaGraph_t graph;
	cudaError_t error =
		CHOOSE(2) ? cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed)
			  : cudaStreamBeginCapture_ptsz(stream, cudaStreamCaptureModeRelaxed);

	if (!error)
		error = form & 1 ? cudaStreamEndCapture(stream, &graph)
				 : cudaStreamEndCapture_ptsz(stream, &graph);
	return (int)(error ? error : cudaGraphDestroy(graph));
}

static int query(unsigned form)
{
	struct cudaPointerAttributes attributes;
	size_t free_bytes, total;
	cudaMemPool_t pool;
	int device;

	switch (CHOOSE(5)) {
	case 0:
		return (int)cudaGetDevice(&device);
	case 1:
		return (int)cudaDeviceSynchronize();
	case 2:
		return (int)cudaPointerGetAttributes(&attributes, pools);
	case 3:
		return (int)cudaDeviceGetDefaultMemPool(&pool, device_now);
	default:
		return (int)cudaMemGetInfo(&free_bytes, &total);
	}
}

#include "random_runtime_wide.h"

const struct route route = {
	.name = "runtime",
	.wide = &wide,
	.start = start,
	.use = use,
	.alloc = alloc,
	.alloc_pitch = alloc_pitch,
	.alloc_managed = alloc_managed,
	.free = free_memory,
	.alloc_pinned = alloc_pinned,
	.free_pinned = free_pinned,
	.register_host = register_host,
	.unregister_host = unregister_host,
	.alloc_async = alloc_async,
	.free_async = free_async,
	.copy = copy,
	.set = set,
	.reserve = reserve,
	.unreserve = unreserve,
	.create = create,
	.release = release,
	.map = map,
	.unmap = unmap,
	.allow = allow,
	.capture = capture,
	.query = query,
};
