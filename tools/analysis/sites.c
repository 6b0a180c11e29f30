#include "analysis/sites.h"

#include <stdlib.h>

#include "analysis/order.h"
#include "model/memory.h"

static void add(struct site_list *list, const struct model_site *site, bool teardown)
{
	list->rows = memory_grow(list->rows, list->n_rows, &list->room, sizeof(*list->rows));
	list->rows[list->n_rows++] = (struct site_row){
		.stack_id = site->key.stack_id,
		.device = site->key.device,
		.kind = site->key.kind,
		.bytes = teardown ? site->teardown_bytes : site->live_bytes,
		.count = teardown ? site->n_teardown : site->n_live,
		.first_ns = site->first_ns,
		.last_ns = site->last_ns,
		.n_threads = site->n_tids,
		.teardown = teardown,
	};
}

void site_list_add_live(struct site_list *list, const struct model *model)
{
	for (const struct model_site *site = model->sites; site; site = site->hh.next)
		if (site->n_live)
			add(list, site, false);
}

void site_list_add_teardown(struct site_list *list, const struct model *model)
{
	for (const struct model_site *site = model->sites; site; site = site->hh.next)
		if (site->n_teardown)
			add(list, site, true);
}

void site_list_append(struct site_list *list, const struct site_list *other)
{
	for (size_t i = 0; i < other->n_rows; i++) {
		list->rows =
			memory_grow(list->rows, list->n_rows, &list->room, sizeof(*list->rows));
		list->rows[list->n_rows++] = other->rows[i];
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct site_row *x = a, *y = b;
	int order = x->teardown - y->teardown;

	if (!order)
		order = order_of(y->bytes, x->bytes);
	if (!order)
		order = order_of(y->count, x->count);
	/* The rest only so that equal traces give equal reports. */
	if (!order)
		order = order_of(x->first_ns, y->first_ns);
	if (!order)
		order = order_of(x->stack_id, y->stack_id);
	return order ? order : (x->device > y->device) - (x->device < y->device);
}

void site_list_sort(struct site_list *list)
{
	if (list->n_rows)
		qsort(list->rows, list->n_rows, sizeof(*list->rows), compare_rows);
}

void site_list_filter(struct site_list *list, const struct site_filter *filter)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n_rows; i++) {
		const struct site_row *row = &list->rows[i];

		if ((filter->one_device && row->device != filter->device) ||
			row->bytes < filter->min_bytes)
			continue;
		if (filter->limit && kept == filter->limit) {
			list->n_left_out++;
			list->left_out_bytes += row->bytes;
			continue;
		}
		list->rows[kept++] = *row;
	}
	list->n_rows = kept;
}

void site_list_release(struct site_list *list)
{
	free(list->rows);
	*list = (struct site_list){0};
}
