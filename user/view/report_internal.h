/* SPDX-License-Identifier: MIT */
#ifndef MTBPF_VIEW_REPORT_INTERNAL_H
#define MTBPF_VIEW_REPORT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

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
	struct hit_mark hit;
	bool sampled, is_of_several;
	uint64_t ordinary_ns; /* an ordinary iteration, on the average; 0: there is none */
	VEC(struct period) periods;
	size_t n_left_out; /* of the lookback's iterations: slow as well, so that no mean has them
			    */
	VEC(struct row) rows; /* in hash order while filling; find_row() */
	size_t *slots;
	size_t n_slots;
	size_t period; /* that holds, or follows, the sweep's time */
	bool failed;
};

/* The iterations up to the hit. 0 or -ENOMEM. */
int report__find_periods(struct report *r, const struct hit_mark *hit);
/* Whether the call is one of the trigger's, whose begin was seen, at or before the hit. */
bool report__is_entry(const struct call *call, const struct hit_mark *hit);

/* What the functions did in them, the largest excess first. 0 or -ENOMEM. */
int report__fill_rows(struct report *r);

/* Of a sum over the ordinary iterations: what one has. */
uint64_t report__mean(const struct report *r, uint64_t sum);

static inline const struct period *report__slow(const struct report *r)
{
	return &r->periods.v[r->periods.n - 1];
}

/* "f", "f [inlined]", "[blocked] in f". */
void report__print_name(FILE *out, const struct row *row);
/* ", hit 9,", where there are others. */
void report__print_which(FILE *out, const struct report *r);

/*
 * In words, of samples, why the slow iteration took longer: what most of it was, on a CPU, blocked,
 * or in wait of one, and where and by whom. To be freed by the caller; NULL where it did not, or
 * there is no memory.
 */
char *report__reason(const struct report *r);

#endif
