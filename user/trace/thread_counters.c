// SPDX-License-Identifier: MIT
#include "trace/thread_counters.h"

#include "trace/trace_writer.h"

static void put_interrupts(struct trace_writer *writer, const struct call_tree *tree,
			   uint64_t time_ns, uint64_t taken_ns)
{
	trace_writer__counter(writer, &(struct trace_counter){
					      .name = INTERRUPT_COUNTER,
					      .of = FAULT_COUNTER_OF,
					      .pid = tree->pid,
					      .tid = tree->tid,
					      .id = (uint64_t)tree->tid,
					      .time_ns = time_ns,
					      .value = (double)taken_ns,
				      });
}

/* It rises from where each stretch begins to its end. */
static void write_interrupts(struct trace_writer *writer, const struct call_tree *tree)
{
	uint64_t taken_ns = 0;

	for (size_t i = 0; i < tree->interrupts.n; i++) {
		const struct interrupts_mark *mark = &tree->interrupts.v[i];

		if (!i || mark[-1].end_ns != mark->start_ns)
			put_interrupts(writer, tree, mark->start_ns, taken_ns);
		taken_ns += mark->ns;
		put_interrupts(writer, tree, mark->end_ns, taken_ns);
	}
}

void thread_counters__write(struct trace_writer *writer, const struct call_tree *tree)
{
	static const char *const names[] = {FAULT_COUNTER, FAULT_COUNTER_MAJOR, MOVE_COUNTER};
	uint64_t seen[3] = {0};

	for (size_t i = 0; i < tree->faults.n; i++) {
		const struct fault_mark *mark = &tree->faults.v[i];

		const int kind = mark->is_move ? 2 : mark->is_major;

		seen[kind] += mark->n;
		trace_writer__counter(writer, &(struct trace_counter){
						      .name = names[kind],
						      .of = FAULT_COUNTER_OF,
						      .pid = tree->pid,
						      .tid = tree->tid,
						      .id = (uint64_t)tree->tid,
						      .time_ns = mark->time_ns,
						      .value = (double)seen[kind],
					      });
	}
	write_interrupts(writer, tree);
}
