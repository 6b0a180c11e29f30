/* What is live by whose code asked for it. */
#include <stdlib.h>
#include <string.h>

#include "analysis/leaks.h"
#include "analysis/order.h"
#include "model/blocks.h"
#include "model/memory.h"

static const char *name_of(
	const struct leak *leak, const struct model *model, const struct owner_source *source)
{
	const struct model_allocator *allocator;

	if (leak->row.level != SITE_IDLE)
		return source->label(source->user, model, leak->row.stack_id);
	allocator = model_allocator_find(model, leak->row.allocator_id);
	return allocator && allocator->layer == VT_LAYER_TORCH ? "torch" : NULL;
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static struct leak_owner *owner_of(struct leak_list *list, int device, const char *name)
{
	for (size_t i = 0; i < list->n_owners; i++)
		if (list->owners[i].device == device && is_same(list->owners[i].name, name))
			return &list->owners[i];
	list->owners = memory_grow(
		list->owners, list->n_owners, &list->owners_room, sizeof(*list->owners));
	list->owners[list->n_owners] = (struct leak_owner){.device = device, .name = name};
	return &list->owners[list->n_owners++];
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* The list has the fastest first: of what grows, that one's verdict holds for the owner. */
static void book(struct leak_owner *owner, const struct leak *leak)
{
	if (leak->grows && !owner->grows)
		owner->verdict = leak->verdict;
	owner->grows = owner->grows || leak->grows;
	owner->is_leak = owner->is_leak || leak_is_leak(leak);
	owner->n_sites++;
	owner->bytes += leak->row.bytes;
	owner->count += leak->row.count;
	owner->verdict_bytes[leak->verdict] += leak->row.bytes;
	if (!leak->grows)
		return;
	owner->growth_bytes = add(owner->growth_bytes, leak->growth_bytes);
	owner->rate_bytes_per_s = add(owner->rate_bytes_per_s, leak->rate_bytes_per_s);
}

/* Of what does not grow, the verdict of most bytes. */
static void settle(struct leak_owner *owner)
{
	if (owner->grows)
		return;
	for (size_t verdict = 0; verdict < LEAK_N_VERDICTS; verdict++)
		if (owner->verdict_bytes[verdict] > owner->verdict_bytes[owner->verdict])
			owner->verdict = (enum leak_verdict)verdict;
}

static int compare_owners(const void *a, const void *b)
{
	const struct leak_owner *x = a, *y = b;
	int order = order_of(y->rate_bytes_per_s, x->rate_bytes_per_s);

	if (!order)
		order = order_of(y->bytes, x->bytes);
	return order ? order : (x->device > y->device) - (x->device < y->device);
}

void leak_list_group(
	struct leak_list *list, const struct model *model, const struct owner_source *source)
{
	for (size_t i = 0; i < list->n_items; i++) {
		const struct leak *leak = &list->items[i];

		if (!leak->suppressed_by && !leak->row.teardown)
			book(owner_of(list, leak->row.device, name_of(leak, model, source)), leak);
	}
	for (size_t i = 0; i < list->n_owners; i++)
		settle(&list->owners[i]);
	if (list->n_owners)
		qsort(list->owners, list->n_owners, sizeof(*list->owners), compare_owners);
}
