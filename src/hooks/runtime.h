/*
 * The CUDA runtime, whose public names are labels of the driver calls made inside. Bytes come from
 * the driver's wrappers.
 *
 * A process may hold several runtimes, and each caller must get its own: RTLD_NEXT does not find
 * one that a plugin brought along.
 */
#ifndef VRAMTRACE_HOOKS_RUNTIME_H
#define VRAMTRACE_HOOKS_RUNTIME_H

#include <stdbool.h>

/* What trace records call a row of runtime.def: its number after this one, out of reach of the
 * driver's rows. */
#define RUNTIME_FIRST_API 1024u

enum runtime_row {
#define ROW(export, params, args) RUNTIME_##export,
#include "hooks/runtime.def"
	RUNTIME_N_ROWS
};

/* The function that the code around caller would have called. NULL only where no runtime is loaded.
 * Keeps errno; asks the loader the first time, and again after something was opened. */
void *runtime_original(enum runtime_row row, const void *caller);

/* Whether name is that of a row. */
bool runtime_has_row(const char *name);

/* The row's name. */
const char *runtime_name(enum runtime_row row);

#endif
