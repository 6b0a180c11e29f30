#include "analysis/owners.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/order.h"
#include "model/memory.h"

static bool same_owner(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

struct model_totals *owner_list_group(struct owner_list *list, const struct owner_source *source,
	const struct model *model, const struct model_site_key *key)
{
	const char *owner;
	struct owner_row *row;

	if (!model_kind_tracked(key->kind) || key->device == MODEL_DEVICE_HOST)
		return NULL;
	owner = source->label(source->user, model, key->stack_id);
	for (size_t i = 0; i < list->n_rows; i++)
		if (list->rows[i]->device == key->device && same_owner(list->rows[i]->owner, owner))
			return &list->rows[i]->totals;
	row = memory_new(1, sizeof(*row));
	row->device = key->device;
	row->owner = owner;
	list->rows = memory_grow(list->rows, list->n_rows, &list->room, sizeof(*list->rows));
	list->rows[list->n_rows++] = row;
	return &row->totals;
}

static int compare_rows(const void *a, const void *b)
{
	const struct owner_row *x = *(struct owner_row *const *)a;
	const struct owner_row *y = *(struct owner_row *const *)b;
	int order = (x->device > y->device) - (x->device < y->device);

	if (!order)
		order = order_of(y->totals.peak_live_bytes, x->totals.peak_live_bytes);
	return order ? order : strcmp(x->owner ? x->owner : "", y->owner ? y->owner : "");
}

void owner_list_sort(struct owner_list *list)
{
	if (list->n_rows)
		qsort(list->rows, list->n_rows, sizeof(*list->rows), compare_rows);
}

void owner_list_release(struct owner_list *list)
{
	for (size_t i = 0; i < list->n_rows; i++)
		free(list->rows[i]);
	free(list->rows);
	*list = (struct owner_list){0};
}
