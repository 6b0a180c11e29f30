/* From an object's .eh_frame to the row of one address. Reads nothing outside the object, calls
 * nothing, allocates nothing. */
#ifndef VRAMTRACE_RECORD_UNWIND_CFI_H
#define VRAMTRACE_RECORD_UNWIND_CFI_H

#include <stdint.h>

/* A loaded object. */
struct cfi_object {
	uint64_t start, end;  /* where it is mapped */
	const uint8_t *index; /* its .eh_frame_hdr; NULL: it has none */
};

/* The row (row.h) of the code at pc, an address inside the object. ROW_NONE when nothing covers it,
 * ROW_BAD when what covers it is anything out of the ordinary. */
uint32_t cfi_row(const struct cfi_object *object, uint64_t pc);

#endif
