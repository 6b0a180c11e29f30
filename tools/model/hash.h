/* uthash, with a program's end where there is no memory. */
#ifndef VRAMTRACE_MODEL_HASH_H
#define VRAMTRACE_MODEL_HASH_H

#include "model/memory.h"
#define uthash_fatal(message) memory_exhausted()
#include <uthash.h>

#endif
