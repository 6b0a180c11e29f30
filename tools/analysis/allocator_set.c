#include <stdlib.h>

#include "analysis/allocator_internal.h"
#include "model/memory.h"

#define BLOCK_OF(n) ((struct allocator_block *)((char *)(n)-offsetof(struct allocator_block, node)))
#define CLASS_OF(n) ((struct size_class *)((char *)(n)-offsetof(struct size_class, node)))

struct stream_set *set_of(struct pool *pool, uint64_t stream)
{
	struct stream_set **link, *set;

	for (link = &pool->sets; *link; link = &(*link)->next) {
		if ((*link)->stream == stream)
			return *link;
		if ((*link)->stream > stream)
			break;
	}
	set = memory_new(1, sizeof(*set));
	set->stream = stream;
	set->pool = pool;
	set->next = *link;
	*link = set;
	return set;
}

static struct size_class *class_new(struct allocator *allocator)
{
	struct size_class *class = allocator->spare;

	if (!class)
		return memory_new(1, sizeof(*class));
	allocator->spare = class->next_spare;
	class->blocks = (struct tree){0};
	return class;
}

void set_insert(struct allocator *allocator, struct allocator_block *block)
{
	struct stream_set *set = block->segment->set;
	struct tree_node *node = tree_find(&set->sizes, block->bytes);
	struct size_class *class = node ? CLASS_OF(node) : class_new(allocator);

	if (!node)
		tree_insert(&set->sizes, &class->node, block->bytes);
	tree_insert(&class->blocks, &block->node, block->address);
	block->since = set->pool->clock;
}

void set_remove(struct allocator *allocator, struct allocator_block *block)
{
	struct stream_set *set = block->segment->set;
	struct size_class *class = CLASS_OF(tree_find(&set->sizes, block->bytes));

	tree_remove(&class->blocks, &block->node);
	if (class->blocks.n_nodes)
		return;
	tree_remove(&set->sizes, &class->node);
	class->next_spare = allocator->spare;
	allocator->spare = class;
}

static struct allocator_block *first_of(const struct tree_node *class)
{
	return class ? BLOCK_OF(tree_ceiling(&CLASS_OF(class)->blocks, 0)) : NULL;
}

static struct allocator_block *last_of(const struct tree_node *class)
{
	return class ? BLOCK_OF(tree_floor(&CLASS_OF(class)->blocks, UINT64_MAX)) : NULL;
}

struct allocator_block *set_at_least(const struct stream_set *set, uint64_t bytes)
{
	return first_of(tree_ceiling(&set->sizes, bytes));
}

struct allocator_block *set_next(const struct stream_set *set, const struct allocator_block *block)
{
	struct tree_node *class = tree_find(&set->sizes, block->bytes);
	struct tree_node *node = tree_next(&CLASS_OF(class)->blocks, &block->node);

	return node ? BLOCK_OF(node) : first_of(tree_next(&set->sizes, class));
}

struct allocator_block *set_previous(
	const struct stream_set *set, const struct allocator_block *block)
{
	struct tree_node *class = tree_find(&set->sizes, block->bytes);
	struct tree_node *node =
		block->address ? tree_floor(&CLASS_OF(class)->blocks, block->address - 1) : NULL;

	return node ? BLOCK_OF(node) : last_of(tree_floor(&set->sizes, block->bytes - 1));
}

struct allocator_block *set_largest(const struct stream_set *set)
{
	return last_of(tree_floor(&set->sizes, UINT64_MAX));
}

void set_insert_unmapped(struct allocator_block *block)
{
	tree_insert(&block->segment->set->unmapped, &block->node, block->address);
}

void set_remove_unmapped(struct allocator_block *block)
{
	tree_remove(&block->segment->set->unmapped, &block->node);
}

struct allocator_block *set_unmapped_from(const struct stream_set *set, uint64_t address)
{
	struct tree_node *node = tree_ceiling(&set->unmapped, address);

	return node ? BLOCK_OF(node) : NULL;
}
