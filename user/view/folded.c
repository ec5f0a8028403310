// SPDX-License-Identifier: MIT
#include "view/folded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A function with the same callers, in all trees together. */
struct stack_node {
	const char *name;
	uint64_t self_ns;
	uint32_t first_child, next; /* 0: none; node 0 is the root */
};

struct folded {
	VEC(struct stack_node) nodes;
	VEC(uint32_t) of_call; /* the node of each call of the tree */
};

/*
 * Finds or adds a child; 0: out of memory. Moves the child to the front of its list, since the
 * calls of a loop look up the same few children again and again.
 */
static uint32_t child_of(struct folded *folded, uint32_t parent, const char *name)
{
	struct stack_node *nodes = folded->nodes.v;
	uint32_t *link = &nodes[parent].first_child, found;

	while (*link && nodes[*link].name != name && strcmp(nodes[*link].name, name))
		link = &nodes[*link].next;
	found = *link;
	if (found) {
		*link = nodes[found].next;
	} else {
		found = (uint32_t)folded->nodes.n;
		if (VEC_ADD(&folded->nodes, (struct stack_node){.name = name}))
			return 0;
		nodes = folded->nodes.v;
	}
	nodes[found].next = nodes[parent].first_child;
	nodes[parent].first_child = found;
	return found;
}

static int add_call(struct folded *folded, const struct call *call, uint32_t root)
{
	bool is_root = call->parent == CALL_NO_PARENT;
	uint32_t parent = is_root ? root : folded->of_call.v[call->parent];
	uint32_t node = child_of(folded, parent, call__name(call));
	uint32_t *of_call = VEC_PUSH(&folded->of_call);
	uint64_t ns = call->end_ns - call->start_ns;

	if (!node || !of_call)
		return -ENOMEM;
	*of_call = node;
	folded->nodes.v[node].self_ns += ns;
	if (!is_root)
		folded->nodes.v[parent].self_ns -= ns;
	return 0;
}

void folded__print_name(FILE *out, const char *name)
{
	for (; *name; name++)
		fputc(*name == ';' || *name == '\n' ? ':' : *name, out);
}

/* Depth first, without recursion: stacks may be too deep for it. */
static int print_nodes(FILE *out, const struct folded *folded)
{
	const struct stack_node *nodes = folded->nodes.v;
	uint32_t node = nodes[0].first_child;
	VEC(uint32_t) path = {0};
	int err = 0;

	while (node) {
		err = VEC_ADD(&path, node);
		if (err)
			break;
		for (size_t i = 0; i < path.n && nodes[node].self_ns; i++) {
			if (i)
				fputc(';', out);
			folded__print_name(out, nodes[path.v[i]].name);
		}
		if (nodes[node].self_ns)
			fprintf(out, " %" PRIu64 "\n", nodes[node].self_ns);
		node = nodes[node].first_child;
		while (!node && path.n)
			node = nodes[path.v[--path.n]].next;
	}
	VEC_FINI(&path);
	return err;
}

int folded__print(FILE *out, const struct call_tree *trees, size_t n_trees)
{
	struct folded folded = {0};
	int err = VEC_ADD(&folded.nodes, (struct stack_node){.name = ""});

	for (const struct call_tree *tree = trees; tree < trees + n_trees && !err; tree++) {
		const char *name = tree->coroutine ? tree->coroutine_name
				   : tree->comm[0] ? tree->comm
						   : "thread";
		uint32_t root = child_of(&folded, 0, name);

		err = root ? 0 : -ENOMEM;
		folded.of_call.n = 0;
		for (size_t i = 0; i < tree->calls.n && !err; i++)
			err = add_call(&folded, &tree->calls.v[i], root);
	}
	if (!err)
		err = print_nodes(out, &folded);
	VEC_FINI(&folded.nodes);
	VEC_FINI(&folded.of_call);
	return err;
}
