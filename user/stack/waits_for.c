// SPDX-License-Identifier: MIT
/* What a thread that is blocked waits for, in a call tree and in words. */
#include <stdio.h>

#include "stack/call_tree.h"
#include "kernel/syscalls.h"

const struct waits_for *call_tree__waits_for(const struct call_tree *tree, const struct call *call)
{
	uint32_t index = (uint32_t)(call - tree->calls.v);
	size_t n = VEC_PARTITION_POINT(&tree->waits, e, e->call < index);

	return n < tree->waits.n && tree->waits.v[n].call == index ? &tree->waits.v[n] : NULL;
}

const char *waits_for__format(const struct waits_for *wait, char text[static WAITS_FOR_SIZE])
{
	const char *name = syscall__name(wait->syscall);
	char number[32];

	if (wait->text) {
		snprintf(text, WAITS_FOR_SIZE, "%s", wait->text);
		return text;
	}
	snprintf(number, sizeof(number), "system call %d", wait->syscall);
	if (!name)
		name = number;
	if (wait->owner)
		snprintf(text, WAITS_FOR_SIZE, "%s held by %s (%d)", name, wait->owner_comm,
			 (int)wait->owner);
	else if (wait->file)
		snprintf(text, WAITS_FOR_SIZE, "%s of %.128s (fd %d)", name, wait->file, wait->fd);
	else if (wait->fd >= 0)
		snprintf(text, WAITS_FOR_SIZE, "%s of fd %d", name, wait->fd);
	else
		snprintf(text, WAITS_FOR_SIZE, "%s", name);
	return text;
}
