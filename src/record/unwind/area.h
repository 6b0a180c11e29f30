/* Which memory can be read. Stacks are walked by rules found in files, which may be wrong: no word
 * is read that might not be there. */
#ifndef VRAMTRACE_RECORD_UNWIND_AREA_H
#define VRAMTRACE_RECORD_UNWIND_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads other threads' and other functions' stack words, which sanitizers would complain of. */
#define AREA_RAW __attribute__((no_sanitize_address, no_sanitize_thread))

/* One thread's own stack, as far as it is known. All zero: not at all. */
struct area {
	uint64_t low, high; /* can be read as long as the thread lives */
	uint64_t foreign;   /* what lies below is another stack: the page here cannot be read */
};

/* Extends what is known of the thread's stack down to at. False when at is on no stack that ends in
 * the thread's own. A few system calls at first, none later. */
bool area_covers(struct area *area, uint64_t at);

/* Whether the page around address can be read. A system call; keeps errno. */
bool area_is_readable(uint64_t address);

/* Copies bytes that may not be there. False when some are not. */
bool area_copy(void *out, uint64_t address, size_t bytes);

#define AREA_PAGE_BYTES 4096u

#endif
