#include "analysis/fragmentation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/fragmentation_parts.h"
#include "analysis/order.h"
#include "model/memory.h"

/* Worth a word is what makes this part of what is reserved, and that part of the device or as much
 * as was refused. */
#define RESERVED_PART 20u
#define DEVICE_PART   100u

struct pin_site {
	uint64_t stack_id;
	struct fragmentation_pinner pinner;
	uint64_t here_bytes; /* live in this container */
	uint64_t here_count;
	struct fragmentation_holder here_smallest;
	uint64_t here_first_ns;
	UT_hash_handle hh;
};

void pin_book_begin(struct pin_book *book)
{
	book->n_here = 0;
}

static struct pin_site *site_of(struct pin_book *book, uint64_t stack_id)
{
	struct pin_site *site;

	HASH_FIND(hh, book->sites, &stack_id, sizeof(stack_id), site);
	if (site)
		return site;
	site = memory_new(1, sizeof(*site));
	site->stack_id = stack_id;
	HASH_ADD(hh, book->sites, stack_id, sizeof(site->stack_id), site);
	return site;
}

void pin_book_add(struct pin_book *book, const struct fragmentation_holder *block)
{
	struct pin_site *site = site_of(book, block->stack_id);
	bool first = !site->here_count;

	if (first) {
		book->here =
			memory_grow(book->here, book->n_here, &book->room, sizeof(*book->here));
		book->here[book->n_here++] = site;
	}
	site->here_count++;
	site->here_bytes += block->bytes;
	if (first || block->bytes < site->here_smallest.bytes)
		site->here_smallest = *block;
	if (first || block->time_ns < site->here_first_ns)
		site->here_first_ns = block->time_ns;
}

static void charge(struct pin_site *site, uint64_t idle_bytes, bool alone)
{
	struct fragmentation_pinner *pinner = &site->pinner;
	bool first = !pinner->count;

	pinner->stack_id = site->stack_id;
	if (first || site->here_smallest.bytes < pinner->bytes) {
		pinner->address = site->here_smallest.address;
		pinner->bytes = site->here_smallest.bytes;
	}
	if (first || site->here_first_ns < pinner->first_ns)
		pinner->first_ns = site->here_first_ns;
	pinner->count += site->here_count;
	pinner->live_bytes += site->here_bytes;
	*(alone ? &pinner->pins_bytes : &pinner->shared_bytes) += idle_bytes;
}

void pin_book_end(struct pin_book *book, uint64_t idle_bytes)
{
	for (size_t i = 0; i < book->n_here; i++) {
		if (idle_bytes)
			charge(book->here[i], idle_bytes, book->n_here == 1);
		book->here[i]->here_count = 0;
		book->here[i]->here_bytes = 0;
	}
}

static int compare_pinners(const void *a, const void *b)
{
	const struct fragmentation_pinner *x = a, *y = b;
	int order = order_of(y->pins_bytes, x->pins_bytes);

	if (!order)
		order = order_of(y->shared_bytes, x->shared_bytes);
	return order ? order : order_of(x->stack_id, y->stack_id);
}

/* Less than this part of all is little. */
#define LITTLE_PART 64u

static double held_back_for_each(const struct fragmentation_pinner *pinner)
{
	return (double)(pinner->pins_bytes + pinner->shared_bytes) /
	       (double)(pinner->live_bytes ? pinner->live_bytes : 1);
}

static int compare_by_ratio(const void *a, const void *b, void *pinned_bytes)
{
	const struct fragmentation_pinner *x = a, *y = b;
	uint64_t little = *(const uint64_t *)pinned_bytes / LITTLE_PART;
	int much = (y->pins_bytes + y->shared_bytes > little) -
		   (x->pins_bytes + x->shared_bytes > little);
	double of_x = held_back_for_each(x), of_y = held_back_for_each(y);

	if (much)
		return much;
	return of_x != of_y ? (of_y > of_x) - (of_y < of_x) : compare_pinners(a, b);
}

