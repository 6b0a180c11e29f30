/* Host memory that goes up again and again, or down and up: by the address and the number of bytes
 * of copies that are not small. What is in it is not known. */
#include <stdlib.h>

#include "model/internal.h"
#include "model/memory.h"

/* The ones that were used longest ago are forgotten. */
#define MAX_RANGES 65536u
/* A range counts as one that is repeated when it goes up the third time. */
#define REPEATED 3u

static struct model_host_range *range_from(struct tree_node *node)
{
	return node ? container(node, struct model_host_range, node) : NULL;
}

static void unlink_range(struct model_host_ranges *ranges, struct model_host_range *range)
{
	*(range->newer ? &range->newer->older : &ranges->newest) = range->older;
	*(range->older ? &range->older->newer : &ranges->oldest) = range->newer;
}

static void link_newest(struct model_host_ranges *ranges, struct model_host_range *range)
{
	range->newer = NULL;
	range->older = ranges->newest;
	*(ranges->newest ? &ranges->newest->newer : &ranges->oldest) = range;
	ranges->newest = range;
}

static void drop(struct model_host_ranges *ranges, struct model_host_range *range)
{
	unlink_range(ranges, range);
	tree_remove(&ranges->tree, &range->node);
	free(range);
}

/* The range at address, as new if it was not as long the last time. */
static struct model_host_range *range_of(
	struct model_host_ranges *ranges, uint64_t address, uint64_t bytes)
{
	struct model_host_range *range = range_from(tree_find(&ranges->tree, address));

	if (range && range->bytes != bytes) {
		drop(ranges, range);
		range = NULL;
	}
	if (range) {
		unlink_range(ranges, range);
	} else {
		if (ranges->tree.n_nodes >= MAX_RANGES)
			drop(ranges, ranges->oldest);
		range = memory_new(1, sizeof(*range));
		range->bytes = bytes;
		tree_insert(&ranges->tree, &range->node, address);
	}
	link_newest(ranges, range);
	return range;
}

static void count_repeat(struct model_copy *copy, struct model_host_range *range)
{
	copy->repeats.n++;
	copy->repeats.bytes = add_capped(copy->repeats.bytes, range->bytes);
	if (range->n_up != REPEATED)
		return;
	if (!copy->n_repeat_ranges++)
		copy->repeat_bytes = range->bytes;
	copy->repeat_bytes_vary |= copy->repeat_bytes != range->bytes;
}

static void count_trip(struct model_copy *up, struct model_host_range *range)
{
	struct model_copy *down = range->down;

	down->trips.n++;
	down->trips.bytes = add_capped(down->trips.bytes, range->bytes);
	down->n_trip_ranges += !range->n_trips++;
	down->trip_stack_id = up->key.stack_id;
}

void host_ranges_note_up(
	struct model *model, struct model_copy *copy, uint64_t address, uint64_t bytes)
{
	struct model_host_range *range;

	if (bytes <= MODEL_SMALL_COPY_BYTES)
		return;
	range = range_of(&model->host_ranges, address, bytes);
	if (range->is_down)
		count_trip(copy, range);
	range->n_up = !range->is_down && range->up == copy ? range->n_up + 1 : 1;
	range->is_down = false;
	range->up = copy;
	if (range->n_up > 1)
		count_repeat(copy, range);
}

void host_ranges_note_down(
	struct model *model, struct model_copy *copy, uint64_t address, uint64_t bytes)
{
	struct model_host_range *range;

	if (bytes <= MODEL_SMALL_COPY_BYTES)
		return;
	range = range_of(&model->host_ranges, address, bytes);
	range->is_down = true;
	range->down = copy;
}

void host_ranges_end(struct model *model, uint64_t address, uint64_t bytes)
{
	struct model_host_ranges *ranges = &model->host_ranges;
	struct tree_node *node = tree_ceiling(&ranges->tree, address), *next;

	for (; node && node->key - address < bytes; node = next) {
		next = tree_next(&ranges->tree, node);
		drop(ranges, range_from(node));
	}
}

void host_ranges_release(struct model *model)
{
	while (model->host_ranges.newest)
		drop(&model->host_ranges, model->host_ranges.newest);
}
