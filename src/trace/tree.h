/*
 * An ordered map from 64-bit keys to nodes that live inside the caller's own structs: a treap, so
 * that neither insertion nor removal needs memory, or more than a few steps once the place is
 * known. For address look-ups: which block contains this address.
 */
#ifndef VRAMTRACE_TRACE_TREE_H
#define VRAMTRACE_TRACE_TREE_H

#include <stddef.h>
#include <stdint.h>

struct tree_node {
	uint64_t key;
	struct tree_node *left;
	struct tree_node *right;
	struct tree_node *above; /* NULL: the root */
	uint32_t priority;
};

/* All zero is an empty tree. */
struct tree {
	struct tree_node *root;
	size_t n_nodes;
	uint32_t random;
};

/* Adds node with key; the tree must not hold that key. The node stays the caller's. */
void tree_insert(struct tree *tree, struct tree_node *node, uint64_t key);

/* Takes out node, which must be in the tree. */
void tree_remove(struct tree *tree, struct tree_node *node);

/* The node with this key, with the greatest key that is not above it, with the least key that is
 * not below it; or NULL. */
struct tree_node *tree_find(const struct tree *tree, uint64_t key);
struct tree_node *tree_floor(const struct tree *tree, uint64_t key);
struct tree_node *tree_ceiling(const struct tree *tree, uint64_t key);

/* Where a key is in the order. */
struct tree_gap {
	struct tree_node *floor;   /* greatest key that is not above it; NULL: none */
	struct tree_node *ceiling; /* least key that is not below it; NULL: none */
};

struct tree_gap tree_gap_find(const struct tree *tree, uint64_t key);

/* tree_insert for who has just found the gap of key; the tree must not have changed since. */
void tree_insert_in(
	struct tree *tree, const struct tree_gap *gap, struct tree_node *node, uint64_t key);

/* The node behind this one, or NULL. */
struct tree_node *tree_next(const struct tree *tree, const struct tree_node *node);

#endif
