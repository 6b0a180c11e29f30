/* Address ranges in an array, sorted once, found by binary search; ranges may overlap. */
#ifndef VRAMTRACE_SYMBOL_SPAN_H
#define VRAMTRACE_SYMBOL_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
	uint64_t start;
	uint64_t end;	/* first address after it */
	uint64_t reach; /* the greatest end of this and all spans before it; set by span_list_index
			 */
	union {
		const void *what;
		uint64_t number;
	};
	bool guessed; /* its end is only known from what follows it */
};

/* A growing array of spans. All zero is an empty one. */
struct span_list {
	struct span *items;
	size_t n_items;
	size_t n_room;
};

/* Appends span. Returns false when out of memory; the list is then as it was. */
bool span_list_add(struct span_list *list, const struct span *span);

/* Sorts by start; order among equal starts: as compare says, or any when it is NULL. */
void span_list_sort(
	struct span_list *list, int (*compare)(const struct span *, const struct span *));

/* Makes a sorted list ready for span_list_next, once its ends are final. */
void span_list_index(struct span_list *list);

/* Frees the items; the list is empty afterwards. */
void span_list_release(struct span_list *list);

/*
 * Steps through the spans of an indexed list that hold address, from the one that starts last to
 * the one that starts first. *position is list->n_items for the first call. Returns NULL when there
 * is no further one.
 */
const struct span *span_list_next(const struct span_list *list, uint64_t address, size_t *position);

#endif
