#include "hooks/wrap.h"

CUresult CUDAAPI cuMemAllocHost(void **pp, unsigned int bytesize)
{
	FORWARD(cuMemAllocHost, pp, bytesize);
	event_alloc(&call, VT_KIND_PINNED, OUT((uintptr_t *)pp), bytesize, 0, 0);
	return LEAVE();
}

CUresult CUDAAPI cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	FORWARD(cuMemAllocHost_v2, pp, bytesize);
	event_alloc(&call, VT_KIND_PINNED, OUT((uintptr_t *)pp), bytesize, 0, 0);
	return LEAVE();
}

CUresult CUDAAPI cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	FORWARD(cuMemHostAlloc, pp, bytesize, Flags);
	event_alloc(&call, VT_KIND_PINNED, OUT((uintptr_t *)pp), bytesize, 0, 0);
	return LEAVE();
}

CUresult CUDAAPI cuMemFreeHost(void *p)
{
	FORWARD(cuMemFreeHost, p);
	event_free(&call, VT_KIND_PINNED, ADDRESS(p), 0);
	return LEAVE();
}

CUresult CUDAAPI cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	FORWARD(cuMemHostRegister, p, bytesize, Flags);
	event_alloc(&call, VT_KIND_REGISTERED, ADDRESS(p), bytesize, 0, 0);
	return LEAVE();
}

CUresult CUDAAPI cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	FORWARD(cuMemHostRegister_v2, p, bytesize, Flags);
	event_alloc(&call, VT_KIND_REGISTERED, ADDRESS(p), bytesize, 0, 0);
	return LEAVE();
}

CUresult CUDAAPI cuMemHostUnregister(void *p)
{
	FORWARD(cuMemHostUnregister, p);
	event_free(&call, VT_KIND_REGISTERED, ADDRESS(p), 0);
	return LEAVE();
}
