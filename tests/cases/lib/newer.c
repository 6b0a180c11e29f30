/* A driver that does nothing, and has a memory call that no recorder knows. */
int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long *pointer, unsigned long bytes);
int cuMemTeleportAsync(unsigned long pointer, void *stream);

int cuInit(unsigned int flags)
{
	return flags ? 1 : 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = context;
	return device ? 101 : 0;
}

int cuCtxSetCurrent(void *context)
{
	return context ? 0 : 201;
}

int cuMemAlloc_v2(unsigned long *pointer, unsigned long bytes)
{
	*pointer = 4096;
	return bytes ? 0 : 1;
}

int cuMemTeleportAsync(unsigned long pointer, void *stream)
{
	return pointer && stream ? 0 : 1;
}
