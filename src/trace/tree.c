#include "trace/tree.h"

static uint32_t next_random(struct tree *tree)
{
	uint32_t x = tree->random ? tree->random : 0x9e3779b9u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return tree->random = x;
}

/* What points to node. */
static struct tree_node **link_of(struct tree *tree, const struct tree_node *node)
{
	struct tree_node *above = node->above;

	if (!above)
		return &tree->root;
	return above->left == node ? &above->left : &above->right;
}

/* Puts node, which may be NULL, where *link, of above, is. */
static void hang(struct tree_node **link, struct tree_node *above, struct tree_node *node)
{
	*link = node;
	if (node)
		node->above = above;
}

/* Node and what it hangs from, which has a lower priority, change places. */
static void rise(struct tree *tree, struct tree_node *node)
{
	struct tree_node *above = node->above;
	struct tree_node **link = link_of(tree, above), *higher = above->above;

	if (above->left == node) {
		hang(&above->left, above, node->right);
		hang(&node->right, node, above);
	} else {
		hang(&above->right, above, node->left);
		hang(&node->left, node, above);
	}
	hang(link, higher, node);
}

void tree_insert_in(
	struct tree *tree, const struct tree_gap *gap, struct tree_node *node, uint64_t key)
{
	node->key = key;
	node->priority = next_random(tree);
	node->left = node->right = NULL;
	/* Of two neighbours one hangs below the other, so that one has this place free. */
	if (!gap->floor && !gap->ceiling)
		hang(&tree->root, NULL, node);
	else if (gap->floor && !gap->floor->right)
		hang(&gap->floor->right, gap->floor, node);
	else
		hang(&gap->ceiling->left, gap->ceiling, node);
	while (node->above && node->above->priority < node->priority)
		rise(tree, node);
	tree->n_nodes++;
}

void tree_insert(struct tree *tree, struct tree_node *node, uint64_t key)
{
	struct tree_node *at = tree->root;
	struct tree_gap gap = {NULL, NULL};

	while (at) {
		if (at->key <= key) {
			gap.floor = at;
			at = at->right;
		} else {
			gap.ceiling = at;
			at = at->left;
		}
	}
	tree_insert_in(tree, &gap, node, key);
}

void tree_remove(struct tree *tree, struct tree_node *node)
{
	struct tree_node **at = link_of(tree, node), *above = node->above;
	struct tree_node *left = node->left, *right = node->right;

	while (left && right) {
		if (left->priority > right->priority) {
			hang(at, above, left);
			above = left;
			at = &left->right;
			left = left->right;
		} else {
			hang(at, above, right);
			above = right;
			at = &right->left;
			right = right->left;
		}
	}
	hang(at, above, left ? left : right);
	tree->n_nodes--;
}

struct tree_node *tree_find(const struct tree *tree, uint64_t key)
{
	struct tree_node *node = tree->root;

	while (node && node->key != key)
		node = key < node->key ? node->left : node->right;
	return node;
}

struct tree_node *tree_floor(const struct tree *tree, uint64_t key)
{
	struct tree_node *node = tree->root, *best = NULL;

	while (node) {
		if (node->key <= key) {
			best = node;
			node = node->right;
		} else {
			node = node->left;
		}
	}
	return best;
}

struct tree_node *tree_ceiling(const struct tree *tree, uint64_t key)
{
	struct tree_node *node = tree->root, *best = NULL;

	while (node) {
		if (node->key >= key) {
			best = node;
			node = node->left;
		} else {
			node = node->right;
		}
	}
	return best;
}

struct tree_gap tree_gap_find(const struct tree *tree, uint64_t key)
{
	struct tree_node *node = tree->root;
	struct tree_gap gap = {NULL, NULL};

	while (node && node->key != key) {
		if (node->key < key) {
			gap.floor = node;
			node = node->right;
		} else {
			gap.ceiling = node;
			node = node->left;
		}
	}
	return node ? (struct tree_gap){node, node} : gap;
}

struct tree_node *tree_next(const struct tree *tree, const struct tree_node *node)
{
	return node->key == UINT64_MAX ? NULL : tree_ceiling(tree, node->key + 1);
}
