/* What CUresult numbers mean. */
#ifndef VRAMTRACE_OUTPUT_RESULT_H
#define VRAMTRACE_OUTPUT_RESULT_H

#include <stdint.h>

/* CUDA_ERROR_DEINITIALIZED: normal for calls made while the process ends. */
#define RESULT_DEINITIALIZED 4u

/* "CUDA_ERROR_OUT_OF_MEMORY"; NULL for numbers without a name here. A constant. */
const char *result_name(uint64_t result);

/* "out of memory"; NULL for numbers without a text here. A constant. */
const char *result_text(uint64_t result);

#endif
