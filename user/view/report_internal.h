/* SPDX-License-Identifier: MIT */
#ifndef MTBPF_VIEW_REPORT_INTERNAL_H
#define MTBPF_VIEW_REPORT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "util/vec.h"
#include "view/blame.h"
#include "view/parts.h"
#include "view/report.h"

/* One iteration. The last is the slow one. */
struct period {
	uint64_t start_ns, end_ns;
	uint64_t unseen_ns; /* of samples: so much of it has no stacks */
};

struct account {
	uint64_t ns[PARTS];
};

enum row_kind {
	ROW_CPU,    /* a function's own code */
	ROW_KERNEL, /* the kernel's, on its behalf */
	ROW_INTERRUPTS,
	ROW_RECLAIM,
	ROW_BLOCKED,   /* it waited for something */
	ROW_WAITING,   /* it could run, and had no CPU */
	ROW_THROTTLED, /* it could run, and had no time left */
	ROW_STOLEN,    /* its CPU did not run */
	ROW_OTHER,     /* what is not known: a gap */
};

/* What one function (or kind of time outside of functions) did. */
struct row {
	const void *key; /* the function, or the name of what is none */
	const char *name, *suffix;
	enum row_kind kind;
	struct blame blame;	       /* who kept the slow iteration waiting there */
	const struct function *inside; /* of what is no function: where it was; NULL: not told */
	uint64_t slow_ns, slow_calls;
	uint64_t inclusive_ns;		      /* of the slow one: with what it called */
	uint64_t ordinary_ns, ordinary_calls; /* sums */
	int64_t extra_ns;		      /* slow beyond the ordinary mean */
	uint32_t n_open;		      /* while filling: activations at the sweep's time */
};

/*
 * A function below the same callers within an iteration, in all iterations together. The first is
 * the root, which is no function.
 */
struct path {
	const void *key;		    /* as a row's */
	const struct call *call;	    /* one of them: its name and kind */
	uint32_t parent, first_child, next; /* 0: the root is nobody's child, and there is none */
	uint64_t slow_ns, ordinary_ns;	    /* inclusive; ordinary: a sum */
	uint64_t slow_cpu_ns, ordinary_cpu_ns; /* of these: PART_CPU */
};

struct report {
	const struct call_tree *tree;
	const struct call_tree *trees; /* all of them */
	size_t n_trees;
	struct hit_mark hit;
	bool sampled, is_of_several;
	size_t ring_bytes;
	uint64_t ordinary_ns; /* an ordinary iteration, on the average; 0: there is none */
	size_t n_ordinary; /* of which that is the mean: those in `periods`, where there are any */
	size_t n_unseen;   /* beside these: they have no stacks */
	VEC(struct period) periods;
	size_t n_left_out; /* of the lookback's iterations: slow as well, so that no mean has them
			    */
	struct account slow, ordinary; /* ordinary: one on the average, of those in `periods` */
	VEC(struct row) rows;	       /* in hash order while filling; find_row() */
	VEC(struct path) paths;
	uint64_t unseen_until_ns; /* the end of the last stretch of the slow one without stacks */
	size_t *slots;
	size_t n_slots;
	size_t period;		/* that holds, or follows, the sweep's time */
	size_t interrupts;	/* the same of the tree's, ... */
	uint64_t interrupts_ns; /* ... and what those before it took */
	VEC(uint32_t) path_at;	/* of the open calls, by depth */
	bool failed;
};

/* The iterations up to the hit. 0 or -ENOMEM. */
int report__find_periods(struct report *r, const struct hit_mark *hit);
/* Whether the call is one of the trigger's, whose begin was seen, at or before the hit. */
bool report__is_entry(const struct call *call, const struct hit_mark *hit);
/* The call whose begin is nearest to that of the hit's duration, and how far off it is (ns). NULL:
 * none. */
const struct call *report__find_measured(const struct call_tree *tree, const struct hit_mark *hit,
					 uint64_t *off_ns);

/* What the functions did in them, the largest excess first. 0 or -ENOMEM. */
int report__fill_rows(struct report *r);

/* The path of a call below that of its caller; 0: no memory. */
uint32_t report__add_path(struct report *r, uint32_t parent, const struct call *call);
/* Once each path has its self time: that of what it called is in it as well. */
void report__sum_paths(struct report *r);
/* Where the slow iteration was, as far as that is a tenth of it: an indented line a function. */
void report__print_paths(FILE *out, const struct report *r);
/* "iter > work > deep". */
void report__print_path(FILE *out, const struct report *r, uint32_t path);

/* Of a sum over the ordinary iterations: what one has. */
uint64_t report__mean(const struct report *r, uint64_t sum);

static inline const struct period *report__slow(const struct report *r)
{
	return &r->periods.v[r->periods.n - 1];
}

static inline uint64_t report__slow_ns(const struct report *r)
{
	return report__slow(r)->end_ns - report__slow(r)->start_ns;
}

/* False: a 0 of that part only says that nobody has counted, and is left out. */
bool report__counts(const struct report *r, enum part part);

struct cJSON;
/* "hit" of an object: what has triggered. */
void report__add_hit(struct cJSON *root, const struct hit_mark *hit);

/* "f", "f [inlined]", "[blocked] in f". */
void report__print_name(FILE *out, const struct row *row);
/* ", hit 9,", where there are others. */
void report__print_which(FILE *out, const struct report *r);

enum mark_kind { MARK_FAULT, MARK_MAJOR_FAULT, MARK_MOVE };
/* What the time is of which the call is the innermost one. */
enum part report__part_of(const struct report *r, const struct call *call);
/* Counts the marks in the slow iteration, or in all ordinary ones together. */
uint64_t report__count_marks(const struct report *r, bool slow, enum mark_kind kind);

/* So many functions of a path are kept, the innermost. */
#define REASON_PATH_MAX 64

struct reason_frame {
	const char *name;
	bool is_inlined;
};

struct reason {
	enum cause_kind kind;
	uint64_t ns;
	char *text;		       /* in words */
	char *of;		       /* what it waited for, or who took its CPU; NULL: unknown */
	VEC(struct reason_frame) path; /* of user code, outermost first; names are the report's */
};

struct reasons {
	VEC(struct reason) all;
};

/*
 * Why the slow iteration took longer: each part that makes up a quarter of the excess,
 * the largest first: on a CPU, blocked, in wait of one, or not known, and where and by whom. None
 * where it did not. Of a trace of every call, the functions whose own code or system calls have it.
 * 0 or -ENOMEM; reasons__fini() in any case.
 */
int report__reasons(const struct report *r, struct reasons *reasons);
void reasons__fini(struct reasons *reasons);

/* "stacks cover the last 500 ms of 1.62 s"; nothing where they cover all of the slow iteration. */
void report__print_cover(FILE *out, const struct report *r);

#endif
