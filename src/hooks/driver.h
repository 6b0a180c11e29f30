/*
 * The real driver: where its entry points are, and which wrapper stands for which. Everything is
 * expanded from driver.def.
 *
 * Finding them takes no lock and may be done by several threads at once: all store the same values.
 */
#ifndef VRAMTRACE_HOOKS_DRIVER_H
#define VRAMTRACE_HOOKS_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "hooks/cuda_api.h"

/* Rows by number: what trace records call api_id. */
enum driver_api {
#define ROW(export, name, version, stream, family, effect) API_##export,
#include "hooks/driver.def"
	DRIVER_N_ROWS
};

#define DRIVER_N_LAUNCHED 256u

/* The originals, typed as the vendor declares them. NULL: not found yet, or not in this driver. */
struct driver {
#define ROW(export, name, version, stream, family, effect) _Atomic(__typeof__(&(export))) export;
#include "hooks/driver.def"
	/* Kernels launched before, by hash. Here, because a launch is to touch one page of data. */
	_Atomic(CUfunction) launched[DRIVER_N_LAUNCHED];
#define USE(export) _Atomic(__typeof__(&(export))) export;
#include "hooks/driver_used.def"
} __attribute__((aligned(4096)));

_Static_assert(offsetof(struct driver, launched) + sizeof(((struct driver *)0)->launched) <= 4096,
	"originals and recent kernels share a page");

extern struct driver driver;

/* The original of an export, looked for once more if it was not there before. NULL if the driver
 * has none. Keeps errno. */
#define DRIVER_ORIGINAL(export)                                                                    \
	({                                                                                         \
		__typeof__(&(export)) original_ =                                                  \
			atomic_load_explicit(&driver.export, memory_order_acquire);                \
		if (__builtin_expect(!original_, 0)) {                                             \
			driver_find();                                                             \
			original_ = atomic_load_explicit(&driver.export, memory_order_acquire);    \
		}                                                                                  \
		original_;                                                                         \
	})

/* Looks for the loaded libcuda.so.1 and its entry points. Keeps errno. */
void driver_find(void);

/* True when a libcuda is loaded and known. */
bool driver_is_known(void);

/* Whether name is one of the wrapped exports. */
bool driver_has_row(const char *name);

/* What to hand out for a function that a look-up of name found at address: its wrapper if it is an
 * entry point of the driver that has one, else address itself. A memory call without a wrapper is
 * noted for the report. */
void *driver_substitute(const char *name, void *address);

/* Whether address lies inside the driver's library. */
bool driver_contains(const void *address);

/* Path of the driver's library, "" while unknown. */
const char *driver_path(void);

#endif
