#include "analysis/top.h"

#include <stdlib.h>

#include "analysis/order.h"
#include "model/blocks.h"
#include "model/memory.h"

/* What there was at the stretch's begin. */
struct before {
	struct site_list sites; /* by key */
	uint64_t n_allocs, n_frees;
};

static int compare_keys(const void *a, const void *b)
{
	const struct site_row *x = a, *y = b;
	int order = order_of(x->stack_id, y->stack_id);

	if (!order)
		order = order_of(x->allocator_id, y->allocator_id);
	if (!order)
		order = (x->device > y->device) - (x->device < y->device);
	if (!order)
		order = order_of(x->kind, y->kind);
	return order ? order : order_of(x->level, y->level);
}

static void count(const struct model *model, uint64_t *n_allocs, uint64_t *n_frees)
{
	*n_allocs = *n_frees = 0;
	for (size_t i = 0; i < model->n_devices; i++)
		for (size_t kind = 0; kind < VT_N_KINDS; kind++) {
			*n_allocs += model->devices[i]->kinds[kind].n_allocs;
			*n_frees += model->devices[i]->kinds[kind].n_frees;
		}
	for (const struct model_allocator *allocator = model->allocators; allocator;
		allocator = allocator->hh.next) {
		*n_allocs += allocator->n_allocs;
		*n_frees += allocator->n_frees;
	}
}

static void visit(void *user, const struct model *model, size_t i)
{
	struct before *before = user;

	(void)i;
	site_list_add_live(&before->sites, model);
	if (before->sites.n_rows)
		qsort(before->sites.rows, before->sites.n_rows, sizeof(*before->sites.rows),
			compare_keys);
	count(model, &before->n_allocs, &before->n_frees);
}

static uint64_t count_refused(const struct model *model)
{
	uint64_t n = 0;

	for (const struct model_failure *failure = model->failures; failure;
		failure = failure->hh.next)
		if (failure->key.result == VT_RESULT_OUT_OF_MEMORY &&
			failure->key.refusal != MODEL_REFUSED_BLOCK)
			n += failure->n_calls;
	return n;
}

static void take_rows(struct top *top, const struct model *model, const struct before *before)
{
	struct site_list now = {0};

	site_list_add_live(&now, model);
	top->rows = memory_new(now.n_rows, sizeof(*top->rows));
	for (size_t i = 0; i < now.n_rows; i++) {
		const struct site_row *row = &now.rows[i], *old = NULL;

		if (before->sites.n_rows)
			old = bsearch(row, before->sites.rows, before->sites.n_rows, sizeof(*row),
				compare_keys);
		top->rows[top->n_rows++] =
			(struct top_row){*row, (int64_t)(row->bytes - (old ? old->bytes : 0))};
	}
	site_list_release(&now);
}

int top_make(struct top *top, struct replay *replay, uint64_t window_ns)
{
	const struct model *model = replay->model;
	struct before before = {0};
	struct replay_moment moment = {.at = REPLAY_AT_TIME};
	uint64_t from_ns = model->kept_from_ns ? model->kept_from_ns : model->first_ns;
	int error = 0;

	*top = (struct top){.now_ns = model->last_ns, .since_ns = model->last_ns};
	if (model->last_ns > from_ns && window_ns) {
		moment.time_ns =
			model->last_ns - from_ns > window_ns ? model->last_ns - window_ns : from_ns;
		top->since_ns = moment.time_ns;
		error = replay_visit(replay, &moment, 1, visit, NULL, &before);
	}
	if (!error) {
		count(model, &top->n_allocs, &top->n_frees);
		top->n_allocs -= top->since_ns < top->now_ns ? before.n_allocs : top->n_allocs;
		top->n_frees -= top->since_ns < top->now_ns ? before.n_frees : top->n_frees;
		top->n_out_of_memory = count_refused(model);
		take_rows(top, model, &before);
		top_sort(top, TOP_BY_LIVE);
	}
	site_list_release(&before.sites);
	return error;
}

static int compare_live(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int order = order_of(y->site.bytes, x->site.bytes);

	return order ? order : compare_keys(&x->site, &y->site);
}

static int compare_growth(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int order = (y->growth_bytes > x->growth_bytes) - (y->growth_bytes < x->growth_bytes);

	return order ? order : compare_live(a, b);
}

static int compare_count(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int order = order_of(y->site.count, x->site.count);

	return order ? order : compare_live(a, b);
}

void top_sort(struct top *top, enum top_order order)
{
	if (top->n_rows)
		qsort(top->rows, top->n_rows, sizeof(*top->rows),
			order == TOP_BY_GROWTH	? compare_growth
			: order == TOP_BY_COUNT ? compare_count
						: compare_live);
}

void top_release(struct top *top)
{
	free(top->rows);
	*top = (struct top){0};
}

const char *top_order_name(enum top_order order)
{
	static const char *const names[] = {
		[TOP_BY_LIVE] = "live", [TOP_BY_GROWTH] = "growth", [TOP_BY_COUNT] = "count"};

	return names[order];
}
