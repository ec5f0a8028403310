/* SPDX-License-Identifier: MIT */
/* Between the report's files: the iterations, and what each function did in them. */
#ifndef MTBPF_VIEW_REPORT_INTERNAL_H
#define MTBPF_VIEW_REPORT_INTERNAL_H

#include "util/vec.h"
#include "view/blame.h"
#include "view/report.h"

/* One iteration. The last is the slow one. */
struct period {
	uint64_t start_ns, end_ns;
};

enum row_kind {
	ROW_CPU,     /* a function's own code */
	ROW_KERNEL,  /* the kernel's, on its behalf */
	ROW_BLOCKED, /* it waited for something */
	ROW_WAITING, /* it could run, and had no CPU */
	ROW_OTHER,   /* what is not known: a gap */
};

/* What one function (or kind of time outside of functions) did. */
struct row {
	const void *key; /* the function, or the name of what is none */
	const char *name, *suffix;
	enum row_kind kind;
	struct blame blame;	       /* who kept the slow iteration waiting there */
	const struct function *inside; /* of what is no function: where it was; NULL: not told */
	uint64_t slow_ns, slow_calls;
	uint64_t ordinary_ns, ordinary_calls; /* sums */
	int64_t extra_ns;		      /* slow beyond the ordinary mean */
};

struct report {
	const struct call_tree *tree;
	VEC(struct period) periods;
	VEC(struct row) rows; /* in hash order while filling; then the largest excess first */
	size_t *slots;
	size_t n_slots;
	size_t period; /* that holds, or follows, the sweep's time */
	bool failed;
};

static inline bool report__is_slow(const struct report *r, size_t period)
{
	return period + 1 == r->periods.n;
}

static inline uint64_t report__mean(uint64_t sum, size_t n)
{
	return n ? sum / n : 0;
}

/*
 * One line on why the slow iteration took longer: what most of it was, on a CPU, blocked, or in
 * wait of one, and where and by whom. Nothing where it did not.
 */
void report__print_reason(FILE *out, const struct report *report);

#endif
