#include <stdlib.h>

#include "symbol/span.h"

bool span_list_add(struct span_list *list, const struct span *span)
{
	if (list->n_items == list->n_room) {
		size_t n_room = list->n_room ? list->n_room * 2 : 64;
		struct span *items = reallocarray(list->items, n_room, sizeof(*items));

		if (!items)
			return false;
		list->items = items;
		list->n_room = n_room;
	}
	list->items[list->n_items++] = *span;
	return true;
}

typedef int (*span_compare)(const struct span *, const struct span *);

static int compare_spans(const void *a, const void *b, void *compare)
{
	const struct span *x = a, *y = b;
	span_compare *ties = compare;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return *ties ? (*ties)(x, y) : 0;
}

void span_list_sort(struct span_list *list, span_compare compare)
{
	if (list->n_items)
		qsort_r(list->items, list->n_items, sizeof(*list->items), compare_spans, &compare);
}

void span_list_index(struct span_list *list)
{
	uint64_t reach = 0;

	for (size_t i = 0; i < list->n_items; i++) {
		if (list->items[i].end > reach)
			reach = list->items[i].end;
		list->items[i].reach = reach;
	}
}

void span_list_release(struct span_list *list)
{
	free(list->items);
	*list = (struct span_list){0};
}

/* How many spans start at or before address. */
static size_t count_before(const struct span_list *list, uint64_t address)
{
	size_t low = 0, high = list->n_items;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct span *span_list_next(const struct span_list *list, uint64_t address, size_t *position)
{
	size_t i = *position;

	if (i == list->n_items)
		i = count_before(list, address);
	while (i-- > 0 && list->items[i].reach > address) {
		if (list->items[i].end > address) {
			*position = i;
			return &list->items[i];
		}
	}
	*position = 0;
	return NULL;
}
