#include "analysis/sites.h"

#include <stdlib.h>

#include "analysis/order.h"
#include "model/blocks.h"
#include "model/memory.h"

static struct site_row *row_new(struct site_list *list)
{
	list->rows = memory_grow(list->rows, list->n_rows, &list->room, sizeof(*list->rows));
	return &list->rows[list->n_rows++];
}

static uint64_t less(uint64_t from, uint64_t part)
{
	return from > part ? from - part : 0;
}

static void add(struct site_list *list, const struct model_site *site, bool teardown)
{
	*row_new(list) = (struct site_row){
		.stack_id = site->key.stack_id,
		.device = site->key.device,
		.kind = site->key.kind,
		.level = site->key.allocator_id ? SITE_BLOCK : SITE_DRIVER,
		.allocator_id = site->key.allocator_id,
		.bytes = teardown ? site->teardown_bytes
				  : less(site->live_bytes, site->segment_bytes),
		.count = teardown ? site->n_teardown : less(site->n_live, site->n_segments),
		.first_ns = site->first_ns,
		.last_ns = site->last_ns,
		.n_threads = site->n_tids,
		.teardown = teardown,
	};
}

/* What an allocator keeps for blocks to come, or until a stream is done. */
static void add_idle(struct site_list *list, const struct model_allocator *allocator,
	const struct model_holding *holding)
{
	if (holding->segment_bytes <= holding->live_bytes)
		return;
	*row_new(list) = (struct site_row){
		.device = holding->device->ordinal,
		.kind = holding->kind,
		.level = SITE_IDLE,
		.allocator_id = allocator->allocator_id,
		.bytes = holding->segment_bytes - holding->live_bytes,
		.count = holding->n_segments,
		.first_ns = allocator->first_ns,
		.last_ns = allocator->last_ns,
		.n_threads = 1,
	};
}

void site_list_add_live(struct site_list *list, const struct model *model)
{
	for (const struct model_site *site = model->sites; site; site = site->hh.next)
		if (site->n_live > site->n_segments)
			add(list, site, false);
	for (const struct model_allocator *allocator = model->allocators; allocator;
		allocator = allocator->hh.next)
		for (size_t i = 0; i < allocator->n_holdings; i++)
			add_idle(list, allocator, &allocator->holdings[i]);
}

/* A site whose memory at that peak was not an allocator's, or an allocator's blocks. */
static void add_past(struct site_list *list, const struct model_site *site)
{
	*row_new(list) = (struct site_row){
		.stack_id = site->key.stack_id,
		.device = site->key.device,
		.kind = site->key.kind,
		.level = site->key.allocator_id ? SITE_BLOCK : SITE_DRIVER,
		.allocator_id = site->key.allocator_id,
		.bytes = site->past_peak_bytes,
		.count = site->n_past_peak,
		.first_ns = site->first_ns,
		.last_ns = site->last_ns,
		.n_threads = site->n_tids,
	};
}

void site_list_add_past_peak(struct site_list *list, const struct model *model)
{
	for (const struct model_site *site = model->sites; site; site = site->hh.next)
		if (site->n_past_peak)
			add_past(list, site);
	for (size_t i = 0; i < model->n_past_idle; i++) {
		const struct model_past_idle *idle = &model->past_idle[i];
		const struct model_allocator *allocator =
			model_allocator_find(model, idle->allocator_id);

		if (!idle->bytes)
			continue;
		*row_new(list) = (struct site_row){
			.device = idle->device,
			.kind = idle->kind,
			.level = SITE_IDLE,
			.allocator_id = idle->allocator_id,
			.bytes = idle->bytes,
			.count = idle->n_segments,
			.first_ns = allocator ? allocator->first_ns : 0,
			.last_ns = allocator ? allocator->last_ns : 0,
			.n_threads = 1,
		};
	}
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
		*row_new(list) = other->rows[i];
	}
}

int site_row_compare(const void *a, const void *b)
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
	if (!order)
		order = order_of(x->allocator_id, y->allocator_id);
	return order ? order : (x->device > y->device) - (x->device < y->device);
}

void site_list_sort(struct site_list *list)
{
	if (list->n_rows)
		qsort(list->rows, list->n_rows, sizeof(*list->rows), site_row_compare);
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
