/*
 * NVTX, NVIDIA's library-less way to annotate programs: a program that uses it opens the library
 * that NVTX_INJECTION64_PATH names, calls its InitializeInjectionNvtx2, and is given functions for
 * what it annotates. When that library is this one, marks and ranges become marks and phases.
 * Names, categories and resources are not taken: NVTX then leaves those calls empty.
 *
 * The interface is part of NVTX 3's headers (nvtxDetail/nvtxTypes.h) and of older libnvToolsExt; it
 * is declared here as far as it is used, so that no such header is needed.
 */
#ifndef VRAMTRACE_HOOKS_NVTX_H
#define VRAMTRACE_HOOKS_NVTX_H

#include <stddef.h>
#include <stdint.h>

/* Tables that the program gives out, by number; NULL: it has no such table. */
typedef const void *nvtx_get_table(uint32_t table);

#define NVTX_TABLE_CALLBACKS 1u

typedef void nvtx_function(void);

/* The table NVTX_TABLE_CALLBACKS. get_module gives the places of the function pointers of a module;
 * 0: there is no such module. */
struct nvtx_callbacks {
	size_t struct_bytes;
	int (*get_module)(int module, nvtx_function ***places[], unsigned int *n_places);
};

/* Called by NVTX, with its own lock, in the first annotation of each module of the program.
 * Returns 1, or 0 when NVTX is of a form not known here: then it is as if this library were not
 * there. */
int InitializeInjectionNvtx2(nvtx_get_table *get_table);

/* In a forked child: whoever held the lock is gone. */
void nvtx_forget(void);

#endif
