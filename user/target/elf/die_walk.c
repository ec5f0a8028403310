// SPDX-License-Identifier: MIT
#include "target/elf/die_walk.h"

#include <errno.h>

/* Blocks and inlined functions in each other; a few dozen are many. */
#define MAX_DEPTH 256

bool die_walk__spend(struct die_walk *walk, uint64_t bytes)
{
	if (*walk->budget < bytes)
		return false;
	*walk->budget -= bytes;
	return true;
}

/* 0: *die is the next one; 1: it was the last. What dwarf_siblingof() skips goes forward as well.
 */
static int go_on(struct die_walk *walk, Dwarf_Die *die)
{
	Dwarf_Off before = dwarf_dieoffset(die);
	Dwarf_Die next;
	int end = dwarf_siblingof(die, &next);

	if (end)
		return end > 0 ? 1 : -EIO;
	if (dwarf_dieoffset(&next) <= before)
		return -EIO;
	if (!die_walk__spend(walk, dwarf_dieoffset(&next) - before))
		return -E2BIG;
	*die = next;
	return 0;
}

static int walk_children(struct die_walk *walk, Dwarf_Die *die, const void *scope,
			 unsigned int depth)
{
	Dwarf_Die child;
	int end = dwarf_child(die, &child);

	if (end)
		return end > 0 ? 0 : -EIO;
	if (depth == MAX_DEPTH)
		return -E2BIG;
	while (!end) {
		const void *inner = scope;
		int step = walk->enter(walk, &child, &inner);

		if (step < 0)
			return step;
		if (step == DIE_DESCEND)
			end = walk_children(walk, &child, inner, depth + 1);
		if (!end)
			end = go_on(walk, &child);
	}
	return end > 0 ? 0 : end;
}

int die_walk__children(struct die_walk *walk, Dwarf_Die *die, const void *scope)
{
	return walk_children(walk, die, scope, 0);
}
