/* Python's pickle, protocol 2, in the opcodes that PyTorch's viewer reads; written as it is made.
 */
#ifndef VRAMTRACE_OUTPUT_PICKLER_H
#define VRAMTRACE_OUTPUT_PICKLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "output/intern.h"

/* A list that is being filled, in batches: readers take each in one call. */
struct pickler_list {
	size_t n_batch; /* items since the last batch */
};

struct pickler {
	FILE *out;
	struct intern_table texts; /* that have been written, with their numbers in the memo */
	uint32_t *text_memos;
	size_t texts_room;
	uint32_t n_memos;
};

void pickler_begin(struct pickler *pickler, FILE *out);
void pickler_end(struct pickler *pickler);

void pickler_bool(struct pickler *pickler, bool value);
void pickler_integer(struct pickler *pickler, int64_t value);
void pickler_real(struct pickler *pickler, double value);

/* A text in UTF-8, in whole only the first time. */
void pickler_text(struct pickler *pickler, const char *text);

/* Two integers. */
void pickler_pair(struct pickler *pickler, int64_t first, int64_t second);

/* What has just been written gets a number; and is written again by it. */
uint32_t pickler_keep(struct pickler *pickler);
void pickler_again(struct pickler *pickler, uint32_t memo);

/* A dict: keys and values in turn between the two. */
void pickler_open_dict(struct pickler *pickler);
void pickler_close_dict(struct pickler *pickler);

/* A list: pickler_item before each item. */
void pickler_open_list(struct pickler *pickler, struct pickler_list *list);
void pickler_item(struct pickler *pickler, struct pickler_list *list);
void pickler_close_list(struct pickler *pickler, struct pickler_list *list);

/* A key of the open dict with its value. */
void pickler_key_text(struct pickler *pickler, const char *key, const char *value);
void pickler_key_integer(struct pickler *pickler, const char *key, int64_t value);
void pickler_key_bool(struct pickler *pickler, const char *key, bool value);

#endif
