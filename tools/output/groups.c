#include "output/groups.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/order.h"
#include "model/memory.h"
#include "output/blocks_text.h"

/* Looking up names takes time: rows beyond this many, the smallest ones, are summed up without. */
#define MAX_ROWS  1000u
#define MAX_LABEL 400u

/* What an allocator keeps has no stack. */
static void label_of(
	const struct site_row *row, const struct stack_source *source, char *label, size_t size)
{
	char name[100];

	if (row->level != SITE_IDLE) {
		stack_label(source, row->stack_id, label, size);
		return;
	}
	blocks_name(source->model, row->allocator_id, name, sizeof(name));
	snprintf(label, size, "(kept by %s, in no block)", name);
}

static void add(
	struct site_groups *groups, const struct site_row *row, const struct stack_source *source)
{
	char label[MAX_LABEL];
	const char *owner = row->level == SITE_IDLE
				    ? blocks_idle_owner(source->model, row->allocator_id)
				    : stack_owner(source, row->stack_id);
	struct site_group *group = NULL;

	label_of(row, source, label, sizeof(label));
	for (size_t i = 0; i < groups->n_items && !group; i++)
		if (groups->items[i].kind == row->kind && !strcmp(groups->items[i].label, label))
			group = &groups->items[i];
	if (!group) {
		groups->items = memory_grow(
			groups->items, groups->n_items, &groups->room, sizeof(*groups->items));
		group = &groups->items[groups->n_items++];
		*group = (struct site_group){
			memory_text(label), owner ? owner : "", row->kind, row->level, 0, 0, false};
	}
	group->grows = group->grows || row->grows;
	group->bytes += row->bytes;
	group->count += row->count;
}

static int compare_groups(const void *a, const void *b)
{
	const struct site_group *x = a, *y = b;
	int order = order_of(y->bytes, x->bytes);

	return order ? order : strcmp(x->label, y->label);
}

void site_groups_make(struct site_groups *groups, const struct site_list *list, int device,
	const struct stack_source *source)
{
	size_t n = 0;

	*groups = (struct site_groups){0};
	for (size_t i = 0; i < list->n_rows; i++) {
		const struct site_row *row = &list->rows[i];

		if (row->device != device || row->teardown)
			continue;
		if (n++ < MAX_ROWS) {
			add(groups, row, source);
		} else {
			groups->rest_bytes += row->bytes;
			groups->rest_count += row->count;
		}
	}
	if (groups->n_items)
		qsort(groups->items, groups->n_items, sizeof(*groups->items), compare_groups);
}

void site_groups_release(struct site_groups *groups)
{
	for (size_t i = 0; i < groups->n_items; i++)
		free(groups->items[i].label);
	free(groups->items);
	*groups = (struct site_groups){0};
}
