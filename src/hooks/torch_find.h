/*
 * Where PyTorch's functions are. The list of loaded objects is walked with a lock of the loader's
 * that is never held over anything else; dlsym and dlopen would wait for other threads'
 * constructors, which may wait for the allocator's lock that the caller holds.
 */
#ifndef VRAMTRACE_HOOKS_TORCH_FIND_H
#define VRAMTRACE_HOOKS_TORCH_FIND_H

#include <stdbool.h>
#include <stdint.h>

enum torch_row {
#define ROW(export) TORCH_##export,
#include "hooks/torch.def"
	TORCH_N_ROWS
};

/* The function behind the recorder's own for the code around caller: that of an object in the
 * folder of the caller's, else the first there is, NULL: none. Keeps errno; fast but for the first
 * time, and for the first time after something was loaded. */
void *torch_original(enum torch_row row, const void *own, const void *caller);

/* Whether name is that of a row. */
bool torch_has_row(const char *name);

/* The library of an allocator. */
struct torch_library {
	uintptr_t start, end;
	void *current_stream; /* c10::cuda::getCurrentCUDAStream, NULL: not found, or of a version
				 whose result is of another shape */
	char path[4096];
	char version[64]; /* as PyTorch's own files have it; "" not known */
};

/* Fills library, all zero before, for the code around caller. */
void torch_library_read(struct torch_library *library, const void *caller);

#endif
