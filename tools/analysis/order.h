/* For qsort. */
#ifndef VRAMTRACE_ANALYSIS_ORDER_H
#define VRAMTRACE_ANALYSIS_ORDER_H

#include <stdint.h>

/* Less than, equal to or greater than 0, as a is to b. */
static inline int order_of(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

#endif
