/* The driver API, found by dlopen and dlsym of every explicit name, each where it is called first.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *find(const char *name)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	void *address = driver ? dlsym(driver, name) : NULL;

	if (!address) {
		fprintf(stderr, "random_calls: no %s: %s\n", name, dlerror());
		exit(2);
	}
	return address;
}

#define ROUTE_NAME "dlsym"
#define CU(export)                                                                                 \
	({                                                                                         \
		static void *found;                                                                \
		void *address_ = __atomic_load_n(&found, __ATOMIC_RELAXED);                        \
                                                                                                   \
		if (!address_) {                                                                   \
			address_ = find(#export);                                                  \
			__atomic_store_n(&found, address_, __ATOMIC_RELAXED);                      \
		}                                                                                  \
		(__typeof__(&export))address_;                                                     \
	})
#include "random_driver.h"
