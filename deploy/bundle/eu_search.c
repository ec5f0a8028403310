// SPDX-License-Identifier: MIT
/*
 * A part that Debian 13's libelf.a lacks (elfutils 0.192, lib/eu-search.c): search trees, without
 * locks, as Debian's libelf.so has them. Linked behind libelf, from an archive: where libelf has
 * them, these are not used.
 */
#include <search.h>
#include <stddef.h>

/* The first member of theirs; the other is a lock that nothing takes. */
struct search_tree {
	void *root;
};

typedef int compare_fn(const void *a, const void *b);

void *eu_tsearch(const void *key, struct search_tree *tree, compare_fn *compare);
void *eu_tfind(const void *key, struct search_tree *tree, compare_fn *compare);
void *eu_tdelete(const void *key, struct search_tree *tree, compare_fn *compare);
void eu_tdestroy(struct search_tree *tree, void (*free_node)(void *node));
void eu_search_tree_init(struct search_tree *tree);
void eu_search_tree_fini(struct search_tree *tree, void (*free_node)(void *node));

void *eu_tsearch(const void *key, struct search_tree *tree, compare_fn *compare)
{
	return tsearch(key, &tree->root, compare);
}

void *eu_tfind(const void *key, struct search_tree *tree, compare_fn *compare)
{
	return tfind(key, &tree->root, compare);
}

void *eu_tdelete(const void *key, struct search_tree *tree, compare_fn *compare)
{
	return tdelete(key, &tree->root, compare);
}

void eu_tdestroy(struct search_tree *tree, void (*free_node)(void *node))
{
	tdestroy(tree->root, free_node);
	tree->root = NULL;
}

void eu_search_tree_init(struct search_tree *tree)
{
	tree->root = NULL;
}

void eu_search_tree_fini(struct search_tree *tree, void (*free_node)(void *node))
{
	eu_tdestroy(tree, free_node);
}
