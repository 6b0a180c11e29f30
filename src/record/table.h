/*
 * uthash as the recorder uses it; the only file that includes it. A function that adds or deletes
 * has in scope struct arena *arena   memory of the table, guarded by the table's lock bool added
 * set true before HASH_ADD*; false after it when there was no memory
 */
#ifndef VRAMTRACE_RECORD_TABLE_H
#define VRAMTRACE_RECORD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "record/arena.h"

/* Multiply-and-fold over 64-bit words; keys are whole words of addresses, which Jenkins' bytewise
 * hash would slow down. */
static inline unsigned int table_hash(const void *key, size_t bytes)
{
	const unsigned char *p = key;
	uint64_t hash = bytes;

	for (; bytes >= 8; p += 8, bytes -= 8) {
		uint64_t word;

		memcpy(&word, p, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	for (; bytes; p++, bytes--)
		hash = (hash ^ *p) * 0x9e3779b97f4a7c15u;
	return (unsigned int)(hash ^ (hash >> 29));
}

#define HASH_NONFATAL_OOM		   1
#define uthash_nonfatal_oom(added_element) ((void)(added_element), (void)(added = false))
#define uthash_malloc(bytes)		   arena_alloc(arena, bytes)
#define uthash_free(piece, bytes)	   arena_free(arena, piece, bytes)
#define HASH_FUNCTION(key, length, value)  ((value) = table_hash(key, length))

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <uthash.h>
#pragma GCC diagnostic pop

#endif
