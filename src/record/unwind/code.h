/*
 * The code that is loaded: what is known about an address of it, and until when. What was found out
 * holds while code_word() stays the same; it changes when code goes that rows came from, and before
 * that it says that code may be going.
 */
#ifndef VRAMTRACE_RECORD_UNWIND_CODE_H
#define VRAMTRACE_RECORD_UNWIND_CODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The word: generation << CODE_CLOSERS_BITS | threads inside dlclose. */
#define CODE_CLOSERS_BITS 16
#define CODE_CLOSERS	  ((1u << CODE_CLOSERS_BITS) - 1)

/* Never 0. */
extern _Atomic uint64_t code_word;

/* Asks libc for what it has; calls the loader. */
void code_init(void);

/* The row (row.h) of the code at pc: a return address less one, or an interrupted instruction. May
 * take the loader's lock. */
uint32_t code_row(uint64_t pc);

/* Whether a call stands before pc, as before every return address. Other numbers hardly ever pass.
 */
bool code_is_after_call(uint64_t pc);

/* In a forked child: a fresh lock, and only this thread inside dlclose. */
void code_forget(void);

#endif
