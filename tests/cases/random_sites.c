/* Copies from several call sites, each of which counts what it copied: the truth that the sums by
 * call stack are compared with. */
#include <stdatomic.h>
#include <stdio.h>

#include "random_program.h"

#define N_SITES 8

static struct {
	_Atomic u64 n, bytes;
} counted[N_SITES];

/* Something is done after the call, so that the site has a frame of its own. */
#define SITE(i)                                                                                    \
	__attribute__((noinline)) static int copy_site_##i(unsigned form, const struct copy *c)    \
	{                                                                                          \
		int error = route.copy(form, c);                                                   \
                                                                                                   \
		if (!error) {                                                                      \
			atomic_fetch_add(&counted[i].n, 1);                                        \
			atomic_fetch_add(&counted[i].bytes, c->bytes);                             \
		}                                                                                  \
		return error;                                                                      \
	}

SITE(0)
SITE(1)
SITE(2)
SITE(3)
SITE(4)
SITE(5)
SITE(6)
SITE(7)

int thread_copy(struct thread *t, const struct copy *c)
{
	static int (*const sites[N_SITES])(unsigned form, const struct copy *c) = {copy_site_0,
		copy_site_1, copy_site_2, copy_site_3, copy_site_4, copy_site_5, copy_site_6,
		copy_site_7};

	return sites[thread_below(t, N_SITES)](thread_form(t), c);
}

void sites_print(void)
{
	for (int i = 0; i < N_SITES; i++)
		printf("copy_site_%d %llu %llu\n", i, (unsigned long long)counted[i].n,
			(unsigned long long)counted[i].bytes);
}
