// SPDX-License-Identifier: MIT
#include "trace/fault_writer.h"

#include "trace/trace_writer.h"

void fault_writer__write(struct trace_writer *writer, const struct call_tree *tree)
{
	static const char *const names[] = {FAULT_COUNTER, FAULT_COUNTER_MAJOR};
	uint64_t seen[2] = {0};

	for (size_t i = 0; i < tree->faults.n; i++) {
		const struct fault_mark *mark = &tree->faults.v[i];

		seen[mark->is_major] += mark->n;
		trace_writer__counter(writer, &(struct trace_counter){
						      .name = names[mark->is_major],
						      .of = FAULT_COUNTER_OF,
						      .pid = tree->pid,
						      .tid = tree->tid,
						      .id = (uint64_t)tree->tid,
						      .time_ns = mark->time_ns,
						      .value = (double)seen[mark->is_major],
					      });
	}
}
