/*
 * Reads a Python pickle that holds nothing but plain values: None, booleans, numbers, text, lists,
 * tuples and dictionaries. Whatever would make Python call something is refused, so nothing in the
 * file can do more than be wrong. Protocols 2 to 5. Memory taken is at most some 50 times the
 * file's size.
 */
#ifndef VRAMTRACE_ANALYSIS_PICKLE_H
#define VRAMTRACE_ANALYSIS_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pickle_kind {
	PICKLE_NONE,
	PICKLE_BOOL,
	PICKLE_INTEGER, /* of 64 bits, those above INT64_MAX as their two's complement */
	PICKLE_REAL,
	PICKLE_TEXT,
	PICKLE_LIST, /* tuples, too */
	PICKLE_DICT,
};

struct pickle_value {
	enum pickle_kind kind;
	union {
		int64_t integer; /* PICKLE_BOOL: 0 or 1 */
		double real;
		struct {
			const char *text; /* in the file's bytes, not ended by 0 */
			size_t text_bytes;
		};
		/* PICKLE_LIST: its items; PICKLE_DICT: key, value, key, value ... They may be
		 * shared, and a list may hold itself: follow them to a fixed depth only. */
		struct {
			struct pickle_value **items;
			size_t n_items, room;
		};
	};
};

struct pickle_slab;

struct pickle {
	const struct pickle_value *root; /* NULL: it could not be read */
	const char *problem;		 /* then: why, a sentence without a stop */
	size_t at;			 /* the byte where that was seen */
	struct pickle_slab *slabs;	 /* all values */
};

/* Whether the first bytes of a file, at least 2, look like a pickle's. */
bool pickle_look(const uint8_t *data, size_t bytes);

/* Reads data, which must stay as long as the pickle. Release it with pickle_release, also when it
 * could not be read. */
void pickle_read(struct pickle *pickle, const uint8_t *data, size_t bytes);
void pickle_release(struct pickle *pickle);

/* The value of a dictionary's key; NULL when there is none, or value is no dictionary or NULL. */
const struct pickle_value *pickle_get(const struct pickle_value *value, const char *key);

/* Item i of a list; NULL when there is none, or value is no list or NULL. */
const struct pickle_value *pickle_item(const struct pickle_value *value, size_t i);

/* Whether value is just this text. */
bool pickle_is_text(const struct pickle_value *value, const char *text);

/* An integer or boolean; else `otherwise`. */
int64_t pickle_integer(const struct pickle_value *value, int64_t otherwise);

#endif
