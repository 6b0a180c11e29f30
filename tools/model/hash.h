/* uthash, with a program's end where there is no memory, and a hash function for short keys. */
#ifndef VRAMTRACE_MODEL_HASH_H
#define VRAMTRACE_MODEL_HASH_H

#include <stdint.h>
#include <string.h>

#include "model/memory.h"

/* The keys of a trace's replay are a few words that are looked up at each record: one
 * multiplication a word takes a fraction of uthash's own function. */
static inline unsigned int hash_of(const void *key, size_t bytes)
{
	const uint64_t odd = 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio */
	const unsigned char *at = key;
	uint64_t hash = bytes;

	while (bytes) {
		uint64_t word = 0;
		size_t n = bytes < sizeof(word) ? bytes : sizeof(word);

		memcpy(&word, at, n);
		hash = (hash ^ word) * odd;
		hash ^= hash >> 32;
		at += n;
		bytes -= n;
	}
	return (unsigned int)hash;
}

#define HASH_FUNCTION(key, bytes, hash) ((hash) = hash_of(key, bytes))
#define uthash_fatal(message)		memory_exhausted()
#include <uthash.h>

#endif
