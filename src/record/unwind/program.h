/* The instructions of an FDE: how the registers that matter are found at one address. */
#ifndef VRAMTRACE_RECORD_UNWIND_PROGRAM_H
#define VRAMTRACE_RECORD_UNWIND_PROGRAM_H

#include <stdint.h>

#include "record/unwind/bytes.h"

/* Column of the return address on x86-64. */
#define PROGRAM_RETURN_ADDRESS 16

/* What the FDEs of one CIE have in common. */
struct program_common {
	struct bytes instructions;
	uint64_t code_align;
	int64_t data_align;
	bool is_signal; /* a signal handler's return */
};

/* The row (row.h) at pc of the function that begins at begin and has these instructions. */
uint32_t program_row(const struct program_common *common, struct bytes instructions, uint64_t begin,
	uint64_t pc);

#endif
