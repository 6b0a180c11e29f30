/* cuGetProcAddress: a name, a version and a stream kind lead to an export. */
#include "sim.h"

#include <string.h>

enum { NONE, PTDS, PTSZ };

static const struct entry {
	const char *name;
	int version, stream;
	void *address;
} entries[] = {
#define ROW(export, name, version, stream, ...) {#name, version, stream, (void *)export},
#include "hooks/driver.def"
#define ROW(export, name, version, stream) {#name, version, stream, (void *)export},
#include "extra.def"
};

enum found { FOUND, NO_NAME, NO_VERSION };

/* The newest export of the name not newer than asked. Per-thread ones come first for those who ask
 * for them. */
static enum found find(const char *name, int version, bool per_thread, void **out)
{
	const struct entry *best = NULL;
	bool known = false;

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		const struct entry *entry = &entries[i];
		bool better;

		if (strcmp(entry->name, name) || (entry->stream != NONE && !per_thread))
			continue;
		known = true;
		if (entry->version > version)
			continue;
		better = !best || (entry->stream != NONE) > (best->stream != NONE) ||
			 ((entry->stream != NONE) == (best->stream != NONE) &&
				 entry->version > best->version);
		if (better)
			best = entry;
	}
	*out = best ? best->address : NULL;
	return best ? FOUND : known ? NO_VERSION : NO_NAME;
}

static CUresult look_up(
	const char *name, void **out, int version, cuuint64_t flags, enum found *found)
{
	const cuuint64_t both =
		CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

	*found = NO_NAME;
	if (!name || !out || version > SIM_VERSION || version < 0 || (flags & ~both) ||
		flags == both)
		return CUDA_ERROR_INVALID_VALUE;
	*found = find(name, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, out);
	return *found == FOUND ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	enum found found;

	return SIM_CALL(NEED_NOTHING, look_up(symbol, pfn, cudaVersion, flags, &found));
}

#if CUDA_VERSION >= 12000
_Static_assert((int)FOUND == CU_GET_PROC_ADDRESS_SUCCESS, "same order");
_Static_assert((int)NO_NAME == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "same order");
_Static_assert((int)NO_VERSION == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, "same order");

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
	CUdriverProcAddressQueryResult *symbolStatus)
{
	enum found found = NO_NAME;
	CUresult status = SIM_CALL(NEED_NOTHING, look_up(symbol, pfn, cudaVersion, flags, &found));

	if (symbolStatus)
		*symbolStatus = (CUdriverProcAddressQueryResult)found;
	return status;
}
#endif
