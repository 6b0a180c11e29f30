/*
 * Free blocks in PyTorch's order: by size, then by address. Sorted arrays of limited length, and an
 * array of them: a search touches few cache lines, and to insert moves a few hundred bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/allocator_internal.h"
#include "model/memory.h"

#define BLOCK_OF(n) ((struct allocator_block *)((char *)(n)-offsetof(struct allocator_block, node)))

struct entry {
	uint64_t bytes, address;
	struct allocator_block *block;
};

struct set_leaf {
	size_t n; /* at least 1 */
	struct entry entries[SET_LEAF_ROOM];
};

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

void set_free(struct stream_set *set)
{
	for (size_t i = 0; i < set->n_leaves; i++)
		free(set->leaves[i]);
	free(set->leaves);
	free(set);
}

typedef unsigned __int128 key;

static key key_of(uint64_t bytes, uint64_t address)
{
	return (key)bytes << 64 | address;
}

static bool is_before(const struct entry *entry, key wanted)
{
	return key_of(entry->bytes, entry->address) < wanted;
}

/* Before the first entry that is not before the key. Behind the last one of a leaf only where there
 * is no next leaf, or the next one's first entry is just that. */
static struct set_place find(const struct stream_set *set, uint64_t bytes, uint64_t address)
{
	const key wanted = key_of(bytes, address);
	const struct entry *first, *at;
	size_t low = 0, n, half;

	if (!set->n_leaves)
		return (struct set_place){0, 0};
	for (n = set->n_leaves; n > 1; n -= half) {
		half = n / 2;
		low += is_before(set->leaves[low + half]->entries, wanted) ? half : 0;
	}
	first = at = set->leaves[low]->entries;
	for (n = set->leaves[low]->n; n > 1; n -= half) {
		half = n / 2;
		at += is_before(at + half - 1, wanted) ? half : 0;
	}
	return (struct set_place){low, (size_t)(at - first) + is_before(at, wanted)};
}

/* Past the end of a leaf there is the next one. */
static struct set_place at_entry(const struct stream_set *set, struct set_place place)
{
	if (place.leaf < set->n_leaves && place.i == set->leaves[place.leaf]->n)
		return (struct set_place){place.leaf + 1, 0};
	return place;
}

static struct allocator_block *block_at(const struct stream_set *set, struct set_place place)
{
	if (place.leaf >= set->n_leaves || place.i >= set->leaves[place.leaf]->n)
		return NULL;
	return set->leaves[place.leaf]->entries[place.i].block;
}

static struct allocator_block *found(struct stream_set *set, struct set_place place)
{
	set->found = at_entry(set, place);
	return block_at(set, set->found);
}

static void add_leaf(struct stream_set *set, size_t at)
{
	set->leaves =
		memory_grow(set->leaves, set->n_leaves, &set->leaves_room, sizeof(*set->leaves));
	memmove(&set->leaves[at + 1], &set->leaves[at],
		(set->n_leaves++ - at) * sizeof(*set->leaves));
	set->leaves[at] = memory_new(1, sizeof(**set->leaves));
}

/* Makes room in the leaf of the place, whose upper half may become a leaf of its own. */
static struct set_place make_room(struct stream_set *set, struct set_place place)
{
	const size_t half = SET_LEAF_ROOM / 2;
	struct set_leaf *full, *upper;

	if (!set->n_leaves) {
		add_leaf(set, 0);
		return place;
	}
	full = set->leaves[place.leaf];
	if (full->n < SET_LEAF_ROOM)
		return place;
	add_leaf(set, place.leaf + 1);
	upper = set->leaves[place.leaf + 1];
	memcpy(upper->entries, &full->entries[half], half * sizeof(*upper->entries));
	full->n = upper->n = half;
	return place.i <= half ? place : (struct set_place){place.leaf + 1, place.i - half};
}

void set_insert(struct allocator_block *block)
{
	struct stream_set *set = block->segment->set;
	struct set_place place = make_room(set, find(set, block->bytes, block->address));
	struct set_leaf *leaf = set->leaves[place.leaf];
	struct entry *entry = &leaf->entries[place.i];

	memmove(entry + 1, entry, (leaf->n++ - place.i) * sizeof(*entry));
	*entry = (struct entry){block->bytes, block->address, block};
	block->since = set->pool->clock;
}

void set_remove(struct allocator_block *block)
{
	struct stream_set *set = block->segment->set;
	struct set_place place = set->found;
	struct set_leaf *leaf;
	struct entry *entry;

	/* Most often it was just found. */
	if (block_at(set, place) != block)
		place = at_entry(set, find(set, block->bytes, block->address));
	leaf = set->leaves[place.leaf];
	entry = &leaf->entries[place.i];
	memmove(entry, entry + 1, (--leaf->n - place.i) * sizeof(*entry));
	if (leaf->n)
		return;
	free(leaf);
	memmove(&set->leaves[place.leaf], &set->leaves[place.leaf + 1],
		(--set->n_leaves - place.leaf) * sizeof(*set->leaves));
}

struct allocator_block *set_at_least(struct stream_set *set, uint64_t bytes)
{
	return found(set, find(set, bytes, 0));
}

struct allocator_block *set_next(struct stream_set *set, const struct allocator_block *block)
{
	return found(set, find(set, block->bytes, block->address + 1));
}

struct allocator_block *set_previous(
	const struct stream_set *set, const struct allocator_block *block)
{
	struct set_place place = find(set, block->bytes, block->address);

	if (place.i)
		return set->leaves[place.leaf]->entries[place.i - 1].block;
	if (!place.leaf)
		return NULL;
	return set->leaves[place.leaf - 1]->entries[set->leaves[place.leaf - 1]->n - 1].block;
}

struct allocator_block *set_largest(const struct stream_set *set)
{
	const struct set_leaf *last = set->n_leaves ? set->leaves[set->n_leaves - 1] : NULL;

	return last ? last->entries[last->n - 1].block : NULL;
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
