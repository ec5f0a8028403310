// SPDX-License-Identifier: MIT
#include "trace/read/fxt_faults.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "trace/fault_writer.h"

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

int fxt_faults__take(struct fxt_faults *faults, struct call_tree *tree, const struct fxt_read *read)
{
	bool is_major = !strcmp(read->name, FAULT_COUNTER_MAJOR);
	const struct fault_mark *last = tree->faults.n ? &tree->faults.v[tree->faults.n - 1] : NULL;
	uint64_t *seen = &faults->seen[is_major], n = count_of(read);
	struct fault_mark *mark;

	if ((!is_major && strcmp(read->name, FAULT_COUNTER)) || n <= *seen ||
	    n - *seen > UINT32_MAX || (last && read->time_ns < last->time_ns))
		return 0;
	mark = VEC_PUSH(&tree->faults);
	if (!mark)
		return -ENOMEM;
	*mark = (struct fault_mark){
		.time_ns = read->time_ns, .n = (uint32_t)(n - *seen), .is_major = is_major};
	*seen = n;
	return 0;
}
