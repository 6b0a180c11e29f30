/* A library that happens to export names of the driver, two of them in versions, and is not the
 * driver. */
int cuMemAlloc_v2(unsigned long *pointer, unsigned long bytes);
int cuMemFree_v2(unsigned long pointer);
int cuInit(unsigned int flags);
int old_alloc(unsigned long *pointer, unsigned long bytes);
int new_alloc(unsigned long *pointer, unsigned long bytes);

__asm__(".symver old_alloc, cuMemAllocManaged@DECOY_1");
__asm__(".symver new_alloc, cuMemAllocManaged@@DECOY_2");

int cuMemAlloc_v2(unsigned long *pointer, unsigned long bytes)
{
	*pointer = bytes;
	return 777;
}

int cuMemFree_v2(unsigned long pointer)
{
	return pointer ? 778 : 779;
}

int cuInit(unsigned int flags)
{
	return (int)flags + 780;
}

int old_alloc(unsigned long *pointer, unsigned long bytes)
{
	*pointer = bytes;
	return 781;
}

int new_alloc(unsigned long *pointer, unsigned long bytes)
{
	*pointer = bytes;
	return 782;
}
