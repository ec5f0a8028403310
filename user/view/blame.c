// SPDX-License-Identifier: MIT
#include "view/blame.h"

#include <string.h>

void blame__add(struct blame *blame, const struct call_tree *tree, const struct call *call,
		uint64_t ns)
{
	const struct done_by *by =
		call->kind == CALL_OFF_CPU ? call_tree__done_by(tree, call) : NULL;

	for (size_t i = 0; by && i < BLAME_MAX; i++) {
		const struct done_by *known = blame->names[i].by;

		if (known && strcmp(known->comm, by->comm))
			continue;
		blame->names[i].by = known ? known : by;
		blame->names[i].ns += ns;
		blame->woken = call->reason == OFF_BLOCKED;
		return;
	}
}

void blame__print(FILE *out, const struct blame *blame)
{
	size_t most = 0;

	for (size_t i = 1; i < BLAME_MAX; i++)
		if (blame->names[i].ns > blame->names[most].ns)
			most = i;
	if (blame->names[most].by)
		fprintf(out, ", %s %s (%d)", blame->woken ? "woken by" : "by",
			blame->names[most].by->comm, blame->names[most].by->tid);
}
