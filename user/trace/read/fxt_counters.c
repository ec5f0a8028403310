// SPDX-License-Identifier: MIT
#include "trace/read/fxt_counters.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "trace/fxt_format.h"

/* What a double counts exactly. */
#define MAX_COUNT 0x1p53

/* The counter's value; 0 where it is no count. */
static uint64_t count_of(const struct fxt_read *read)
{
	const struct fxt_read_arg *arg = fxt_read__arg(read, FAULT_COUNTER_OF);
	double value = 0;

	if (arg && arg->type == FXT_ARG_DOUBLE)
		memcpy(&value, &arg->number, sizeof(value));
	return value >= 1 && value <= MAX_COUNT ? (uint64_t)value : 0;
}

/* Each value ends a stretch, which may be one without any. */
static int take_interrupts(struct fxt_counters *counters, struct call_tree *tree,
			   const struct fxt_read *read)
{
	const struct interrupts_mark mark = {.start_ns = counters->interrupts_until_ns,
					     .end_ns = read->time_ns,
					     .ns = count_of(read) - counters->interrupts_ns};
	bool is_known = counters->has_interrupts && count_of(read) > counters->interrupts_ns;

	counters->has_interrupts = true;
	counters->interrupts_until_ns = read->time_ns;
	counters->interrupts_ns = count_of(read);
	return is_known ? call_tree__add_interrupts(tree, &mark) : 0;
}

int fxt_counters__take(struct fxt_counters *counters, struct call_tree *tree,
		       const struct fxt_read *read)
{
	bool is_major = !strcmp(read->name, FAULT_COUNTER_MAJOR);
	bool is_move = !strcmp(read->name, MOVE_COUNTER);
	const struct fault_mark *last = tree->faults.n ? &tree->faults.v[tree->faults.n - 1] : NULL;
	uint64_t *seen = &counters->seen[is_move ? 2 : is_major], n = count_of(read);
	struct fault_mark *mark;

	if (!strcmp(read->name, INTERRUPT_COUNTER))
		return take_interrupts(counters, tree, read);
	if ((!is_major && !is_move && strcmp(read->name, FAULT_COUNTER)) || n <= *seen ||
	    n - *seen > UINT32_MAX || (last && read->time_ns < last->time_ns))
		return 0;
	mark = VEC_PUSH(&tree->faults);
	if (!mark)
		return -ENOMEM;
	*mark = (struct fault_mark){.time_ns = read->time_ns,
				    .n = (uint32_t)(n - *seen),
				    .is_major = is_major,
				    .is_move = is_move};
	*seen = n;
	return 0;
}