void pin_book_finish(struct pin_book *book, struct fragmentation_row *row)
{
	while (book->sites) {
		struct pin_site *site = book->sites;

		if (site->pinner.count) {
			row->pinners = memory_grow(row->pinners, row->n_pinners, &row->pinner_room,
				sizeof(*row->pinners));
			row->pinners[row->n_pinners++] = site->pinner;
		}
		HASH_DEL(book->sites, site);
		free(site);
	}
	free(book->here);
	*book = (struct pin_book){0};
	if (row->n_pinners && row->level == FRAGMENTATION_FRAMEWORK)
		qsort_r(row->pinners, row->n_pinners, sizeof(*row->pinners), compare_by_ratio,
			&row->pinned_bytes);
	else if (row->n_pinners)
		qsort(row->pinners, row->n_pinners, sizeof(*row->pinners), compare_pinners);
}

struct fragmentation_row *fragmentation_new_row(
	struct fragmentation *list, const struct fragmentation_row *blank)
{
	list->rows = memory_grow(list->rows, list->n_rows, &list->room, sizeof(*list->rows));
	list->rows[list->n_rows] = *blank;
	return &list->rows[list->n_rows++];
}

bool fragmentation_matters(
	const struct fragmentation_row *row, const struct model_device *device, uint64_t bytes)
{
	if (!bytes || bytes < row->reserved_bytes / RESERVED_PART)
		return false;
	return bytes >= device->total_bytes / DEVICE_PART ||
	       (row->refused_bytes && bytes >= row->refused_bytes);
}

void fragmentation_add(struct fragmentation *list, const struct model *model, int ordinal,
	const char *at, uint64_t time_ns, uint64_t refused_bytes, const struct requests *requests)
{
	const struct model_device *device = model_device_find(model, ordinal);
	struct fragmentation_row blank = {
		.time_ns = time_ns, .device = ordinal, .refused_bytes = refused_bytes};

	if (!device)
		return;
	blank.page_bytes = device->page_bytes;
	snprintf(blank.at, sizeof(blank.at), "%s", at);
	fragmentation_add_driver(list, &blank, model, device);
	fragmentation_add_pools(list, &blank, model, device);
	fragmentation_add_blocks(list, &blank, model, device, requests);
}

static void release_row(struct fragmentation_row *row)
{
	free(row->holes);
	free(row->pending);
	free(row->pinners);
	free(row->segments);
}

static void filter_row(struct fragmentation_row *row, const struct site_filter *filter)
{
	size_t kept = 0;

	for (size_t i = 0; i < row->n_pinners; i++)
		if (row->pinners[i].pins_bytes + row->pinners[i].shared_bytes >= filter->min_bytes)
			row->pinners[kept++] = row->pinners[i];
	row->n_pinners = kept;
	if (filter->limit && kept > filter->limit) {
		row->n_pinners_left_out = kept - filter->limit;
		row->n_pinners = filter->limit;
	}
	kept = 0;
	for (size_t i = 0; i < row->n_segments; i++)
		if (row->segments[i].idle_bytes >= filter->min_bytes)
			row->segments[kept++] = row->segments[i];
	row->n_segments = kept;
	if (filter->limit && kept > filter->limit) {
		row->n_segments_left_out = kept - filter->limit;
		row->n_segments = filter->limit;
	}
}

void fragmentation_filter(struct fragmentation *list, const struct site_filter *filter)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n_rows; i++) {
		if (filter->one_device && list->rows[i].device != filter->device) {
			release_row(&list->rows[i]);
			continue;
		}
		filter_row(&list->rows[i], filter);
		list->rows[kept++] = list->rows[i];
	}
	list->n_rows = kept;
}

const char *fragmentation_verdict_name(enum fragmentation_verdict verdict)
{
	static const char *const names[] = {
		[FRAGMENTATION_PINNED] = "pinned",
		[FRAGMENTATION_DRIFT] = "size_drift",
		[FRAGMENTATION_CACHED] = "cached",
		[FRAGMENTATION_PENDING] = "pending",
		[FRAGMENTATION_ROUNDING] = "rounding",
	};

	return names[verdict];
}

void fragmentation_release(struct fragmentation *list)
{
	for (size_t i = 0; i < list->n_rows; i++)
		release_row(&list->rows[i]);
	free(list->rows);
	*list = (struct fragmentation){0};
}
