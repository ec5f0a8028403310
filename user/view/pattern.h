/* SPDX-License-Identifier: MIT */
/*
 * The pattern of many captures: their causes, grouped. Two causes are the same if their kind, their
 * functions, and the thing waited for are the same. Addresses, numbers of threads and descriptors,
 * and parts that differ between requests are ignored.
 */
#ifndef MTBPF_VIEW_PATTERN_H
#define MTBPF_VIEW_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "util/vec.h"
#include "view/summary.h"

struct pattern_frame {
	char *name; /* without suffixes such as .constprop.0 and @@GLIBC_2.14 */
	bool is_inlined;
};

/* A cause of one capture. */
struct pattern_entry {
	const struct summary *summary;
	const struct summary_cause *cause;
	bool is_main; /* the largest cause of that capture */
};

/* A cause of several captures. */
struct pattern {
	enum cause_kind kind;
	/* The awaited thing, or who took the CPU ('*' for parts that differ); NULL: not known. */
	char *of;
	VEC(struct pattern_frame) path;	   /* outermost first */
	VEC(struct pattern_entry) entries; /* largest first */
	size_t n_main;			   /* captures that have it as their largest cause */
	uint64_t lost_ns, median_ns;	   /* sum, and median, of the time lost in each entry */
	uint64_t first_ms, last_ms;	   /* since 1970; 0: unknown */
	VEC(const char *) hosts;	   /* each once */
};

/* A function's time beyond ordinary iterations, in all captures. */
struct pattern_function {
	char *name;
	size_t n; /* captures */
	int64_t extra_ns;
};

/* A label that captures have, beside the host. */
struct pattern_label {
	const char *key, *value;
	size_t n; /* captures */
};

struct patterns {
	const struct summary *summaries; /* the caller's */
	size_t n;
	size_t n_reports;			/* summaries with a report */
	VEC(struct pattern) all;		/* most time lost first */
	VEC(struct pattern_function) functions; /* most time lost first */
	VEC(const char *) hosts;
	VEC(struct pattern_label) labels; /* by key, then the most frequent first */
	uint64_t lost_ns;		  /* excess of all captures */
	uint64_t first_ms, last_ms;
	uint64_t slow[ACCOUNT_PARTS], ordinary[ACCOUNT_PARTS]; /* account of all */
	size_t n_timed;	   /* reports that know how long an ordinary iteration took */
	size_t n_compared; /* reports that know what an ordinary iteration did */
};

/* The caller keeps `summaries` unchanged. 0 or -ENOMEM; patterns__fini() in any case. */
int patterns__find(struct patterns *p, const struct summary *summaries, size_t n);
void patterns__fini(struct patterns *p);

/*
 * Returns the name by which captures are compared: without suffixes of compilers and versions
 * ("f.constprop.0", "f@GLIBC_2.2"), glibc's prefixes, Rust's hashes and addresses. The caller frees
 * it; NULL: no memory.
 */
char *pattern__function(const char *name);
/*
 * Returns `of`, the thing waited for, as it is compared: numbers, hashes and UUIDs become '*', and
 * numbers of descriptors and threads, as in "(fd 5)" or "(123)", are left out. Keeps ports below
 * 32768 of IPv4 addresses, and quotas. The caller frees it; NULL: no memory.
 */
char *pattern__of(const char *of);

/* "blocked in handle > read_config: read of /tmp/req-*" */
void pattern__print_title(FILE *out, const struct pattern *pattern);
/* The innermost function; "": unknown. */
const char *pattern__leaf(const struct pattern *pattern);

/* Prints the table of causes, the account, and the `top` first functions. */
void patterns__print(FILE *out, const struct patterns *p, size_t top);
/* Prints an object on one line. 0 or -ENOMEM. */
int patterns__print_json(FILE *out, const struct patterns *p);
/* Prints a row per cause, in the format of RFC 4180. */
void patterns__print_csv(FILE *out, const struct patterns *p);
/* Prints the stacks of all slow iterations, below the name of the program. */
void patterns__print_folded(FILE *out, const struct patterns *p);
/*
 * Prints which causes came, went, and became more or less from set A, the first n_first summaries,
 * to set B, the others. 0 or -ENOMEM.
 */
int patterns__print_difference(FILE *out, const struct patterns *p, size_t n_first, bool json);

#endif
