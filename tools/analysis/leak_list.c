/* Lists of leaks: sorted, filtered, without what is suppressed. */
#include <stdlib.h>

#include "analysis/leak_parts.h"
#include "analysis/order.h"
#include "model/memory.h"

struct leak *leak_new(struct leak_list *list)
{
	list->items = memory_grow(list->items, list->n_items, &list->room, sizeof(*list->items));
	return &list->items[list->n_items++];
}

static int compare_leaks(const void *a, const void *b)
{
	const struct leak *x = a, *y = b;
	int order = (x->verdict == LEAK_FREED_AT_TEARDOWN) - (y->verdict == LEAK_FREED_AT_TEARDOWN);

	if (!order)
		order = y->grows - x->grows;
	if (!order)
		order = order_of(y->rate_bytes_per_s, x->rate_bytes_per_s);
	return order ? order : site_row_compare(&x->row, &y->row);
}

void leak_list_sort(struct leak_list *list)
{
	if (list->n_items)
		qsort(list->items, list->n_items, sizeof(*list->items), compare_leaks);
}

void leak_list_take(struct leak_list *list, const struct site_list *rows)
{
	for (size_t i = 0; i < rows->n_rows; i++) {
		const struct site_row *row = &rows->rows[i];

		*leak_new(list) = (struct leak){.row = *row,
			.verdict = row->teardown	     ? LEAK_FREED_AT_TEARDOWN
				   : row->level == SITE_IDLE ? LEAK_CACHE
							     : LEAK_NONE};
	}
}

static void filter_owners(struct leak_list *list, const struct site_filter *filter)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n_owners; i++)
		if (!filter->one_device || list->owners[i].device == filter->device)
			list->owners[kept++] = list->owners[i];
	list->n_owners = kept;
}

void leak_list_filter(struct leak_list *list, const struct site_filter *filter)
{
	size_t kept = 0, n_counted = 0;

	for (size_t i = 0; i < list->n_items; i++) {
		const struct site_row *row = &list->items[i].row;

		if ((filter->one_device && row->device != filter->device) ||
			row->bytes < filter->min_bytes)
			continue;
		if (filter->limit && n_counted == filter->limit) {
			list->n_left_out++;
			list->left_out_bytes += row->bytes;
			continue;
		}
		n_counted += !list->items[i].suppressed_by;
		list->items[kept++] = list->items[i];
	}
	list->n_items = kept;
	filter_owners(list, filter);
}

static void count_suppressed(
	struct leak_list *list, const char *pattern, bool built_in, uint64_t bytes)
{
	size_t i = 0;

	while (i < list->n_suppressions && list->suppressions[i].pattern != pattern)
		i++;
	if (i == list->n_suppressions) {
		list->suppressions = memory_grow(list->suppressions, list->n_suppressions,
			&list->suppressions_room, sizeof(*list->suppressions));
		list->suppressions[list->n_suppressions++] =
			(struct leak_suppression){.pattern = pattern, .built_in = built_in};
	}
	list->suppressions[i].n_sites++;
	list->suppressions[i].bytes += bytes;
}

void leak_list_suppress(
	struct leak_list *list, const struct model *model, const struct leak_suppressor *suppressor)
{
	for (size_t i = 0; i < list->n_items; i++) {
		struct leak *leak = &list->items[i];
		bool built_in = false;

		if (leak->row.level == SITE_IDLE)
			continue;
		leak->suppressed_by = suppressor->match(
			suppressor->user, model, leak->row.stack_id, leak->grows, &built_in);
		if (leak->suppressed_by)
			count_suppressed(list, leak->suppressed_by, built_in, leak->row.bytes);
	}
}

bool leak_is_leak(const struct leak *leak)
{
	if (leak->verdict == LEAK_FREED_AT_TEARDOWN || leak->suppressed_by)
		return false;
	return leak->grows || leak->verdict == LEAK_RETAINED_BY_FAILURE ||
	       (leak->verdict == LEAK_NONE && !leak->in_use && leak->row.kind != VT_KIND_SHARED);
}

const char *leak_verdict_name(enum leak_verdict verdict)
{
	static const char *const names[] = {
		[LEAK_NONE] = NULL,
		[LEAK_GROWING] = "growing",
		[LEAK_PER_THREAD] = "per_thread",
		[LEAK_RETAINED_BY_FAILURE] = "retained_by_failure",
		[LEAK_BURSTS] = "bursts",
		[LEAK_SATURATING] = "saturating",
		[LEAK_ONE_TIME] = "one_time",
		[LEAK_CACHE] = "cache",
		[LEAK_FREED_AT_TEARDOWN] = "freed_at_teardown",
	};

	return names[verdict];
}

void leak_list_release(struct leak_list *list)
{
	free(list->items);
	free(list->suppressions);
	free(list->owners);
	*list = (struct leak_list){0};
}
