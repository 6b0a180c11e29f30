/* Findings about copies, in words. */
#ifndef VRAMTRACE_OUTPUT_TRANSFER_WORDS_H
#define VRAMTRACE_OUTPUT_TRANSFER_WORDS_H

#include "analysis/transfers.h"
#include "output/stack.h"
#include "output/style.h"

/* "to the device", "back to the host": of enum vt_direction. A constant. */
const char *transfer_where(uint32_t direction);

/* "measured on the device", ...: where a rate comes from. A constant. */
const char *transfer_source_words(enum transfer_source source);

/* Prints "14.2 s lost in 9,120 copies ...", on one line that is not ended; without the stack, and
 * without what to do. */
void transfer_put_finding(const struct style *style, const struct transfers *transfers,
	const struct transfer_finding *finding);

/* What is said of the finding's other stack: "brought back up by"; NULL: it has none. */
const char *transfer_other_words(const struct transfer_finding *finding);

#endif
