/* SPDX-License-Identifier: MIT */
#ifndef MTBPF_VIEW_REPORT_INTERNAL_H
#define MTBPF_VIEW_REPORT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "stack/call_tree.h"
#include "util/vec.h"
#include "view/off_cpu.h"
#include "view/account.h"

/* One iteration. The last is the slow one. */
struct period {
	uint64_t start_ns, end_ns;
	uint64_t unseen_ns; /* with samples: time without stacks */
};

struct account {
	uint64_t ns[ACCOUNT_PARTS];
};

enum row_kind {
	ROW_CPU,    /* the function's own code */
	ROW_KERNEL, /* kernel code that the function called */
	ROW_INTERRUPTS,
	ROW_RECLAIM,
	ROW_BLOCKED,   /* waiting for something */
	ROW_WAITING,   /* waiting for a CPU */
	ROW_THROTTLED, /* its cgroup's quota was used up */
	ROW_STOLEN,    /* the hypervisor did not run its CPU */
	ROW_OTHER,     /* not known: a gap */
};

/* The time of one function, or of one kind of time outside of functions. */
struct row {
	const void *key; /* the function, or the name of the kind */
	const char *name, *suffix;
	enum row_kind kind;
	struct off_cpu off_cpu;	       /* what the slow iteration waited for, and why */
	const struct function *inside; /* where time outside of functions was; NULL: not known */
	uint64_t slow_ns, slow_calls;
	uint64_t inclusive_ns;		      /* in the slow one, callees included */
	uint64_t ordinary_ns, ordinary_calls; /* sums */
	int64_t extra_ns;		      /* slow minus the ordinary mean */
	uint32_t n_open;		      /* in sweep(): open activations */
};

/* A function with the same callers within an iteration, in all iterations together. The first path
 * is the root, without a function. */
struct path {
	const void *key;		       /* as in struct row */
	const struct call *call;	       /* one of its calls, for name and kind */
	uint32_t parent, first_child, next;    /* 0: none, or the root as parent */
	uint64_t slow_ns, ordinary_ns;	       /* inclusive; ordinary: a sum */
	uint64_t slow_cpu_ns, ordinary_cpu_ns; /* the part of these that is ACCOUNT_CPU */
};

struct report {
	const struct call_tree *tree;
	const struct call_tree *trees; /* all of them */
	size_t n_trees;
	struct hit_mark hit;
	bool sampled, is_of_several;
	size_t ring_bytes;
	uint64_t ordinary_ns; /* mean length of an ordinary iteration; 0: none */
	size_t n_ordinary;    /* ordinary iterations in this mean: those in `periods`, if any */
	size_t n_unseen;      /* further iterations, without stacks */
	/* These two include iterations without stacks, which are mostly the short ones. */
	uint64_t all_ordinary_ns; /* mean length */
	size_t n_all_ordinary;
	VEC(struct period) periods;
	size_t n_left_out; /* other slow iterations in the lookback: not in any mean */
	/* Iterations of other threads, which are compared with nothing. */
	size_t n_others;
	uint64_t others_ns;	       /* mean length of those below the threshold */
	struct account slow, ordinary; /* ordinary: the mean of those in `periods` */
	VEC(struct row) rows;	       /* found by `by_key` while filling; then sorted by excess */
	VEC(struct path) paths;
	uint64_t unseen_until_ns; /* end of the last time without stacks in the slow one */
	struct hash_index by_key; /* of rows, by key and `inside` */
	size_t period;		  /* in sweep(): the current or next period */
	size_t interrupts;	  /* in sweep(): the current or next interrupts_mark of the tree */
	uint64_t interrupts_ns;	  /* total time of the marks before that one */
	VEC(uint32_t) path_at;	  /* in sweep(): paths of the open calls, by depth */
	bool failed;
};

/* Fills rows, paths and accounts; rows with the largest excess first. 0 or -ENOMEM. */
int report__fill_rows(struct report *r);

/* Prints where the slow iteration was: one indented line per function with a tenth of it or more.
 */
void report__print_paths(FILE *out, const struct report *r);
/*
 * Prints "iter > work > deep": the path from `first` (0: from its begin) to `last`. Of a long path,
 * only the innermost functions are printed.
 */
void report__print_path(FILE *out, const struct report *r, uint32_t first, uint32_t last);

/* Divides a sum over the ordinary iterations by their number. */
uint64_t report__mean(const struct report *r, uint64_t sum);

static inline const struct period *report__slow(const struct report *r)
{
	return &r->periods.v[r->periods.n - 1];
}

static inline uint64_t report__slow_ns(const struct report *r)
{
	return report__slow(r)->end_ns - report__slow(r)->start_ns;
}

/* False if this part is not measured here: a 0 would be wrong and is left out. */
bool report__counts(const struct report *r, enum account_part part);

struct cJSON;
/* Adds "hit", the hit that triggered, to the object. */
void report__add_hit(struct cJSON *root, const struct hit_mark *hit);
/*
 * Adds "account" to the object. Each account adds up to its iteration; the ordinary one to the mean
 * of those with stacks.
 */
void report__add_account(struct cJSON *root, const struct report *r);

enum mark_kind { MARK_FAULT, MARK_MAJOR_FAULT, MARK_MOVE };
/* The part of the account for the time in which this call is the innermost one. */
enum account_part report__part_of(const struct report *r, const struct call *call);
/*
 * Counts the marks in the slow iteration, or in all ordinary ones together: those of one function,
 * or of all (NULL).
 */
uint64_t report__count_marks(const struct report *r, bool slow, enum mark_kind kind,
			     const struct function *function);

/* Limit of a path's functions; the innermost are kept. */
#define REASON_PATH_MAX 64

struct reason_frame {
	const char *name;
	bool is_inlined;
};

struct reason {
	enum cause_kind kind;
	uint64_t ns;
	char *text;		       /* in words */
	char *meanwhile;	       /* what the thread did that ended the wait; NULL: unknown */
	char *of;		       /* what it waited for, or who took its CPU; NULL: unknown */
	VEC(struct reason_frame) path; /* of user code, outermost first; names are the report's */
};

struct reasons {
	VEC(struct reason) all;
};

/*
 * Finds why the slow iteration took longer: each cause with at least a quarter of the excess, or
 * else the largest one; the largest first, with its place and who caused it. None if it did not
 * take longer, or for a request with a key. In a trace of every call, the causes are functions
 * whose own code or system calls have the excess. 0 or -ENOMEM; reasons__fini() in any case.
 */
int report__reasons(const struct report *r, struct reasons *reasons);
void reasons__fini(struct reasons *reasons);

#endif
