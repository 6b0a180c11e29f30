#include "model/tree.h"

static uint32_t next_random(struct tree *tree)
{
	uint32_t x = tree->random ? tree->random : 0x9e3779b9u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return tree->random = x;
}

void tree_insert(struct tree *tree, struct tree_node *node, uint64_t key)
{
	struct tree_node **at = &tree->root, **less, **more, *rest;

	node->key = key;
	node->priority = next_random(tree);
	while (*at && (*at)->priority >= node->priority)
		at = key < (*at)->key ? &(*at)->left : &(*at)->right;
	rest = *at;
	*at = node;
	less = &node->left;
	more = &node->right;
	/* What stood here goes below the new node, split by its key. */
	while (rest) {
		if (rest->key < key) {
			*less = rest;
			less = &rest->right;
			rest = rest->right;
		} else {
			*more = rest;
			more = &rest->left;
			rest = rest->left;
		}
	}
	*less = NULL;
	*more = NULL;
	tree->n_nodes++;
}

void tree_remove(struct tree *tree, struct tree_node *node)
{
	struct tree_node **at = &tree->root, *left = node->left, *right = node->right;

	while (*at != node)
		at = node->key < (*at)->key ? &(*at)->left : &(*at)->right;
	while (left && right) {
		if (left->priority > right->priority) {
			*at = left;
			at = &left->right;
			left = left->right;
		} else {
			*at = right;
			at = &right->left;
			right = right->left;
		}
	}
	*at = left ? left : right;
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

struct tree_node *tree_next(const struct tree *tree, const struct tree_node *node)
{
	return node->key == UINT64_MAX ? NULL : tree_ceiling(tree, node->key + 1);
}
