/* SPDX-License-Identifier: MIT */
/*
 * The report of `mtbpf check`: one result per requirement. Each is found by trying, and leaves
 * nothing behind.
 */
#ifndef MTBPF_CHECK_CHECK_H
#define MTBPF_CHECK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "check/results.h"

#define CHECK_MAX_RESULTS 40

struct check_report {
	struct check_result results[CHECK_MAX_RESULTS];
	size_t n;
};

/* Runs every check; prints nothing. Freed by the caller; NULL: no memory. */
struct check_report *check_report__new(void);
void check_report__free(struct check_report *report);

/* Runs the check with this name. False if no check has it. */
bool check__one(const char *name, struct check_result *result);

/* True if nothing that is needed is missing: attach works with Intel PT. */
bool check_report__good(const struct check_report *report);

/* Prints one line per result: name, state, reason and remedy. */
void check_report__print(const struct check_report *report, FILE *out);
/* Results and facts as a JSON array of objects. Freed by the caller; NULL: no memory. */
char *check_report__json(const struct check_report *report);

#endif
