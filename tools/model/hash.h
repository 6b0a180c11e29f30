/* uthash, with a program's end where there is no memory, and a hash function for short keys. */
#ifndef VRAMTRACE_MODEL_HASH_H
#define VRAMTRACE_MODEL_HASH_H

#include <stdint.h>
#include <string.h>

#include "model/memory.h"

/* The keys of a trace's replay are a few words that are looked up at each record: one
 * multiplication a word takes a fraction of uthash's own function. */
static inline __attribute__((always_inline)) unsigned int hash_of(const void *key, size_t bytes)
{
	const uint64_t odd = 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio */
	const unsigned char *at = key;
	uint64_t hash = bytes, word;

	for (; bytes >= sizeof(word); bytes -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ word) * odd;
		hash ^= hash >> 32;
	}
	if (bytes) {
		word = 0;
		memcpy(&word, at, bytes);
		hash = (hash ^ word) * odd;
		hash ^= hash >> 32;
	}
	return (unsigned int)hash;
}

/* What was found last for a hash: most look-ups repeat, and it takes fewer cache misses to see so
 * than to go through the table. */
#define HASH_N_NEAR	       4096u /* of an array of pointers to items */
#define HASH_NEAR(items, hash) ((items)[(hash) % HASH_N_NEAR])

/* The same for what is of one call stack, without a hash: stacks are numbered one after the other,
 * so that those in use share cache lines. also: what else the key has, in small numbers. */
#define HASH_NEAR_STACK(items, stack_id, also) ((items)[((stack_id) + 64u * (also)) % HASH_N_NEAR])

#define HASH_FUNCTION(key, bytes, hash) ((hash) = hash_of(key, bytes))
#define uthash_fatal(message)		memory_exhausted()
#include <uthash.h>

#endif
