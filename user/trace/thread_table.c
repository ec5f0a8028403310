// SPDX-License-Identifier: MIT
#include "trace/thread_table.h"

/* table->n where there is none. */
static unsigned int find(const struct thread_table *table, pid_t pid, pid_t tid)
{
	unsigned int i = 0;

	while (i < table->n && !thread_table__has(table, i, pid, tid))
		i++;
	return i;
}

static unsigned int take_slot(struct thread_table *table)
{
	unsigned int slot = table->next_evicted;

	if (table->n < THREAD_TABLE_MAX)
		return table->n++;
	table->next_evicted = (slot + 1) % THREAD_TABLE_MAX;
	return slot;
}

unsigned int thread_table__look_up(struct thread_table *table, pid_t pid, pid_t tid, bool *is_new)
{
	unsigned int i = find(table, pid, tid);

	*is_new = i == table->n;
	if (*is_new) {
		i = take_slot(table);
		table->threads[i].pid = pid;
		table->threads[i].tid = tid;
	}
	table->last = i;
	return i + 1;
}
