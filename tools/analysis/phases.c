#include "analysis/phases.h"

#include <stdlib.h>

#include "analysis/order.h"
#include "model/memory.h"

static struct phase_row *take(const struct model_phase *head, size_t *n)
{
	struct phase_row *rows = memory_new(HASH_COUNT(head) + 1, sizeof(*rows));

	for (const struct model_phase *phase = head; phase; phase = phase->hh.next)
		rows[(*n)++] = (struct phase_row){phase, phase->total_ns};
	return rows;
}

static void add_open(struct phase_list *list, const struct model *model)
{
	for (size_t k = 0; k < model->phases.n_open; k++) {
		const struct model_open_phase *open = &model->phases.open[k];

		for (size_t i = 0; i < list->n_phases; i++)
			if (list->phases[i].phase == open->phase && model->last_ns > open->begin_ns)
				list->phases[i].time_ns += model->last_ns - open->begin_ns;
	}
}

static int compare_times(const void *a, const void *b)
{
	const struct phase_row *x = a, *y = b;
	int order = order_of(y->time_ns, x->time_ns);

	return order ? order : order_of(x->phase->first_ns, y->phase->first_ns);
}

static int compare_copies(const void *a, const void *b)
{
	const struct phase_row *x = a, *y = b;
	int order = order_of(
		y->phase->copies.ns + y->phase->waits.ns, x->phase->copies.ns + x->phase->waits.ns);

	return order ? order : compare_times(a, b);
}

void phase_list_make(struct phase_list *list, const struct model *model)
{
	*list = (struct phase_list){0};
	list->phases = take(model->phases.by_name, &list->n_phases);
	list->marks = take(model->phases.marks, &list->n_marks);
	add_open(list, model);
	qsort(list->phases, list->n_phases, sizeof(*list->phases), compare_times);
}

void phase_list_sort_by_copies(struct phase_list *list)
{
	qsort(list->phases, list->n_phases, sizeof(*list->phases), compare_copies);
}

void phase_list_release(struct phase_list *list)
{
	free(list->phases);
	free(list->marks);
	*list = (struct phase_list){0};
}
