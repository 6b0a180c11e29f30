/* Which of the driver's entry points are memory calls, by their names: what a newer driver has and
 * the recorder does not wrap must be named. */
#ifndef VRAMTRACE_MEMORY_NAMES_H
#define VRAMTRACE_MEMORY_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* By themselves these neither obtain nor give back nor move anything: what they prepare is seen
 * when it is mapped or used. */
static inline bool vt_name_moves_nothing(const char *name)
{
	static const char *const harmless[] = {
		"cuMemExportToShareableHandle",
		"cuMemPoolExportToShareableHandle",
		"cuMemPoolExportPointer",
		"cuMemPoolSetAccess",
		"cuImportExternalMemory",
		"cuDestroyExternalMemory",
		"cuGraphicsMapResources",
		"cuGraphicsMapResources_ptsz",
		"cuMulticastAddDevice",
		"cuMulticastBindMem",
		"cuMulticastBindAddr",
		"cuMulticastUnbind",
	};

	for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
		if (!strcmp(name, harmless[i]))
			return true;
	return strstr(name, "Get") != NULL;
}

/* Whether a name looks like a call that obtains, gives back or moves memory. These prefixes are
 * what cuda.h calls its memory, array, pool and sharing families. */
static inline bool vt_name_is_memory_call(const char *name)
{
	static const char *const families[] = {
		"cuMem",
		"cuArray",
		"cuMipmappedArray",
		"cuIpcOpenMem",
		"cuIpcCloseMem",
		"cuMulticast",
		"cuImportExternalMemory",
		"cuDestroyExternalMemory",
		"cuExternalMemory",
		"cuGraphicsMap",
		"cuGraphAddMemAlloc",
		"cuGraphAddMemFree",
	};

	if (vt_name_moves_nothing(name))
		return false;
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (!strncmp(name, families[i], strlen(families[i])))
			return true;
	return false;
}

#endif
